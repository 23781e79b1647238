"""Count the bytes that running tasks have read and written, in any process.

A task calls its counter with each number of bytes. Threads of this process add to the progress
directly; other processes of this machine add to a shared number; workers of a cluster send events
through the scheduler, a few per second.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

from zarrdask.runtime.progress import Progress

#: A callable that takes the number of a task and the bytes that it has processed so far.
Reporter = Callable[[int, int], None]

#: The seconds between two reports of a task on a cluster, and between two readings of the number
#: that processes share.
_INTERVAL = 0.2
#: The topics of events in use, by client. A client has one handler for each topic, and a scheduler
#: never forgets a topic, so topics are reused.
_topics: set[tuple[str, str]] = set()
_topics_mutex = threading.Lock()


class Counter:
    """The bytes that one task, with a number, has processed. Threads of the task may share it."""

    def __init__(self, number: int, report: Reporter) -> None:
        self._number, self._report, self._mutex = number, report, threading.Lock()
        self._done = 0

    def __call__(self, nbytes: int) -> None:
        """Add bytes that were read or written."""
        with self._mutex:
            self._done += nbytes
            self._report(self._number, self._done)


class Tasks:
    """The bytes that all tasks have processed, shown by a progress bar.

    A task that runs twice is counted once: its last report counts, until it ends.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress, self._mutex = progress, threading.Lock()
        self._running: dict[int, int] = {}
        self._ended: set[int] = set()
        self._ended_bytes = self._total = self._shown = 0

    def report(self, number: int, nbytes: int) -> None:
        """Set the number of bytes that a running task has processed so far."""
        with self._mutex:
            if number not in self._ended:
                self._running[number] = nbytes
                self._show()

    def report_total(self, nbytes: int) -> None:
        """Set the number of bytes that all tasks have processed, if none of them runs twice."""
        with self._mutex:
            self._total = nbytes
            self._show()

    def end(self, number: int, nbytes: int) -> None:
        """Record that a task has ended, and the number of bytes that it has processed."""
        with self._mutex:
            self._ended.add(number)
            self._running.pop(number, None)
            self._ended_bytes += nbytes
            self._show()

    def _show(self) -> None:
        total = max(self._ended_bytes + sum(self._running.values()), self._total)
        self.progress.advance(total - self._shown)
        self._shown = total


@contextmanager
def reports(tasks: Tasks, on: Any) -> Iterator[Any]:
    """Yield the function that returns the `Reporter` of a task, which updates `tasks`, within it.

    None, if no bar is displayed. The function can be pickled if the tasks of the workers `on` are.
    """
    if not tasks.progress.is_shown:
        yield None
    elif on.client is not None:
        with _events(tasks, on.client) as report:
            yield report
    elif on.counted is not None:
        with _watched(tasks, on.counted):
            yield _in_process
    else:
        yield partial(_direct, tasks)


def _direct(tasks: Tasks) -> Reporter:
    """Return the report of a task in a thread of this process."""
    return tasks.report


# --------------------------------------------------------------------------------------------
# Clusters


@contextmanager
def _events(tasks: Tasks, client: Any) -> Iterator[Any]:
    """Yield the function for tasks of a cluster, whose workers send events to this client."""
    run_name = uuid4().hex

    def handle(event: tuple[float, Any]) -> None:
        # Other clients may use the same topic.
        name, number, nbytes = event[1]
        if name == run_name:
            tasks.report(number, nbytes)

    with _topics_mutex:
        names = (f"zarrdask-progress-{number}" for number in count())
        topic = next(name for name in names if (client.id, name) not in _topics)
        _topics.add((client.id, topic))
    try:
        client.subscribe_topic(topic, handle)
        try:
            yield partial(_by_event, topic, run_name)
        finally:
            client.unsubscribe_topic(topic)
    finally:
        with _topics_mutex:
            _topics.remove((client.id, topic))


def _by_event(topic: str, run_name: str) -> Reporter:
    """Return the report of a task in a worker of a cluster."""
    from distributed import get_worker

    worker, last = get_worker(), monotonic()

    def report(number: int, nbytes: int) -> None:
        nonlocal last
        if monotonic() - last >= _INTERVAL:
            last = monotonic()
            worker.log_event(topic, (run_name, number, nbytes))

    return report


# --------------------------------------------------------------------------------------------
# Processes of this machine

#: The number of bytes that all processes of a pool have processed; set in each of them by `share`.
_counted: Any = None


def share(counted: Any) -> None:
    """Set the number that the tasks of this process add to, shared by all processes of a pool."""
    global _counted  # noqa: PLW0603
    _counted = counted


def _in_process() -> Reporter:
    """Return the report of a task in a process of a pool."""
    reported = 0

    def report(_: int, nbytes: int) -> None:
        nonlocal reported
        with _counted.get_lock():
            _counted.value += nbytes - reported
        reported = nbytes

    return report


@contextmanager
def _watched(tasks: Tasks, counted: Any) -> Iterator[None]:
    """Update the counts at intervals from the number that the processes of a pool share."""
    # Read without the lock, which a killed process may hold for ever.
    start, ended = counted.get_obj().value, threading.Event()

    def watch() -> None:
        while not ended.wait(_INTERVAL):
            tasks.report_total(counted.get_obj().value - start)

    thread = threading.Thread(target=watch, name="zarrdask-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
