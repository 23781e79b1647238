"""Locks of stored units among the workers of a cluster."""

import sys
from contextlib import AbstractContextManager
from ipaddress import ip_address
from zlib import crc32

from zarrdask.locks import Lock

#: The scheduler remembers each name for good, so units share so many.
_NAMES = 4096


def among_workers() -> Lock | None:
    """Return what keeps workers on other machines from a unit, in a task of a cluster of several.

    Where all workers are on one machine, its own locks do that, sooner; they also end with the
    worker that holds them. A lock of a cluster outlives its worker for a while, until its lease
    ends (``distributed.scheduler.locks.lease-timeout``).
    """
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return None
    # A scheduler may be reached from here by another address than from elsewhere.
    addresses = worker.scheduler.address, worker.address
    return None if all(map(is_here, addresses)) else cluster_lock


def is_here(address: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_here("tcp://127.0.0.1:8786"), is_here("tcp://10.0.0.7:8786")
    (True, False)
    """
    from distributed.comm import get_address_host

    if address.startswith("inproc://"):
        return True
    try:
        return ip_address(get_address_host(address)).is_loopback
    except ValueError:
        return False


def cluster_lock(name: str) -> AbstractContextManager[object]:
    """Return the lock of a unit that all tasks of a cluster share."""
    from distributed import Lock as ClusterLock

    number = crc32(name.encode(errors="surrogateescape")) % _NAMES
    return ClusterLock(f"zarrdask-unit-{number:x}")  # type: ignore[no-any-return]
