"""Check that what is stored can be read, and that two stores hold the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import check_reached, run, workers
from zarrdask.execution.handle import Handle
from zarrdask.execution.progress import progress as show_progress
from zarrdask.hierarchy.path import locate_node, node_location
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.options import suggests_arguments
from zarrdask.storage.consolidated import plain
from zarrdask.storage.resolve import options_of_each
from zarrdask.verification.check import Tally, check_units
from zarrdask.verification.compare import Comparison
from zarrdask.verification.compare_tasks import compare
from zarrdask.verification.report import ArrayReport, Report
from zarrdask.verification.scan import Census, take_census

#: A task looks at so many bytes, decoded, or so many units at most.
_BYTES, _UNITS = 2**26, 512


# --------------------------------------------------------------------------------------------
# Checking


@overload
def verify(
    url: Any,
    other: None = None,
    *,
    component: str | None = ...,
    storage_options: dict[str, Any] | None = ...,
    source_options: dict[str, Any] | None = ...,
    target_options: dict[str, Any] | None = ...,
    strict: bool = ...,
    every: bool = ...,
    scheduler: Any = ...,
    progress: bool = ...,
) -> Report: ...


@overload
def verify(
    url: Any,
    other: Any,
    *,
    component: str | None = ...,
    storage_options: dict[str, Any] | None = ...,
    source_options: dict[str, Any] | None = ...,
    target_options: dict[str, Any] | None = ...,
    scheduler: Any = ...,
    progress: bool = ...,
) -> Comparison: ...


@suggests_arguments
def verify(
    url: Any,
    other: Any = None,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    strict: bool = False,
    every: bool = False,
    scheduler: Any = None,
    progress: bool = False,
) -> Report | Comparison:
    """Check that all that is stored can be read; or, with `other`, that both hold the same.

    Of one array or hierarchy, all metadata are parsed, and every stored unit is read and decoded
    as a whole: with its checksums; of shards, the index and every chunk within. Missing units are
    no fault: they read as the fill value.

    Of two, the elements are compared bit by bit, whatever the formats, chunks and codecs of both.

    Parameters
    ----------
    url, component
        As in `zarrdask.open`.
    other : str, os.PathLike, MutableMapping, Store, Array or Group, optional
        What it is compared with.
    storage_options : dict, optional
        Options of fsspec for `url` and `other`; a local path, which takes none, is left out.
    source_options, target_options : dict, optional
        Options of fsspec for `url`, or for `other`, instead of `storage_options`.
    strict : bool
        Whether metadata that are read though a rule forbids them, and chunks of a shard that
        share bytes, make the check fail.
    every : bool
        Whether units that are missing, or hold only the fill value, are listed, too.
    scheduler : str or distributed.Client, optional
        "threads", "processes", "sync", a client, or the address of a scheduler; the one that is
        current, if absent.
    progress : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    Report or Comparison
        It prints itself; its `ok` says whether all is well.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    StoreError
        If a store can't be reached.
    UnsupportedError
        If a group is to be checked in a store that can't be listed.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(4, 4), dtype="i4", chunks=2, compressors="crc32c")
    >>> z[:2] = 1
    >>> z.store.set("c/0/1", b"damaged")
    >>> report = zarrdask.verify(z)
    >>> report.ok, report.problems[0].kind, report.problems[0].key
    (False, 'truncated', 'c/0/1')
    """
    of_url, of_other = options_of_each(
        storage_options, (url, source_options), (other, target_options)
    )
    store, path = locate_node(url, component, of_url)
    if other is not None:
        there = locate_node(other, None, of_other)
        return compare((store, path), there, scheduler=scheduler, progress=progress)
    census = take_census(plain(store), path)
    works = _plan(census, every=every)
    total = sum(work.number for work in works)
    with workers(scheduler) as on, show_progress(total, "verify", progress) as told:
        check_reached(plain(census.store), on)
        tallies = run(
            verify_chunks,
            works,
            scheduler=on,
            finished=lambda at, _: told.advance(works[at].number),
        )
    return _report(census, works, tallies, strict=strict)


class Work(NamedTuple):
    """Some units of an array that a task looks at.

    Attributes
    ----------
    handle : Handle
        The array.
    path : str
        Its path.
    number : int
        How many units.
    start : int
        The number of the first, if they follow each other in C order.
    indices : ndarray or None
        Theirs, a row each; None if they follow each other.
    every : bool
        As in `verify`.
    """

    handle: Handle
    path: str
    number: int
    start: int
    indices: np.ndarray | None
    every: bool


def _plan(census: Census, *, every: bool) -> list[Work]:
    """Return what there is to look at, in pieces of bounded size."""
    works = []
    for path, chunks in census.arrays():
        rows = None if every else census.units[path]
        count = chunks.metadata.grid.size if rows is None else len(rows)
        step, handle = _step(chunks), Handle(chunks)
        for at in range(0, count, step):
            part = None if rows is None else rows[at : at + step]
            works.append(Work(handle, path, min(step, count - at), at, part, every))
    return works


def _step(chunks: StoredChunks) -> int:
    return max(1, min(_UNITS, _BYTES // max(chunks.metadata.pipeline.spec.nbytes, 1)))


def verify_chunks(work: Work) -> Tally:
    """Look at some units: the task."""
    chunks, rows = work.handle.chunks, work.indices
    if rows is None:
        numbers = np.arange(work.start, work.start + work.number)
        counts = chunks.metadata.grid.counts
        rows = np.stack(np.unravel_index(numbers, counts), axis=1) if counts else np.empty((1, 0))
    return check_units(chunks, list(map(tuple, rows.tolist())), every=work.every)


def _report(
    census: Census, works: Sequence[Work], tallies: Sequence[Tally], *, strict: bool
) -> Report:
    """Return what was found, in the order of the nodes."""
    totals: dict[str, Tally] = {}
    for work, tally in zip(works, tallies, strict=True):
        totals[work.path] = totals.get(work.path, Tally()) + tally
    arrays = dict(census.arrays())
    reports = [_of_array(path, c.metadata, totals.get(path, Tally())) for path, c in arrays.items()]
    problems = [
        *census.problems,
        *(p for path in arrays for p in totals.get(path, Tally()).problems),
    ]
    return Report(
        node_location(census.store, census.path),
        sum(not isinstance(found, ArrayMetadata | None) for found in census.nodes.values()),
        tuple(reports),
        tuple(problems),
        strict,
        plain(census.store).listable,
        plain(census.store),
        census.path,
    )


def _of_array(path: str, metadata: ArrayMetadata, total: Tally) -> ArrayReport:
    return ArrayReport(
        path,
        metadata.shape,
        str(metadata.dtype),
        metadata.grid.size,
        total.stored,
        metadata.grid.size - total.stored,
        total.fill_only,
        total.chunks,
        total.size,
    )
