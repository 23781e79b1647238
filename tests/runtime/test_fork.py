"""Processes that are forked after the parent has used threads, pools and event loops read on."""

import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import zarrdask

#: Reads in the parent, so that its pools, caches and event loops exist; then forks five readers in
#: each round while threads of the parent read on. Each must return the sum. A reader that hangs is
#: ended by the timeout of the test.
CODE = """
import os, sys, threading
import dask
import zarrdask

url, expected, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dask.config.set({"zarrdask.threads": 4})
z = zarrdask.open_array(url)
x = zarrdask.from_zarr(url)

def total():
    return int(z[...].sum()), int(x.sum().compute(scheduler="threads"))

assert total() == (expected, expected)
stopped = threading.Event()

def read_on():
    while not stopped.wait(0.01):
        z[...]

threads = [threading.Thread(target=read_on, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
ended = []
for _ in range(rounds):
    children = []
    for _ in range(5):
        child = os.fork()
        if not child:
            try:
                os._exit(0 if int(z[...].sum()) == expected else 1)
            except BaseException as error:
                print(type(error).__name__, error, file=sys.stderr, flush=True)
                os._exit(2)
        children.append(child)
    ended += [os.waitpid(child, 0)[1] for child in children]
stopped.set()
for thread in threads:
    thread.join()
print(len(ended), set(ended))
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with arrays in chunks and in shards."""
    values = np.arange(20 * 20).reshape(20, 20)
    for name, shards in (("chunks", None), ("shards", (10, 20))):
        z = zarrdask.create_array(
            tmp_path / name, shape=(20, 20), dtype="i4", chunks=(10, 10), shards=shards
        )
        z[...] = values
    return tmp_path, int(values.sum())


@pytest.fixture
def server(folder):
    path, expected = folder

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(path))

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", expected
        server.shutdown()
        thread.join()


def run(url, expected, rounds):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, str(url), str(expected), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == (f"{5 * rounds} {{0}}\n", "")


def test_readers_of_a_directory_finish(folder):
    path, expected = folder
    run(path / "chunks", expected, 1)


@pytest.mark.stress
@pytest.mark.parametrize("name", ["chunks", "shards"])
def test_readers_of_a_server_finish(server, name):
    url, expected = server
    run(f"{url}/{name}", expected, 2)
