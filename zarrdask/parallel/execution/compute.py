"""Compute Dask arrays of receipts: their tasks write blocks, and return small values."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import product
from math import prod
from typing import Any

import dask
import dask.array as da
from dask.callbacks import Callback
from dask.core import flatten

from zarrdask.parallel.execution.client import current_client
from zarrdask.parallel.execution.dask_private import callback_functions
from zarrdask.parallel.execution.frisky import frisky_client
from zarrdask.parallel.execution.locks import secede_if_worker
from zarrdask.runtime.progress import Progress, Show, progress


def compute_blocks(
    arrays: Sequence[da.Array],
    label: str,
    show: Show = False,  # noqa: FBT002
    *,
    nbytes: int = 0,
    is_recorded: bool = False,
    **options: Any,
) -> None:
    """Compute all blocks of several arrays of receipts in one graph, and display how many are done.

    `show` is as in `zarrdask.runtime.progress.progress`; the bar has a word for the work, `label`,
    and the bytes of all blocks, if they are known. The options are the same as for `dask.compute`.

    `is_recorded` is whether the tasks record finished blocks: a cluster does not repeat these if it
    loses the worker that has stored them.
    """
    if show is False and not (is_recorded and current_client() is not None):
        dask.compute(*arrays, **options)
        return
    # A receipt has an element for each block that its task writes.
    counts = {
        key: prod(lengths)
        for x in arrays
        for key, lengths in zip(flatten(x.__dask_keys__()), product(*x.chunks), strict=True)
    }
    with progress(sum(counts.values()), label, show, unit="block", nbytes=nbytes) as bar:
        if current_client() is not None:
            _on_cluster(arrays, bar, counts, options)
            return
        if frisky_client() is not None and "scheduler" not in options:
            _on_frisky(arrays, bar, counts)
            return

        def finished(key: Any, *_: Any) -> None:
            if key in counts:
                bar.advance(counts[key])

        callback = Callback(posttask=finished)
        scheduler = options.get("scheduler") or dask.config.get("scheduler", None)
        # If several computations run at the same time, the first one takes all global callbacks of
        # Dask. Only its own schedulers take them as an argument.
        is_own = not callable(scheduler)
        if is_own:
            options["callbacks"] = {*Callback.active, callback_functions(callback)}
        # Not `compute`: it would fuse the only block of an array with the step that returns it, and
        # the task would have another key.
        with nullcontext() if is_own else callback:
            dask.persist(*arrays, **options)


def _on_cluster(
    arrays: Sequence[da.Array], bar: Progress, counts: Mapping[Any, int], options: dict[str, Any]
) -> None:
    from distributed import as_completed, futures_of

    secede_if_worker()
    futures = {*futures_of(dask.persist(*arrays, **options))}
    try:
        for future in as_completed([*futures]):
            # A receipt that has arrived is released: nothing computes it again.
            futures.discard(future)
            future.result()  # raises the error of a task
            bar.advance(counts[future.key])
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _on_frisky(arrays: Sequence[da.Array], bar: Progress, counts: Mapping[Any, int]) -> None:
    from frisky import as_completed, dask_persist

    # Dask's own function returns when all blocks are computed.
    futures = [x.dask[key] for x in dask_persist(frisky_client(), [*arrays]) for key in x.dask]
    by_name = {str(key): count for key, count in counts.items()}
    for future in as_completed(futures):
        future.result()  # raises the error of a task
        bar.advance(by_name[future.key])
