"""Locks of stored units and of array shapes that the workers of a Dask cluster share."""

from contextlib import AbstractContextManager, suppress
from functools import lru_cache, partial
from ipaddress import ip_address
from zlib import crc32

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError
from zarrdask.parallel.execution.client import current_client, current_worker
from zarrdask.parallel.execution.frisky import frisky_address
from zarrdask.storage.base import Store
from zarrdask.storage.locks.chunk_locks import Lock
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.locks.lock_files import lock_place

#: The number of lock names. A scheduler never forgets a name, so units share these.
_NAME_COUNT = 4096


def among_workers(locked_at: str | None = None) -> Lock | None:
    """Return the lock of stored units for a task of a cluster on several machines; else None.

    `locked_at` is the `lock_place` of the process that made the task, if that is another process.

    Workers that are all on one machine need no lock of the cluster: the locks of that machine are
    faster, and end with the worker that holds them. A lock of the cluster outlives its worker
    until its lease ends (``distributed.scheduler.locks.lease-timeout``).
    """
    addresses = _worker_addresses()
    if _are_on_several_machines(addresses):
        return cluster_lock
    return None if addresses or _shares_locks(locked_at) else _refuse


def shape_lock(
    node: NodePath, locked_at: str | None = None
) -> AbstractContextManager[Lease | None]:
    """Return the lock to hold while the shape of an array is changed: `NodePath.exclusive`.

    Tasks and clients of a cluster on several machines share it. `locked_at` is as above.
    """
    secede_if_worker()
    addresses = _worker_addresses() or client_addresses()
    if _are_on_several_machines(addresses):
        return node.exclusive("shape", cluster_shape_lock)
    is_alone = addresses or (_shares_locks(locked_at) and not _may_be_elsewhere())
    return node.exclusive("shape", None if is_alone else _refuse)


def check_parts_are_locked(store: Store) -> None:
    """Check that tasks of the current scheduler can change parts of the units of a store."""
    has = store.capabilities
    if _may_be_elsewhere() and not (has.compare_and_swap or has.forks):
        _refuse(store.url)


def _shares_locks(locked_at: str | None) -> bool:
    """Whether the process that made this task locks the same files, or is this one."""
    return locked_at is None or locked_at == lock_place()


def _may_be_elsewhere() -> bool:
    """Whether Frisky, which has no locks, may have workers on other machines."""
    address = frisky_address()
    return address is not None and not is_here(address)


def _refuse(name: str) -> AbstractContextManager[object]:
    """Raise an error: a lock of several machines that have no locks in common."""
    raise StoreError(
        "writers on several machines can't exclude each other here: the store has no "
        "conditional writes, and the scheduler (such as Frisky) no locks; compute this on a "
        "cluster of dask.distributed or on one machine, or write whole chunks or shards only",
        key=name,
        found=frisky_address(),
    )


def secede_if_worker() -> None:
    """Leave the thread pool of the worker, if any, as this task may wait for another one of it."""
    if _worker_addresses():
        from distributed import secede

        with suppress(KeyError):  # The task has seceded already.
            secede()


def _worker_addresses() -> list[str]:
    """Return the addresses of this worker and its scheduler; none outside of a cluster's tasks."""
    worker = current_worker()
    if worker is None:
        return []
    # Even a worker on another machine may reach the scheduler by a loopback address (a tunnel).
    return [worker.scheduler.address, worker.address]


def client_addresses() -> list[str]:
    """Return the addresses of the scheduler of the current client and of its workers."""
    client = current_client()
    if client is None:
        return []
    return [client.scheduler.address, *client.scheduler_info(n_workers=-1)["workers"]]


def _are_on_several_machines(addresses: list[str]) -> bool:
    return not all(map(is_here, addresses))


@lru_cache(maxsize=1024)
def is_here(address: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_here("tcp://127.0.0.1:8786"), is_here("tcp://10.0.0.7:8786")
    (True, False)
    """
    from distributed import comm

    if address.startswith(("inproc://", "unix://")):
        return True
    try:
        return ip_address(comm.get_address_host(address)).is_loopback
    except ValueError:
        return False


def _cluster_lock(kind: str, name: str) -> AbstractContextManager[object]:
    """Return a lock that all tasks of a cluster share."""
    from distributed import Lock as ClusterLock

    number = crc32(name.encode(errors="surrogateescape")) % _NAME_COUNT
    return ClusterLock(f"zarrdask-{kind}-{number:x}")  # type: ignore[no-any-return]


#: The lock of a stored unit, by its name.
cluster_lock = partial(_cluster_lock, "unit")
#: The lock of an array's shape, by its name; its holder may acquire locks of units, too.
cluster_shape_lock = partial(_cluster_lock, "shape")
