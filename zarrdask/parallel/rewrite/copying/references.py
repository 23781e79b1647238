"""Copies by reference: the chunks of the new arrays refer to the stored objects of the source."""

from collections.abc import Sequence
from dataclasses import replace

from toolz import partition_all

from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.errors import UnsupportedError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.parallel.rewrite.copying.copy_tasks import ArrayJob
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite
from zarrdask.parallel.rewrite.rewrite_report import CopiedArray
from zarrdask.runtime.progress import Show, progress
from zarrdask.storage.adapters.icechunk import session_of
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_on_each

#: The number of references that are stored by one call.
_REFERENCES_PER_CALL = 2**16

#: The stored units of an array, and the object that holds each.
Referenced = Sequence[tuple[Index, StoredObject]]


def list_references(jobs: Sequence[ArrayJob], target: Store) -> list[Referenced]:
    """Return the stored units of each array, after a check that the target can refer to them.

    Raises
    ------
    UnsupportedError
        If the chunks of the copy are encoded in another way, the target can't hold references, or
        the values of the source are not objects with URLs.
    StoreError
        If the target refuses references to these URLs.
    """
    session = session_of(target, "references_to")
    session.references_to(())
    for job in jobs:
        if job.transfer != "units":
            raise UnsupportedError(
                "the chunks of the copy differ from the chunks of the source, so it can't refer to "
                "them; leave out what changes them, or copy the values themselves",
                key=job.source.location,
            )
        if job.source.metadata.transformers:
            raise UnsupportedError(
                "chunks behind a storage transformer can't be referenced; copy the values "
                "themselves",
                key=job.source.location,
            )
    listed: list[Referenced] = request_on_each(
        jobs[0].source.units if jobs else target,
        lambda job: [*StoredUnits(job.source).objects()],
        jobs,
    )
    session.references_to(objects[0][1].url for objects in listed if objects)
    return listed


def store_references(
    jobs: Sequence[ArrayJob], objects: Sequence[Referenced], rewrite: Rewrite, show: Show
) -> list[CopiedArray]:
    """Store references to the units of all arrays."""
    with progress(sum(map(len, objects)), "copy", show) as bar:
        for job, units in zip(jobs, objects, strict=True):
            session = session_of(job.target.chunks.store, "references_to")
            store = session.references_to(())
            for batch in partition_all(_REFERENCES_PER_CALL, units):
                store(job.target.chunks.prefix, batch)
                bar.advance(len(batch))
            rewrite.add(job.node.path, job.target)
    return [report_of(job, len(units)) for job, units in zip(jobs, objects, strict=True)]


def report_of(job: ArrayJob, units: int | None = None) -> CopiedArray:
    """Return the report of an array, with the number of references if these are stored."""
    return replace(job.report(), method="referenced", objects=units)
