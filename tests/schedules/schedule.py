"""Run two writers in one schedule, and compare what they left with what they may leave.

After each schedule, both results are there in some order, or one writer got a typed error and the
result of the other one is whole. What is whole is what the verbs store one after another.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.clocks import Clock
from tests.crashes.stores import Killed
from tests.schedules.stores import Pause
from zarrdask.arrays.hierarchy import claim
from zarrdask.errors import ZarrdaskError
from zarrdask.runtime import in_flight, threads
from zarrdask.runtime.request_threads import RequestThreads
from zarrdask.storage.locks import chunk_locks as locks
from zarrdask.storage.locks import leases, unchanged

#: The verb of a writer: takes its store and its number, 0 or 1.
Act = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Verb:
    """A verb: a row of the harness."""

    run: Act
    #: Stores what is there before.
    before: Callable[[Any], Any]
    #: Whether two writers of this verb do the same, so that both may succeed.
    is_same: bool = False


class Ending(NamedTuple):
    """How two writers ended: the type of the error of each, or None; and what a reader sees."""

    errors: tuple[type[BaseException] | None, type[BaseException] | None]
    seen: Any

    @property
    def done(self) -> tuple[bool, bool]:
        """Which writers succeeded."""
        return self.errors[0] is None, self.errors[1] is None


@dataclass(frozen=True)
class Pair:
    """Two verbs that are run by two writers of one store, on one machine or on two."""

    verbs: tuple[Verb, Verb]
    store: Any
    read: Callable[[Any], Any]
    machines: tuple[int, int] = (1, 1)
    #: Where the store is: pairs with equal names start with the same, if their first verbs do.
    place: str = ""

    def run(self, writer: int, pause: Pause) -> type[BaseException] | None:
        """Run the verb of a writer, and return the type of its error."""
        with self.store.writer(pause, self.machines[writer]) as store:
            try:
                self.verbs[writer].run(store, writer)
            except (Killed, ZarrdaskError, OSError) as error:
                return type(error)
        return None

    def ending(self, errors: Any) -> Ending:
        """Return how the writers ended."""
        with self.store.reader() as store:
            return Ending(tuple(errors), self.read(store))

    def alone(self, writer: int, start: Any) -> tuple[Ending, int]:
        """Return how one writer alone ends, and the number of its operations.

        Each verb is run alone once for all the pairs that it is in.
        """
        key = self.place, self.verbs[0].before, self.verbs[writer], writer
        if key not in _ALONE:
            self.store.restore(start)
            _ALONE[key] = self._alone(writer)
        return _ALONE[key]

    def _alone(self, writer: int) -> tuple[Ending, int]:
        errors: list[Any] = [Killed, Killed]
        pause = Pause()
        errors[writer] = self.run(writer, pause)
        return self.ending(errors), len(pause.log)

    def in_order(self, first: int) -> Ending:
        """Run one writer after the other."""
        errors = [None, None]
        for writer in (first, 1 - first):
            errors[writer] = self.run(writer, Pause())
        return self.ending(errors)

    def paused(self, first: int, number: int) -> tuple[Ending, str]:
        """Run one writer, and the other one while it stands still before an operation.

        If the other one waits for it, it goes on. The second result is that operation.
        """
        errors: list[Any] = [None, None]
        other: list[threading.Thread] = []

        def run_other() -> None:
            errors[1 - first] = self.run(1 - first, Pause())

        def pause() -> None:
            with waiting(run_other) as thread:
                other.append(thread)

        at = Pause(number, pause)
        errors[first] = self.run(first, at)
        for thread in other:
            thread.join()
        return self.ending(errors), " ".join(at.log[number]) if number < len(at.log) else "the end"


#: What `Pair.alone` returned.
_ALONE: dict[Any, tuple[Ending, int]] = {}


@contextmanager
def waiting(call: Callable[[], None]) -> Iterator[threading.Thread]:
    """Run a call in a thread; the block is entered when the call ends, or waits for a lock."""
    stopped = threading.Event()

    def run() -> None:
        try:
            call()
        finally:
            stopped.set()

    thread = threading.Thread(target=run, daemon=True)
    STOPPED[:] = [stopped]
    thread.start()
    stopped.wait()
    yield thread


#: The event that says that the second writer ended or waits.
STOPPED: list[threading.Event] = []


def note_waiting() -> None:
    """Note that a writer waits for the other one, maybe in a thread of its own."""
    for stopped in STOPPED:
        stopped.set()


class NotedLock:
    """A lock of threads that notes who waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            note_waiting()
            self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Acquire the lock as `threading.Lock` does."""
        return self._lock.acquire(blocking=blocking)

    release = __exit__


class NotedClock(Clock):
    """A clock that does not wait for time to pass: a writer that sleeps waits for another one."""

    def sleep(self, seconds: float) -> None:
        note_waiting()
        super().sleep(seconds)
        threading.Event().wait(0.001)


class _Threads:
    Lock = NotedLock

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


class _InThread:
    """A pool that does the work in the thread of its caller, so that writers share no threads."""

    def submit(self, work: Callable[[Any], Any], item: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(item))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def noted_waits() -> Iterator[None]:
    """Note which writers wait for locks and leases."""
    import fcntl

    flock = fcntl.flock

    def noted(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX:
            try:
                flock(fd, operation | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                note_waiting()
        flock(fd, operation)

    with (
        patch.object(fcntl, "flock", noted),
        patch.object(locks, "threading", _Threads()),
        patch.object(unchanged, "time", clock := NotedClock()),
        patch.object(leases, "time", clock),
        patch.object(claim, "time", clock),
        patch.object(threads, "thread_pool", lambda _: _InThread()),
        patch.object(in_flight, "request_threads", lambda _: RequestThreads(0)),
    ):
        yield
        STOPPED.clear()


def check(pair: Pair, pauses: int | None = None, turn: int = 0) -> None:
    """Check a pair with a pause before each operation of the first writer, or before some.

    Other turns check other operations.
    """
    start = pair.store.snapshot()
    orders, alone, count = list[Ending](), list[Ending](), 0
    for writer in (0, 1):
        pair.store.restore(start)
        orders.append(pair.in_order(writer))
        ending, operations = pair.alone(writer, start)
        alone.append(ending)
        count = count if writer else operations
    is_same = pair.verbs[0].is_same and pair.verbs[1].is_same
    step = 1 if pauses is None else max(-(-count // pauses), 1)
    for number in range(turn % step, count, step):
        pair.store.restore(start)
        ending, reached = pair.paused(0, number)
        problem = find_problem(ending, orders, alone, is_same=is_same)
        assert problem is None, f"{problem}, after a pause before {reached} (number {number})"


def find_problem(
    ending: Ending, orders: list[Ending], alone: list[Ending], *, is_same: bool
) -> str | None:
    """Return what is wrong with how two writers ended, if anything is."""
    whole = [each.seen for each in orders if is_same or each.done == (True, True)]
    if ending.done == (True, True):
        if ending.seen in whole:
            return None
        wanted = f"one of {whole}" if whole else "an error of one of them"
        return f"both succeeded, and a reader sees {ending.seen}, not {wanted}"
    if not any(ending.done):
        if any(not any(each.done) for each in orders):
            return None
        return f"neither succeeded: {[each.__name__ for each in ending.errors]}"
    winner = ending.done.index(True)
    whole += [alone[winner].seen]
    whole += [each.seen for each in orders if each.done[winner]]
    if ending.seen in whole:
        return None
    return (
        f"writer {winner} succeeded, the other one got {ending.errors[1 - winner].__name__}, and a "
        f"reader sees {ending.seen}, not one of {whole}"
    )
