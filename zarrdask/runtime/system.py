"""What a process asks the system for: CPUs, memory, a clock, and calls after a fork.

Where the platform lacks a call, there is a substitute.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

IS_WINDOWS = sys.platform == "win32"

#: On Linux, the monotonic clock stands still while the machine sleeps.
_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the size of the memory of this machine; None if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def clock() -> float:
    """Return the seconds of a clock that also advances while the machine sleeps, if there is one.

    >>> clock() <= clock()
    True
    """
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


def after_fork(call: Callable[[], object]) -> None:
    """Have a function called in each process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def renewed_after_fork(lock: T) -> T:
    """Return a lock, or a condition, that is free in each process forked from this one.

    The thread that held it does not exist there, so it would never be released.
    """
    after_fork(lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
