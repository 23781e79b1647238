"""Counts of the reads and writes of workers, in the fine performance metrics of `distributed`.

Nothing here imports `distributed`: a process in which it was not imported is not a worker.
"""

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from zarrdask.runtime import counters, measuring, process_counts
from zarrdask.runtime.counters import NAMES, Counts, Labels

#: The units of the metrics that do not count events.
_UNITS = {
    **dict.fromkeys(("fetched", "stored"), "bytes"),
    **dict.fromkeys(("waiting", "decoding", "encoding", "locked"), "seconds"),
}
#: The names and units of the metrics. `distributed` measures the seconds of tasks itself.
_METRICS = {
    name: (f"zarr-{name}", _UNITS.get(name, "count"))
    for name in NAMES
    if name not in ("elapsed", "operations")
}


def task_key() -> Any:
    """Return the key of the task that this thread of a worker runs, or None."""
    state = getattr(sys.modules.get("distributed.worker"), "thread_state", None)
    return getattr(state, "key", None) if hasattr(state, "execution_state") else None


def task_prefix(key: Any) -> str:
    """Return the prefix of the name of a task."""
    # The tasks of one array differ in the rest of a tuple.
    return _prefix(key[0] if isinstance(key, tuple) else key)


@lru_cache(maxsize=1024)
def _prefix(name: Any) -> str:
    key_split = getattr(sys.modules.get("dask.utils"), "key_split", str)
    return str(key_split(name))


#: What `measure_worker` was given last: called when the last worker of this process has ended.
_at_end: list[Callable[[], object]] = []


def measure_worker(at_end: Callable[[], object]) -> None:
    """Count what tasks do if there is a worker of `distributed` in this process, until it closes.

    `at_end` lets this function be called again for a later worker.
    """
    if _report_task in counters.REPORTS or not _has_worker():
        return
    _at_end[:] = [at_end]
    process_counts.end()
    measuring.begin(_report_task)


def _has_worker() -> bool:
    """Whether there is a worker in this process that is not closed."""
    worker = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    workers = () if worker is None else [*worker._instances]
    return any(each.status.name not in ("closed", "failed") for each in workers)


def _report_task(_labels: Labels, counts: Counts) -> None:
    """Add counts to the metrics of the task."""
    meter = getattr(sys.modules.get("distributed.metrics"), "context_meter", None)
    if meter is None or task_key() is None:
        # The cluster of a process that goes on may have been closed.
        if not _has_worker():
            measuring.end(_report_task)
            for act in _at_end:
                act()
        return
    for name, number in counts.items():
        if name in _METRICS:
            label, unit = _METRICS[name]
            meter.digest_metric(label, number, unit)


def totals() -> tuple[str, dict[Labels, Counts]]:
    """Return a name of this process, and what its tasks have counted so far."""
    return (
        f"{os.uname().nodename if hasattr(os, 'uname') else ''}-{os.getpid()}",
        measuring.totals(),
    )
