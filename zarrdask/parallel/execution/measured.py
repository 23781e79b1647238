"""`measured`: count the requests, bytes and seconds of reads and writes, on any Dask scheduler."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from time import perf_counter
from typing import Any

from zarrdask.parallel.execution.client import current_client
from zarrdask.runtime import measuring, process_counts, worker_metrics
from zarrdask.runtime.counters import Counts, Labels, difference
from zarrdask.runtime.measurement import Measurement


class _Blocks(AbstractContextManager[Measurement]):
    """A context that may be entered several times: each block has numbers of its own."""

    def __init__(self) -> None:
        self._entered = list[AbstractContextManager[Measurement]]()

    def __enter__(self) -> Measurement:
        block = _block()
        self._entered.append(block)
        return block.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._entered.pop().__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the context manager has no attribute {name!r}; read it from m in `with "
            "zarrdask.measured() as m:`"
        )


def measured() -> AbstractContextManager[Measurement]:
    """Measure the reads and writes within a ``with`` block.

    Everything that this process does counts, and so do the tasks of Dask that are computed within
    the block: in threads, in processes of this machine, and by the workers of the current client.
    The client must be open when the block ends, and processes must start within it.
    Without a ``with`` block nothing is counted, except that workers of `distributed` always add
    the numbers of tasks to Dask's fine performance metrics.

    Yields
    ------
    Measurement
        Requests by kind, bytes, chunks, and seconds waiting, decoding, encoding and under locks,
        for each task prefix, array and store. It prints as a table that names the limit of the job;
        `to_dict` returns all numbers. It is complete when the block has ended.

    See Also
    --------
    plan_read, plan_write : What a read or a write will do.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, "t2m", shape=(40, 90), dtype="f8", chunks=(10, 90))
    >>> z[...] = 1
    >>> with zarrdask.measured() as m:
    ...     total = zarrdask.from_zarr(z).sum().compute()
    >>> m.requests["GET"], m.chunks_decoded
    (4, 4)
    >>> [task for task, in m.by("task") if task]
    ['read_t2m']
    """
    return _Blocks()


@contextmanager
def _block() -> Iterator[Measurement]:
    result = Measurement()
    with ExitStack() as stack:
        workers = _totals()
        directory = stack.enter_context(process_counts.directory())
        processes = process_counts.read(directory)
        measuring.begin()
        here = measuring.totals()
        result.follow(lambda: _added(measuring.totals(), here))
        start = perf_counter()
        try:
            yield result
        finally:
            result.seconds_elapsed = perf_counter() - start
            result.follow(None)
            measuring.end()
            result.add_all(_added(process_counts.read(directory), processes))
            for name, totals in _totals().items():
                result.add_all(_added(totals, workers.get(name, {})))


def _totals() -> dict[str, dict[Labels, Counts]]:
    """Return the counts of the workers of the current client so far, by process.

    This process is left out, which counts what its workers do itself.
    """
    client = current_client()
    if client is None or client.asynchronous:  # Its methods would be coroutines.
        return {}
    totals = dict(client.run(worker_metrics.totals, on_error="ignore").values())
    totals.pop(worker_metrics.totals()[0], None)
    return totals


def _added(
    later: dict[Labels, Counts], earlier: dict[Labels, Counts]
) -> Iterator[tuple[Labels, Counts]]:
    """Yield the counts since then."""
    for labels, counts in later.items():
        added = difference(counts, earlier.get(labels, {}))
        if added:
            yield labels, added
