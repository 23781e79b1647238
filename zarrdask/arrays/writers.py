"""Names of writers: a writer stores its name, by which others detect whether it still runs."""

import os
from contextlib import suppress
from time import time as now
from typing import Any
from uuid import uuid4

from zarrdask.arrays.cancellation import is_writing
from zarrdask.storage.local.atomic import is_alive, machine_token

#: The names of the writers of this process that have not ended.
_RUNNING: set[bytes] = set()
#: What follows the name of a process that has stored it for a write whose tasks run anywhere.
_LATER = b" later"


def new_writer(unique: str = "") -> bytes:
    """Return a unique name for a writer of this process: it runs from `begin` to `end`.

    `unique` is the part that makes it so, by default a new one.
    """
    parts = (unique or uuid4().hex, machine_token(), os.getpid(), int(now()))
    return " ".join(map(str, parts)).encode()


def later_writer(write: str) -> bytes:
    """Return what a process stores for a write whose tasks run later, in any processes.

    Whether the write still runs does not depend on this process, which has only run a task of it.
    """
    return new_writer(write) + _LATER


def is_later(value: Any) -> bool:
    """Whether a value was stored for a write whose tasks run later."""
    return bytes(value).partition(b"\n")[0].endswith(_LATER)


def is_of(value: Any, write: str) -> bool:
    """Whether a value was stored for a write with a unique name, in any process."""
    return bytes(value or b"").startswith(f"{write} ".encode())


def is_resting(value: Any) -> bool:
    """Whether this process has stored a value for a write, and runs no task of that write now."""
    return is_later(value) and _is_own(value) and is_running(value) is None


def _is_own(value: Any) -> bool:
    return name_in(value).split(b" ")[1:3] == [machine_token().encode(), b"%d" % os.getpid()]


def begin(name: bytes) -> None:
    """Record that a writer of this process runs now."""
    _RUNNING.add(name)


def end(name: bytes) -> None:
    """Record that a writer of this process has ended."""
    _RUNNING.discard(name)


def name_in(value: Any) -> bytes:
    """Return the name that a value begins with; a number or lines may follow."""
    return b" ".join(bytes(value).partition(b"\n")[0].split(b" ")[:4])


def is_running(value: Any) -> bool | None:
    """Whether the writer that stored a value still runs; None if this process can't know.

    It can't if the writer is of another machine, or has tasks that other processes may run.
    """
    name = name_in(value)
    if is_later(value):
        return True if _is_own(value) and is_writing(name.split(b" ")[0].decode()) else None
    try:
        _, machine, process, since = name.decode().split(" ")
        if machine == machine_token():
            is_own = int(process) == os.getpid()
            return name in _RUNNING if is_own else _is_running(int(process), int(since))
    except ValueError:
        pass  # of another release
    return None


def _is_running(process: int, since: int) -> bool:
    """Whether a process of this machine is the one that was there at a time."""
    if not is_alive(process):
        return False
    import psutil

    with suppress(psutil.Error):
        # The number may have been given to a later process.
        return bool(psutil.Process(process).create_time() <= since + 60)
    return True
