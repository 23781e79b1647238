"""Compute Dask arrays of receipts, whose blocks are tasks of which only the end matters."""

from collections.abc import Sequence
from typing import Any, TextIO

import dask
import dask.array as da
from dask.callbacks import Callback
from dask.core import flatten

from zarrdask.execution.client import current_client
from zarrdask.execution.progress import Progress, progress


def compute_blocks(
    arrays: Sequence[da.Array],
    label: str,
    show: bool | TextIO = False,  # noqa: FBT001, FBT002
    **options: Any,
) -> None:
    """Compute all blocks of several arrays in one graph, and display how many are done.

    Parameters
    ----------
    arrays : sequence of dask.array.Array
        The receipts.
    label : str
        A word for the work.
    show : bool or file, default False
        Whether and where to display a progress bar.
    **options
        Options of `dask.compute`.
    """
    if show is False:
        dask.compute(*arrays, **options)
        return
    keys = {key for x in arrays for key in flatten(x.__dask_keys__())}
    with progress(len(keys), label, show, unit="block") as bar:
        if current_client() is not None:
            _on_cluster(arrays, bar, options)
            return

        def finished(key: Any, *_: Any) -> None:
            if key in keys:
                bar.advance()

        with Callback(posttask=finished):
            dask.compute(*arrays, **options)


def _on_cluster(arrays: Sequence[da.Array], bar: Progress, options: dict[str, Any]) -> None:
    from distributed import as_completed, futures_of

    futures = futures_of(dask.persist(*arrays, **options))
    try:
        for future in as_completed(futures):
            future.result()  # raises the error of a task
            bar.advance()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
