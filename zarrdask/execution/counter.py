"""Count what tasks have done before they end, in whatever process they run.

A task calls its counter with the bytes that it has read or written. In threads that counts at
once; other processes of this machine share a number; workers of a cluster send events through the
scheduler, a few each second.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

from zarrdask.execution.progress import Progress

#: Called with the number of a task, and the bytes that it has done so far.
Report = Callable[[int, int], None]

#: Seconds between two reports of a task of another process, and between two looks at a number
#: that processes share.
_INTERVAL = 0.2
#: The topics of events, by client, that are in use. A client has one handler for each topic, and a
#: scheduler never forgets a topic: so these are few, and used again.
_topics: set[tuple[str, str]] = set()
_topics_mutex = threading.Lock()


class Counter:
    """What one task has done; its threads share it.

    Parameters
    ----------
    number : int
        The number of the task.
    report : callable
        Called with the number and the bytes done so far.
    """

    def __init__(self, number: int, report: Report) -> None:
        self._number, self._report, self._mutex = number, report, threading.Lock()
        self._done = 0

    def __call__(self, nbytes: int) -> None:
        """Count bytes that were read or written."""
        with self._mutex:
            self._done += nbytes
            self._report(self._number, self._done)


class Tasks:
    """What all tasks have done, as bytes of a progress bar.

    A task that runs twice is counted once: what it reported last counts, until it ends.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress, self._mutex = progress, threading.Lock()
        self._running: dict[int, int] = {}
        self._ended: set[int] = set()
        self._ended_bytes = self._total = self._shown = 0

    def report(self, number: int, nbytes: int) -> None:
        """Note how many bytes a task has done so far."""
        with self._mutex:
            if number not in self._ended:
                self._running[number] = nbytes
                self._show()

    def report_total(self, nbytes: int) -> None:
        """Note how many bytes all tasks have done so far, where nothing runs twice."""
        with self._mutex:
            self._total = nbytes
            self._show()

    def end(self, number: int, nbytes: int) -> None:
        """Note that a task has ended, and how many bytes it has done."""
        with self._mutex:
            self._ended.add(number)
            self._running.pop(number, None)
            self._ended_bytes += nbytes
            self._show()

    def _show(self) -> None:
        now = max(self._ended_bytes + sum(self._running.values()), self._total)
        self.progress.advance(now - self._shown)
        self._shown = now


@contextmanager
def reports(tasks: Tasks, on: Any) -> Iterator[Any]:
    """Yield what makes the reports of tasks, or None if nobody sees the progress bar.

    Parameters
    ----------
    tasks : Tasks
        Gets the reports.
    on : Workers
        What the tasks run on.

    Yields
    ------
    callable or None
        It pickles where tasks are pickled. Called in a task, it returns a `Report`.
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


def _direct(tasks: Tasks) -> Report:
    """Return what reports from a thread of this process."""
    return tasks.report


# --------------------------------------------------------------------------------------------
# Clusters


@contextmanager
def _events(tasks: Tasks, client: Any) -> Iterator[Any]:
    """Yield what makes reports that workers send to this client."""
    run = uuid4().hex

    def handle(event: tuple[float, Any]) -> None:
        # Another client may use this topic, too.
        name, number, nbytes = event[1]
        if name == run:
            tasks.report(number, nbytes)

    with _topics_mutex:
        names = (f"zarrdask-progress-{number}" for number in count())
        topic = next(name for name in names if (client.id, name) not in _topics)
        _topics.add((client.id, topic))
    try:
        client.subscribe_topic(topic, handle)
        try:
            yield partial(_by_event, topic, run)
        finally:
            client.unsubscribe_topic(topic)
    finally:
        with _topics_mutex:
            _topics.remove((client.id, topic))


def _by_event(topic: str, run: str) -> Report:
    """Return what reports from a worker of a cluster."""
    from distributed import get_worker

    worker, last = get_worker(), monotonic()

    def report(number: int, nbytes: int) -> None:
        nonlocal last
        if monotonic() - last >= _INTERVAL:
            last = monotonic()
            worker.log_event(topic, (run, number, nbytes))

    return report


# --------------------------------------------------------------------------------------------
# Processes of this machine

#: The number of bytes that all processes of a pool have done: in these, set by `share`.
_counted: Any = None


def share(counted: Any) -> None:
    """Let the tasks of this process count with a number that all processes of its pool share."""
    global _counted  # noqa: PLW0603
    _counted = counted


def _in_process() -> Report:
    """Return what reports from a process of a pool."""
    before = 0

    def report(_: int, nbytes: int) -> None:
        nonlocal before
        with _counted.get_lock():
            _counted.value += nbytes - before
        before = nbytes

    return report


@contextmanager
def _watched(tasks: Tasks, counted: Any) -> Iterator[None]:
    """Report now and then what the processes of a pool have done."""
    # Without the lock, which a process that was killed may hold.
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
