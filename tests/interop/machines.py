"""Two simulated machines, whose workers write and which vanish: a program.

Each machine has a network address, a host name and a directory of temporary files of its own. The
process that computes is on a third one. A test runs the program by `command`, in namespaces that
end with its processes.
"""

import os
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from distributed.scheduler import NoWorkerError

import zarrdask
from benchmarks.object_server import serving

ROOT = Path(__file__).parents[2]
HUB = "10.77.0.1"
VALUES = np.arange(1, 40 * 30 + 1).reshape(40, 30)
#: Chunks that no block covers exactly, and the chunks of writes that share none.
CHUNKS, ALIGNED = (8, 8), (4, 6)
SETTINGS = {
    "distributed.scheduler.allowed-failures": 100,
    "distributed.scheduler.worker-ttl": "20s",
    "distributed.scheduler.no-workers-timeout": "30s",
    "distributed.scheduler.locks.lease-timeout": "5s",
    "distributed.comm.timeouts.connect": "5s",
    "distributed.comm.timeouts.tcp": "15s",
    "zarrdask.fuse-blocks": 0,
}
_BEGIN = """
read _
hostname {name}
ip link set lo up
ip address add {address}/24 dev eth0
ip link set eth0 up
exec {python} -m distributed.cli.dask_worker {scheduler} --host {address} --nthreads 1 --no-nanny \
    --no-dashboard --preload zarrdask.graph.write --preload s3fs \
    --name {name} --local-directory {folder}
"""


def command(*arguments):
    """Return the command that runs this module in namespaces of its own."""
    own = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--uts"]
    return [*own, sys.executable, "-m", "tests.interop.machines", *map(str, arguments)]


def run(*arguments):
    """Run a command that succeeds."""
    subprocess.run(arguments, check=True)


class Machines:
    """The machines, whose processes end with the context."""

    def __init__(self, scheduler, folder):
        self._scheduler, self._folder = scheduler, folder
        self._running, self._count = {}, 0

    def start(self):
        """Start a machine with one worker."""
        self._count += 1
        name, address = f"machine{self._count}", f"10.77.0.{self._count + 1}"
        (folder := self._folder / name).mkdir()
        script = _BEGIN.format(
            name=name,
            address=address,
            folder=folder,
            scheduler=self._scheduler,
            python=sys.executable,
        )
        process = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c", script],
            stdin=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
            cwd=ROOT,
        )
        while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        link = f"link{self._count}"
        pid = str(process.pid)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pid)
        run("ip", "link", "set", link, "master", "bridge", "up")
        process.stdin.write(b"\n")
        process.stdin.close()
        self._running[link] = process

    def vanish(self):
        """Let the oldest machine vanish: nothing that it has sent last arrives, and no reset."""
        link = next(iter(self._running))
        run("ip", "link", "set", link, "down")
        self._end(link)

    def _end(self, link):
        process = self._running.pop(link)
        process.kill()
        process.wait()

    def close(self):
        """End all machines."""
        for link in [*self._running]:
            self._end(link)


@contextmanager
def network():
    """Make the network of the machines."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "address", "add", f"{HUB}/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")
    yield


def computing(block, log):
    """Log where a block is computed; it takes a moment."""
    with open(log, "a") as file:
        file.write(f"{socket.gethostname()}\n")
    time.sleep(0.05)
    return block


def count(log):
    """Return how many blocks were computed."""
    return len(log.read_text().splitlines()) if log.exists() else 0


class Trial:
    """A write by two machines, of which one or both vanish."""

    def __init__(self, client, machines, folder, url, options, seed):
        self.client, self.machines = client, machines
        self.log, self.rng = folder / "log", random.Random(seed)
        self.place = {"url": url, "storage_options": options}
        self.folder = folder

    def blocks(self, chunks):
        """Return the values as a Dask array whose blocks are logged."""
        x = da.from_array(VALUES, chunks=chunks)
        log = partial(computing, log=self.log)
        return x.map_blocks(log, name=f"x{chunks}", dtype=x.dtype, meta=VALUES[:0, :0])

    @contextmanager
    def vanishing(self, number, replaced):
        """Let machines vanish while blocks are computed, and start as many others."""
        self.machines.start()
        self.machines.start()
        self.client.wait_for_workers(2, timeout=100)
        after, ended = self.rng.randrange(1, 25), threading.Event()

        def vanish():
            while count(self.log) < after and not ended.wait(0.01):
                pass
            for _ in range(number):
                self.machines.vanish()
                if replaced:
                    self.machines.start()

        thread = threading.Thread(target=vanish)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def write(self):
        """Write blocks that share chunks with others."""
        with self.vanishing(1, replaced=True):
            zarrdask.to_zarr(self.blocks((7, 11)), **self.place, component="a", chunks=CHUNKS)
        self.check(VALUES, **self.place)

    def resume(self):
        """Lose both machines, and go on with two others."""
        x = self.blocks(ALIGNED)
        for replaced in (False, True):
            try:
                with self.vanishing(1 if replaced else 2, replaced=replaced):
                    zarrdask.to_zarr(x, **self.place, component="a", resume=True)
            except NoWorkerError:
                if replaced:
                    raise
        blocks = int(np.prod(x.numblocks))
        # One task of each machine that vanishes, and receipts that have not arrived.
        assert blocks <= count(self.log) <= blocks + 3 * 5, count(self.log)
        self.check(VALUES, **self.place)

    def icechunk(self):
        """Write to a session of icechunk."""
        import icechunk

        storage = icechunk.local_filesystem_storage(str(self.folder / "repository"))
        repository = icechunk.Repository.create(storage)
        session = repository.writable_session("main")
        with self.vanishing(1, replaced=True):
            zarrdask.to_zarr(self.blocks((7, 11)), session.store, "a", chunks=CHUNKS)
        zarrdask.append(VALUES, session.store, "a")
        session.commit("written")
        twice = np.concatenate([VALUES, VALUES])
        self.check(twice, repository.readonly_session("main").store)

    def check(self, expected, url, storage_options=None):
        """Check the values that are stored."""
        z = zarrdask.open_array(url, "a", storage_options=storage_options)
        np.testing.assert_array_equal(z[...], expected)


def main(kind, place, seed, folder):
    """Run one trial."""
    folder = Path(folder)
    with ExitStack() as stack:
        stack.enter_context(network())
        url, options = str(folder / "shared"), None
        if place == "s3":
            endpoint = stack.enter_context(serving(0.002, HUB))
            url, options = "s3://machines", {"key": "k", "secret": "s", "endpoint_url": endpoint}
        stack.enter_context(dask.config.set(SETTINGS))
        cluster = LocalCluster(n_workers=0, host=HUB, dashboard_address=None)
        client = stack.enter_context(Client(stack.enter_context(cluster)))
        machines = Machines(cluster.scheduler_address, folder)
        stack.callback(machines.close)
        trial = Trial(client, machines, folder, url, options, int(seed))
        getattr(trial, kind)()
    print("computed", count(trial.log), *sorted({*trial.log.read_text().split()}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
