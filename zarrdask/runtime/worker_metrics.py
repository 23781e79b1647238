"""Counts of the reads and writes of workers, in the fine performance metrics of `distributed`.

Nothing here imports `distributed`: a process in which it was not imported is not a worker.
"""

import os
import sys
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


def measure_worker() -> None:
    """Count what tasks do if there is a worker of `distributed` in this process."""
    worker = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    if worker is None or _report_task in counters.REPORTS or not [*worker._instances]:
        return
    process_counts.end()
    measuring.begin(_report_task)


def _report_task(_labels: Labels, counts: Counts) -> None:
    """Add counts to the metrics of the task."""
    meter = getattr(sys.modules.get("distributed.metrics"), "context_meter", None)
    if meter is None or task_key() is None:
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
