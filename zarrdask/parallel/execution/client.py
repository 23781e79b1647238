"""The current Dask client and worker, and whether tasks run in other processes."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import get_scheduler
from dask.system import CPU_COUNT

from zarrdask.errors import StoreError
from zarrdask.parallel.execution.dask_private import total_threads
from zarrdask.parallel.execution.frisky import frisky_address
from zarrdask.storage.base import Store

_SYNCHRONOUS = ("sync", "synchronous", "single-threaded")


def current_client() -> Any:
    """Return the `distributed.Client` that Dask computes with now, or None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    # There may be a client although the user has chosen another scheduler.
    return client if getattr(get_scheduler(), "__self__", None) == client else None


def current_worker() -> Any:
    """Return the `distributed.Worker` that runs this task; None outside of a cluster's tasks."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def is_computing() -> bool:
    """Whether a client of this process waits for results."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Client

    clients = [*getattr(Client, "_instances", ())]
    futures = [future for client in clients for future in [*client.futures.values()]]
    return any(future.status == "pending" for future in futures)


def thread_count() -> int:
    """Return the number of tasks that run at a time on the current scheduler, as far as known."""
    client = current_client()
    if client is not None:
        return max(total_threads(client), 1)
    return int(dask.config.get("num_workers", None) or CPU_COUNT)


def local_threads() -> int:
    """Return the number of threads of this process that run tasks; 1 if others may run them."""
    scheduler = getattr(get_scheduler(), "__module__", None) or "dask.threaded"
    return thread_count() if scheduler == "dask.threaded" else 1


@contextmanager
def scheduler_in_task() -> Iterator[dict[str, Any]]:
    """Yield the options with which a task may itself call `dask.compute`.

    A task of a cluster, which must have seceded, uses that cluster. Other tasks get a thread pool
    of their own, as they may occupy all threads of their scheduler.
    """
    if current_worker() is not None or dask.config.get("scheduler", None) in _SYNCHRONOUS:
        yield {}
        return
    count = dask.config.get("num_workers", None) or CPU_COUNT
    with ThreadPoolExecutor(count, thread_name_prefix="zarrdask-nested") as pool:
        yield {"scheduler": "threads", "pool": pool}


def check_visible(store: Store) -> None:
    """Check that the tasks of the current scheduler or client can read a store."""
    elsewhere = None if store.capabilities.shared else other_processes()
    if elsewhere is not None:
        raise StoreError(
            "this store is in the memory of one process, where tasks in other processes can't see "
            f"it; {store.identity.unshared_advice}",
            key=store.url,
            found=elsewhere,
        )


def check_changeable(store: Store) -> None:
    """Check that the tasks of the current scheduler or client can write to a store, or a fork."""
    elsewhere = other_processes() if store.capabilities.one_writer else None
    if elsewhere is not None:
        raise written_elsewhere(store, elsewhere)
    if not store.capabilities.forks:
        check_visible(store)


def written_elsewhere(store: Store, found: str | None = None) -> StoreError:
    """Return the error for tasks in other processes that would write to a store of one writer."""
    return StoreError(
        "a zip archive is written by one process, and these tasks run in other processes; write a "
        'directory and zarrdask.copy(directory, archive, scheduler="threads"), or compute in '
        'threads by dask.config.set(scheduler="threads")',
        key=store.url,
        found=found,
    )


def worker_addresses(client: Any) -> list[str]:
    """Return the addresses of the workers in other processes than their scheduler.

    If the cluster has no workers (they may join later, or were lost), the result is the address of
    the scheduler.
    """
    addresses = [*client.nthreads()] or [client.scheduler.address]
    return [address for address in addresses if not address.startswith("inproc://")]


def other_processes() -> str | None:
    """Return which other processes tasks of the current scheduler run in; None if in none."""
    addresses: list[str] = []
    client, frisky = current_client(), frisky_address()
    if frisky is not None:
        addresses = [] if frisky.startswith("inproc://") else [f"workers of Frisky at {frisky}"]
    elif client is not None:
        addresses = [f"workers at {each}" for each in worker_addresses(client)]
    elif getattr(get_scheduler(), "__module__", None) == "dask.multiprocessing":
        addresses = ["the scheduler 'processes'"]
    if not addresses:
        return None
    return f"{addresses[0]}{' and others' if len(addresses) > 1 else ''}"
