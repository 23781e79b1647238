"""Mend stored units in parallel: what is to be copied, and the tasks that do it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from zarrdask.chunks.inventory import stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import check_reached, run, workers
from zarrdask.execution.handle import Handle
from zarrdask.execution.progress import progress as show_progress
from zarrdask.grids.base import Index
from zarrdask.hierarchy.path import join_path
from zarrdask.storage.base import Store
from zarrdask.verification.repair import Mended, check_same, find_array, mend_units

#: Units that a task mends: there are few, and each is read and stored by itself.
_UNITS = 16


class MendingWork(NamedTuple):
    """Some units of an array that a task mends: see `zarrdask.verification.repair.mend_units`."""

    handle: Handle
    other: Handle
    path: str
    indices: list[Index]
    missing: bool


def plan_mending(
    here: tuple[Store, str],
    there: tuple[Store, str],
    paths: Iterable[str],
    bad: Mapping[str, Sequence[Index]],
    *,
    missing: bool,
) -> list[MendingWork]:
    """Return what there is to mend; all arrays are looked at before anything is changed.

    Parameters
    ----------
    here, there : (Store, str)
        What is mended, and what it is mended from.
    paths : iterable of str
        Of the arrays, in the store that is mended.
    bad : mapping
        By path: the units that can't be read.
    missing : bool
        As in `zarrdask.verification.repair.mend_units`.

    Raises
    ------
    NodeNotFoundError, NodeTypeError, MetadataError
        If an array is not there, or another one.
    """
    works = list[MendingWork]()
    for path in paths:
        chunks = find_array(here[0], path)
        below = path[len(here[1]) :].strip("/")
        other = find_array(there[0], join_path(there[1], below))
        check_same(chunks, other)
        indices = [*bad.get(path, ()), *(_missing(chunks, other) if missing else ())]
        handles = Handle(chunks), Handle(other)
        works += [
            MendingWork(*handles, path, indices[at : at + _UNITS], missing)
            for at in range(0, len(indices), _UNITS)
        ]
    return works


def _missing(chunks: StoredChunks, other: StoredChunks) -> list[Index]:
    """Return the units that are not stored, but something of them may be in the other array."""
    here, there = set(stored_units(chunks)), set(stored_units(other))
    if chunks.metadata.grid == other.metadata.grid:
        return sorted(there - here)
    return [index for index in chunks.metadata.grid.indices() if index not in here]


def mend(works: Sequence[MendingWork], *, scheduler: Any, progress: bool) -> list[Mended]:
    """Mend what was planned, as a task for each work."""
    total = sum(len(work.indices) for work in works)
    batch = works[0].handle.chunks.store.batch() if works else nullcontext()
    with batch, workers(scheduler) as on, show_progress(total, "repair", progress) as told:
        for handle in [handle for work in works[:1] for handle in (work.handle, work.other)]:
            check_reached(handle.chunks.store, on)
        return run(
            repair_chunks,
            works,
            scheduler=on,
            finished=lambda number, _: told.advance(len(works[number].indices)),
        )


def repair_chunks(work: MendingWork) -> Mended:
    """Mend some units: the task."""
    chunks, other = work.handle.chunks, work.other.chunks
    return mend_units(chunks, other, work.indices, missing=work.missing)
