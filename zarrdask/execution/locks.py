"""Locks of stored units among the workers of a cluster."""

import sys
from contextlib import AbstractContextManager, suppress
from ipaddress import ip_address
from zlib import crc32

from zarrdask.execution.client import current_client
from zarrdask.hierarchy.resize import lock_shape
from zarrdask.runtime.locks import Lock
from zarrdask.storage.base import Store

#: The scheduler remembers each name for good, so units share so many.
_NAMES = 4096


def among_workers() -> Lock | None:
    """Return what keeps workers on other machines from a unit, in a task of a cluster of several.

    Where all workers are on one machine, its own locks do that, sooner; they also end with the
    worker that holds them. A lock of a cluster outlives its worker for a while, until its lease
    ends (``distributed.scheduler.locks.lease-timeout``).
    """
    return cluster_lock if _are_apart(_worker_addresses()) else None


def shape_lock(store: Store, path: str) -> AbstractContextManager[object]:
    """Be the only one who gives an array another shape, also among the workers of a cluster."""
    make_way()
    return lock_shape(store, path, _among_appends())


def make_way() -> None:
    """Let a worker do other tasks, if this is one, while it waits for what may need just it."""
    if _worker_addresses():
        from distributed import secede

        with suppress(KeyError):  # it does already
            secede()


def _among_appends() -> Lock | None:
    """Return what keeps other machines from an array's shape, in a task of a cluster or before.

    Here, the current scheduler may be that of a cluster.
    """
    found = _worker_addresses() or _client_addresses()
    return cluster_shape_lock if _are_apart(found) else None


def _worker_addresses() -> list[str]:
    """Return the addresses of this worker and its scheduler, in a task of a cluster."""
    if "distributed" not in sys.modules:
        return []
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return []
    # A scheduler may be reached from here by another address than from elsewhere.
    return [worker.scheduler.address, worker.address]


def _client_addresses() -> list[str]:
    client = current_client()
    if client is None:
        return []
    return [client.scheduler.address, *client.scheduler_info(n_workers=-1)["workers"]]


def _are_apart(addresses: list[str]) -> bool:
    return not all(map(is_here, addresses))


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
    return _cluster_lock("unit", name)


def cluster_shape_lock(name: str) -> AbstractContextManager[object]:
    """Return the lock of an array's shape, which is held while others of units are taken."""
    return _cluster_lock("shape", name)


def _cluster_lock(kind: str, name: str) -> AbstractContextManager[object]:
    from distributed import Lock as ClusterLock

    number = crc32(name.encode(errors="surrogateescape")) % _NAMES
    return ClusterLock(f"zarrdask-{kind}-{number:x}")  # type: ignore[no-any-return]
