"""Run a task for each of many items, on the current Dask scheduler or another one."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import cloudpickle
import dask
from dask.base import get_scheduler
from dask.multiprocessing import get_context
from dask.system import CPU_COUNT

from zarrdask.errors import MetadataError, StoreError, ZarrdaskError
from zarrdask.parallel.execution.client import worker_addresses, written_elsewhere
from zarrdask.parallel.execution.counter import share
from zarrdask.parallel.execution.frisky import frisky_client
from zarrdask.runtime.progress import Show, progress
from zarrdask.storage.base import Store

T = TypeVar("T")

R = TypeVar("R")

#: The number of submitted tasks for each task that can run, so that workers never wait for work.
_SUBMITTED_PER_SLOT = 3

#: The seconds after which it is checked again whether a cluster has workers.
CHECK_INTERVAL = 1.0


class Workers(NamedTuple):
    """The workers that tasks run on.

    Attributes
    ----------
    executor : concurrent.futures.Executor or None
        The executor of the tasks; None if they run in this thread, one after another.
    processes : int
        The number of processes.
    threads : int
        The number of tasks that each process runs at a time.
    get : callable, optional
        The function of the Dask scheduler that computes graphs; by default, the collection's.
    client : distributed.Client, optional
        The client of the cluster, if there is one.
    counted : multiprocessing.Value, optional
        The number that the processes of a pool share; see `zarrdask.parallel.execution.counter`.
    """

    executor: Executor | None
    processes: int
    threads: int
    get: Callable[..., Any] | None = None
    client: Any = None
    counted: Any = None

    @property
    def are_elsewhere(self) -> bool:
        """Whether tasks run in other processes."""
        if self.client is None:
            return self.counted is not None
        return bool(worker_addresses(self.client))

    @property
    def exist(self) -> bool:
        """Whether there are workers; a cluster may have lost all, or have none yet."""
        return self.client is None or bool(self.client.nthreads())


@contextmanager
def workers(scheduler: Any = None) -> Iterator[Workers]:
    """Yield the workers of a scheduler, which end with the block if it has started them.

    Parameters
    ----------
    scheduler : str, distributed.Client or Workers, optional
        "threads", "processes", "sync", a client, or the address of a scheduler. By default, the
        current scheduler, or threads if there is none, or if it is Frisky. Workers are yielded as
        they are, and go on.

    Raises
    ------
    MetadataError
        If `scheduler` is none of these.
    """
    if isinstance(scheduler, Workers):
        yield scheduler
        return
    if isinstance(scheduler, str) and "://" in scheduler:
        from distributed import Client

        _check_address(scheduler)
        with Client(scheduler, set_as_default=False) as client, workers(client) as pool:
            yield pool
        return
    try:
        # Dask would import distributed to look for a client, which takes longer than a small task.
        has_default = scheduler is None and "distributed" not in sys.modules
        has_default = has_default and not dask.config.get("scheduler", None)
        get = None if has_default else get_scheduler(scheduler=scheduler)
    except ValueError as error:
        is_cluster = hasattr(scheduler, "get_client")
        raise MetadataError(
            "a cluster needs a client; pass cluster.get_client()"
            if is_cluster
            else "unknown scheduler",
            key="scheduler",
            found=scheduler,
            expected="'threads', 'processes', 'sync', a client, or an address such as "
            "tcp://127.0.0.1:8786",
        ) from error
    frisky = frisky_client(get)
    client = getattr(get, "__self__", None)
    if client is not None and frisky is None:
        nthreads = list(client.nthreads().values()) or [1]
        with client.get_executor(pure=False) as executor:
            yield Workers(executor, len(nthreads), max(nthreads), get, client)
        return
    kind = getattr(get, "__module__", "dask.threaded")
    number = dask.config.get("num_workers", None) or CPU_COUNT
    if kind == "dask.multiprocessing":
        context = get_context()
        counted = context.Value("q", 0)
        with ProcessPoolExecutor(number, context, _begin_process, (counted,)) as processes:
            yield Workers(_Pickling(processes), number, 1, get, counted=counted)
    elif kind == "dask.threaded" or frisky is not None:
        with ThreadPoolExecutor(number, thread_name_prefix="zarrdask-task") as threads:
            yield Workers(threads, 1, number, get)
    else:
        yield Workers(None, 1, 1, get)


def _check_address(address: str) -> None:
    """Check the form of an address: a client would retry a wrong one, and report nothing."""
    import distributed  # noqa: F401
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, host = parse_address(address, strict=True)
        get_backend(scheme)
        if scheme in ("tcp", "tls", "ws", "wss"):
            parse_host_port(host)
    except ValueError as error:
        raise MetadataError(
            f"malformed address of a scheduler: {error}",
            key="scheduler",
            found=address,
            expected="such as tcp://127.0.0.1:8786",
        ) from error


class _Pickling(Executor):
    """Sends tasks to other processes by cloudpickle, like Dask, with functions of scripts."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        packed = cloudpickle.dumps((fn, args, kwargs))
        # This may start processes: an interrupt waits until they handle it; see `_begin_process`.
        with _interrupts_delayed():
            return self._executor.submit(_call, packed)


@contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Let an interrupt wait until the end of the block; Windows can't."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process(counted: Any) -> None:
    """Share the number `counted`, and let an interrupt end this process without a traceback.

    A terminal sends the interrupt to all of its processes, and the parent process reports it.
    """
    share(counted)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _call(packed: bytes) -> Any:
    function, args, kwargs = cloudpickle.loads(packed)
    return function(*args, **kwargs)


@dataclass(frozen=True)
class NamedTask(Generic[T, R]):
    """A task with the name that dashboards of clusters show."""

    task: Callable[[T], R]
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, item: T) -> R:
        return self.task(item)


def run(
    task: Callable[[T], R],
    items: Sequence[T],
    *,
    on: Workers,
    finished: Callable[[int, R], None] = lambda number, result: None,
    name: Callable[[T], str] | None = None,
) -> list[R]:
    """Run a task for each item, in any order, and return the results in the order of the items.

    On a cluster, a task may run more than once, if a worker is lost. The task and the items can be
    pickled if the scheduler uses other processes. `finished` is called in this process after each
    task, with the number of the item and the result. `name` returns the name of the task for an
    item, which dashboards of clusters show.

    The first exception of a task is raised again: tasks that were running then have ended, and no
    others have been started.
    """
    results: dict[int, R] = {}
    running: dict[Future[R], int] = {}
    remaining = iter(range(len(items)))

    def take(number: int, result: R) -> None:
        results[number] = result
        finished(number, result)

    if on.executor is None:
        for number in remaining:
            take(number, task(items[number]))
        return [results[number] for number in range(len(items))]
    limit = on.processes * on.threads * _SUBMITTED_PER_SLOT
    try:
        while len(results) < len(items):
            # Few tasks are submitted at a time, so that a scheduler need not hold millions.
            for number in islice(remaining, limit - len(running)):
                item = items[number]
                shown = task if name is None else NamedTask(task, name(item))
                running[on.executor.submit(shown, item)] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                take(running.pop(future), future.result())
    except BaseException as error:
        # A cluster reports running tasks as cancelled, and a pool of dying processes fails on
        # cancelled ones: there, the few submitted tasks are awaited, or fail with the pool.
        cancels = isinstance(on.executor, ThreadPoolExecutor)
        awaited = [future for future in running if not (cancels and future.cancel())]
        for future in _ended(on, awaited, error):
            # These tasks are finished, and the record must include them.
            if not future.cancelled() and future.exception() is None:
                with suppress(ZarrdaskError):
                    finished(running[future], future.result())
        raise
    return [results[number] for number in range(len(items))]


def _ended(on: Workers, futures: Sequence["Future[R]"], error: BaseException) -> list["Future[R]"]:
    """Wait until tasks have ended, as long as there are workers that may be running them.

    `error` is the reason for it, and the one that is raised: it gets a note if waiting fails.
    """
    try:
        while waiting := wait(futures, timeout=CHECK_INTERVAL).not_done:
            if not on.exist:
                for future in waiting:
                    future.cancel()
                break
    except Exception as failure:  # noqa: BLE001 - such as a lost connection to a cluster
        error.add_note(f"tasks may still be running, as waiting for them failed: {failure!r}")
    return [future for future in futures if future.done()]


def run_shown(
    task: Callable[[T], R],
    items: Sequence[T],
    label: str,
    *stores: Store,
    scheduler: Any,
    show: Show,
    sizes: Sequence[int] | None = None,
    **options: Any,
) -> list[R]:
    """Run a task, which accesses `stores`, for each item; show the progress by items or sizes.

    The options are the same as for `zarrdask.runtime.progress.progress`.
    """
    steps = [1] * len(items) if sizes is None else sizes
    bar = progress(sum(steps), label, show, **options)
    with workers(scheduler) as on, bar as shown:
        check_reached(on, *stores)
        return run(task, items, on=on, finished=lambda number, _: shown.advance(steps[number]))


def check_reached(on: Workers, *stores: Store, changed: Store | None = None) -> None:
    """Check that tasks can access stores, before they report their content as missing.

    For the store that they change, a fork is enough.
    """
    if changed is not None and changed.capabilities.one_writer and on.are_elsewhere:
        raise written_elsewhere(changed)
    if changed is not None and not changed.capabilities.forks:
        stores = (*stores, changed)
    for store in stores:
        if store.capabilities.shared or not on.are_elsewhere:
            continue
        try:
            cloudpickle.dumps(store)  # fails here with the store's own error, not with Dask's
            if not on.exist:
                # The task would wait for a worker, without limit and without a message.
                raise StoreError("the cluster has no workers", key=store.url)
            run(find_store, [store], on=on)
        except StoreError as error:
            raise StoreError(
                "this store is in the memory of one process, so other processes can't access it; "
                f"{store.identity.unshared_advice}",
                key=store.url,
            ) from error


def find_store(store: Store) -> None:
    """Request any value of a store: the task of `check_reached`."""
    store.get("zarr.json")
