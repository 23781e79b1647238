"""Simulated machines with workers and clients, which write and vanish: a program.

Each machine has a network address, a host name and a directory of temporary files of its own. The
scheduler is on a machine that stays. All are processes in namespaces, which end with them.
"""

import ctypes
import multiprocessing
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from distributed import Client, LocalCluster
from distributed.cli import dask_worker
from distributed.scheduler import NoWorkerError

import zarrdask
from benchmarks.object_server import serving
from zarrdask.storage.locks import leases

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
_PRELOADED = ("--preload", "zarrdask.parallel.graph.to_zarr", "--preload", "s3fs")
_WORKER = ("--nthreads", "1", "--no-nanny", "--no-dashboard", *_PRELOADED)
#: The most machines that a trial starts.
_MACHINES = 5
#: Namespaces of Linux: of users, of networks, of mounts and of host names.
_USERS, _NETWORKS, _MOUNTS, _NAMES = 0x10000000, 0x40000000, 0x00020000, 0x04000000


def unshare(namespaces):
    """Move this process to new namespaces."""
    if ctypes.CDLL(None, use_errno=True).unshare(namespaces):
        raise OSError(number := ctypes.get_errno(), f"unshare: {os.strerror(number)}")


def become_root():
    """Move this process to namespaces in which it may change the network."""
    user, group = os.geteuid(), os.getegid()
    unshare(_USERS | _NETWORKS | _MOUNTS | _NAMES)
    # Who may not set groups may map the own one.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def run(*arguments):
    """Run a command that succeeds."""
    subprocess.run(arguments, check=True)


def machine(name, address, folder, calls):
    """Be a machine on which one call is made, which is sent: the main function of a process."""
    unshare(_NETWORKS | _MOUNTS | _NAMES)
    socket.sethostname(name)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    calls.send("is separate")
    call, *arguments = calls.recv()
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    if call is work:
        arguments += ["--name", name, "--host", address, "--local-directory", str(folder)]
    call(*arguments)


def work(*arguments):
    """Be a worker of Dask, as `dask worker` starts one."""
    dask_worker.main([*_WORKER, *arguments], standalone_mode=False)


class Machines:
    """The machines, whose processes end with the context.

    They are forked at once, while this process has no threads, and wait until they are started.
    """

    def __init__(self, folder):
        self._waiting, self._running = {}, {}
        forking = multiprocessing.get_context("fork")
        for number in range(1, _MACHINES + 1):
            name, (here, there) = f"machine{number}", forking.Pipe()
            (own := folder / name).mkdir()
            arguments = name, f"10.77.0.{number + 1}", own, there
            process = forking.Process(target=machine, args=arguments)
            process.start()
            self._waiting[name] = process, here

    def start(self, scheduler):
        """Start a machine with one worker."""
        self._start(work, scheduler)

    def start_client(self, *arguments, **options):
        """Start a machine with a process that calls `write_rows`; return its name."""
        return self._start(write_alone, *arguments, options)

    def _start(self, *call):
        name = next(iter(self._waiting))
        process, calls = self._waiting.pop(name)
        self._running[name] = process
        calls.recv()
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
        run("ip", "link", "add", name, *peer)
        run("ip", "link", "set", name, "master", "bridge", "up")
        calls.send(call)
        return name

    def vanish(self, name=None):
        """Let a machine, or the oldest, vanish: nothing that it has sent last arrives, no reset."""
        name = name or next(iter(self._running))
        run("ip", "link", "set", name, "down")
        self._end(self._running.pop(name))

    def wait(self, name):
        """Wait until the process of a machine has ended, which must not have failed."""
        self._running[name].join(200)
        assert self._running[name].exitcode == 0, name

    def _end(self, process):
        process.kill()
        process.join()

    def close(self):
        """End all machines."""
        for process in (*self._running.values(), *(each for each, _ in self._waiting.values())):
            self._end(process)
        self._running, self._waiting = {}, {}


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


def logged(values, chunks, log):
    """Return values as a Dask array whose blocks are logged."""
    x, log = da.from_array(values, chunks=chunks), partial(computing, log=log)
    name = f"x{tokenize(values, chunks)}"
    return x.map_blocks(log, name=name, dtype=x.dtype, meta=values[:0, :0])


def computed(log):
    """Return how many blocks were computed."""
    return len(log.read_text().splitlines()) if log.exists() else 0


def write_rows(scheduler, place, log, rows, *, resume):
    """Write rows of an array in blocks that share chunks with others; without rows, append all."""
    # The lease of an append on a machine that has vanished is taken soon.
    leases.Lease.RENEWAL, leases.Lease.EXPIRY = 0.5, 3.0
    part = slice(*rows or (None,))
    x = logged(VALUES[part], (7, 11), log)
    with Client(scheduler):
        if rows:
            zarrdask.to_zarr(x, **place, component="a", region=(part, slice(None)), resume=resume)
        else:
            zarrdask.append(x, **place, component="a", resume=resume)


def write_alone(scheduler, place, log, rows, options):
    """Write rows as a program of its own: with the settings of the trial."""
    dask.config.set(SETTINGS)
    write_rows(scheduler, place, log, rows, **options)


class Trial:
    """A write by two machines; some of them, or that of the client, vanish."""

    def __init__(self, client, machines, folder, url, options, seed):
        self.client, self.machines = client, machines
        self.scheduler = client.scheduler.address
        self.log, self.rng = folder / "log", random.Random(seed)
        self.place = {"url": url, "storage_options": options}
        self.folder = folder

    def blocks(self, chunks):
        """Return the values as a Dask array whose blocks are logged."""
        return logged(VALUES, chunks, self.log)

    def start(self):
        """Start two machines with workers."""
        for _ in range(2):
            self.machines.start(self.scheduler)
        self.client.wait_for_workers(2, timeout=100)

    def wait(self, blocks, ended):
        """Wait until so many blocks are computed, or until the write has ended."""
        while computed(self.log) < blocks and not ended():
            time.sleep(0.01)

    @contextmanager
    def vanishing(self, number, replaced):
        """Let machines vanish while blocks are computed, and start as many others."""
        self.start()
        after, ended = self.rng.randrange(1, 25), threading.Event()

        def vanish():
            self.wait(after, ended.is_set)
            for _ in range(number):
                self.machines.vanish()
                if replaced:
                    self.machines.start(self.scheduler)

        thread = threading.Thread(target=vanish)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

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
        assert blocks <= computed(self.log) <= blocks + 3 * 5, computed(self.log)
        self.check(VALUES, **self.place)

    def two_clients(self):
        """Write regions that share chunks from clients on two machines, and lose a worker."""
        expected = self.create()
        with self.vanishing(1, replaced=True):
            parts = [(1, 19), (19, 38)]
            start = partial(self.machines.start_client, self.scheduler, self.place, self.log)
            for name in [start(rows, resume=False) for rows in parts]:
                self.machines.wait(name)
        expected[1:38] = VALUES[1:38]
        self.check(expected, **self.place)

    def lost_client(self):
        """Lose the machine of the client, and make the same call on another one."""
        expected = self.create()
        self.start()
        rows = self.rng.choice([None, (3, 37)])
        call = self.scheduler, self.place, self.log, rows
        name = self.machines.start_client(*call, resume=True)
        self.wait(self.rng.randrange(1, 18), lambda: False)
        self.machines.vanish(name)
        write_rows(*call, resume=True)
        if rows:
            expected[3:37] = VALUES[3:37]
        else:
            expected = np.concatenate([expected, VALUES])
        self.check(expected, **self.place)
        store = zarrdask.open_group(**self.place).node_path.store
        left = [key for key in store.list_prefix("a/") if "rewrite" in key and "lease" not in key]
        assert not left

    def create(self):
        """Create an array; return its values."""
        options = {"shape": VALUES.shape, "dtype": VALUES.dtype, "chunks": CHUNKS}
        z = zarrdask.create_array(**self.place, component="a", **options)
        z[...] = -VALUES
        return -VALUES

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
    """Run one trial: the main function of a process."""
    folder = Path(folder)
    become_root()
    with ExitStack() as stack:
        machines = Machines(folder)
        stack.callback(machines.close)
        stack.enter_context(network())
        url, options = str(folder / "shared"), None
        if place == "s3":
            endpoint = stack.enter_context(serving(0.002, HUB))
            url, options = "s3://machines", {"key": "k", "secret": "s", "endpoint_url": endpoint}
        stack.enter_context(dask.config.set(SETTINGS))
        cluster = stack.enter_context(LocalCluster(n_workers=0, host=HUB, dashboard_address=":0"))
        client = stack.enter_context(Client(cluster))
        # They vanish before the scheduler ends, which else would wait for them.
        stack.callback(machines.close)
        trial = Trial(client, machines, folder, url, options, int(seed))
        getattr(trial, kind)()
    print("computed", computed(trial.log), *sorted({*trial.log.read_text().split()}))  # noqa: T201
