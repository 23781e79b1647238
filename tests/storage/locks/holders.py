"""Threads and processes that hold locks."""

import subprocess
import sys
import threading
from contextlib import contextmanager

PATIENCE = 60


HOLD = """
import sys
import dask
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.local.local_store import LocalStore

dask.config.set({"zarrdask.lock-directory": sys.argv[1]})
with ChunkLocks(LocalStore("/")).hold("unit"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def is_held(unit_locks, name):
    return unit_locks.is_outdated(unit_locks.version(name))


@contextmanager
def holder(directory):
    """Let another process hold the lock of "unit"."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def thread(work):
    """Do some work in a thread, and wait for its end."""
    found = threading.Thread(target=work)
    found.start()
    try:
        yield found
    finally:
        found.join(PATIENCE)
        assert not found.is_alive()
