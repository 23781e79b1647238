"""Run one task for each of many items, on whatever Dask scheduler is current."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import cloudpickle
import dask
from dask.base import get_scheduler
from dask.multiprocessing import get_context
from dask.system import CPU_COUNT

from zarrdask.errors import MetadataError
from zarrdask.execution.counter import share
from zarrdask.storage.base import Store

T = TypeVar("T")

R = TypeVar("R")

#: Tasks that are handed out before their turn, for each that runs: workers never wait for us.
_AHEAD = 3


class Workers(NamedTuple):
    """What tasks run on.

    Attributes
    ----------
    executor : concurrent.futures.Executor or None
        None: they run here, one after another.
    processes : int
        How many there are.
    threads : int
        How many tasks each runs at a time.
    get : callable, optional
        Dask's own, of the scheduler: computes graphs; that of the collection, if absent.
    client : distributed.Client, optional
        Of the cluster, if they are its workers.
    counted : multiprocessing.Value, optional
        A number that the processes of a pool share; see `zarrdask.execution.counter`.
    """

    executor: Executor | None
    processes: int
    threads: int
    get: Callable[..., Any] | None = None
    client: Any = None
    counted: Any = None


@contextmanager
def workers(scheduler: Any = None) -> Iterator[Workers]:
    """Have what tasks run on.

    Parameters
    ----------
    scheduler : str or distributed.Client, optional
        "threads", "processes", "sync", a client, or the address of a scheduler; the one that is
        current, if absent, or threads.

    Raises
    ------
    MetadataError
        If it is none of these.
    """
    if isinstance(scheduler, str) and "://" in scheduler:
        from distributed import Client

        _check_address(scheduler)
        with Client(scheduler, set_as_default=False) as client, workers(client) as found:
            yield found
        return
    try:
        get = get_scheduler(scheduler=scheduler)
    except ValueError as error:
        raise MetadataError(
            "not a scheduler",
            key="scheduler",
            found=scheduler,
            expected="'threads', 'processes', 'sync', a client, or an address",
        ) from error
    client = getattr(get, "__self__", None)
    if client is not None:
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
    elif kind == "dask.threaded":
        with ThreadPoolExecutor(number, thread_name_prefix="zarrdask-task") as threads:
            yield Workers(threads, 1, number, get)
    else:
        yield Workers(None, 1, 1, get)


def _check_address(address: str) -> None:
    """Check what a client would try again and again, and never say."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address, strict=True)
        get_backend(scheme)
        if scheme in ("tcp", "tls", "ws", "wss"):
            parse_host_port(place)
    except ValueError as error:
        raise MetadataError(
            f"not the address of a scheduler: {error}",
            key="scheduler",
            found=address,
            expected="such as tcp://127.0.0.1:8786",
        ) from error


class _Pickling(Executor):
    """Hands tasks to other processes as Dask does: a script's own functions go with them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        packed = cloudpickle.dumps((fn, args, kwargs))
        # This starts processes: an interrupt waits until they can take it; see `_end_silently`.
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
    share(counted)
    _end_silently()


def _end_silently() -> None:
    """Let an interrupt, which comes to all processes of a terminal, end this one: we tell of it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _call(packed: bytes) -> Any:
    function, args, kwargs = cloudpickle.loads(packed)
    return function(*args, **kwargs)


def run(
    task: Callable[[T], R],
    items: Sequence[T],
    *,
    scheduler: Any = None,
    finished: Callable[[int, R], None] | None = None,
) -> list[R]:
    """Run a task for each item, in any order.

    Parameters
    ----------
    task : callable
        Of one item. On a cluster it may run more than once, as a worker may be lost.
    items : sequence
        Both pickle, if they leave this process.
    scheduler : str, distributed.Client or Workers, optional
        As in `workers`.
    finished : callable, optional
        Called here, with the number of the item and the result, after each.

    Returns
    -------
    list
        What the tasks returned, in the order of the items.

    Raises
    ------
    Exception
        The first that a task raised. What ran at that time has ended; the others were not begun.
    """
    if isinstance(scheduler, Workers):
        return _run(scheduler, task, items, finished or _ignore)
    with workers(scheduler) as found:
        return _run(found, task, items, finished or _ignore)


def _ignore(number: int, result: Any) -> None:
    """Do nothing."""


def _run(
    on: Workers,
    task: Callable[[T], R],
    items: Sequence[T],
    finished: Callable[[int, R], None],
) -> list[R]:
    results: dict[int, R] = {}
    running: dict[Future[R], int] = {}
    left = iter(range(len(items)))

    def take(number: int, result: R) -> None:
        results[number] = result
        finished(number, result)

    if on.executor is None:
        for number in left:
            take(number, task(items[number]))
        return [results[number] for number in range(len(items))]
    room = on.processes * on.threads * _AHEAD
    try:
        while len(results) < len(items):
            # Few are handed out at a time: the scheduler need not know of millions.
            for number in islice(left, room - len(running)):
                running[on.executor.submit(task, items[number])] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                take(running.pop(future), future.result())
    finally:
        # A cluster calls that cancelled which goes on, and a pool of processes that end must not
        # meet what is cancelled: there, the few that were begun are done, or fail with the pool.
        cancels = isinstance(on.executor, ThreadPoolExecutor)
        wait([future for future in running if not (cancels and future.cancel())])
    return [results[number] for number in range(len(items))]


def check_reached(store: Store, on: Workers) -> None:
    """Check that tasks see a store, before they take what they can't reach for damaged.

    Raises
    ------
    StoreError
        If it is in the memory of this process, and tasks run in others.
    """
    if not store.shared and on.executor is not None:
        run(find_store, [store], scheduler=on)


def find_store(store: Store) -> None:
    """Ask a store for something: the task."""
    store.get("zarr.json")
