"""One or more writes that begin, run and finish together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, NamedTuple

import dask.array as da
from dask.delayed import Delayed

from zarrdask.chunks.region import ArrayRegion
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.execution.compute import compute_blocks
from zarrdask.graph.block_writes import BlockWrites
from zarrdask.graph.bundles import bundled
from zarrdask.graph.conflicts import check_disjoint
from zarrdask.graph.placement import known_blocks
from zarrdask.graph.target import WriteTarget
from zarrdask.graph.tasks import Action, gather, read_blocks, write_blocks
from zarrdask.nodes.array import Array
from zarrdask.runtime.progress import Show


class WriteJob(NamedTuple):
    """A write that has begun: its target is ready, and its tasks exist."""

    target: WriteTarget
    tasks: BlockWrites

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks, as they are stored but for the codecs."""
        itemsize = self.target.array.dtype.itemsize
        return prod(sum(axis) for axis in self.tasks.blocks) * int(itemsize)

    @property
    def commit(self) -> Action | None:
        """The action that finishes the write, if there is one."""
        return self.target.commit if self.target.has_commit else None

    def stored(self) -> da.Array:
        """Return the stored array as a Dask array, which is written when it is computed."""
        return read_blocks(self.tasks, self.target.written, self.commit)


def as_dask_array(x: Any) -> da.Array:
    """Return an array-like as a Dask array with known chunk sizes."""
    check_plain(x)
    x = da.asanyarray(x)
    known_blocks(x.shape, x.chunks)  # Raises the error if any is unknown.
    return x


def check_plain(x: Any) -> None:
    """Check that an object is none of xarray's: its dimensions and coordinates would be lost."""
    if hasattr(x, "to_zarr") and (isinstance(x, Mapping) or hasattr(x, "to_dataset")):
        raise UnsupportedError(
            "an object of xarray would lose its dimensions, coordinates and attributes; pass it to "
            "zarrdask.xarray.to_zarr (which also appends), or pass the `data` of a DataArray to "
            "store its values alone",
            key="x",
            found=type(x).__name__,
            expected="an array, or a mapping of paths to arrays",
        )


def begin(
    writes: Sequence[tuple[da.Array, WriteTarget]], empty: Sequence[bool | None] | None = None
) -> list[WriteJob]:
    """Prepare the targets of writes, and create the tasks that write to them.

    For each write, `empty` is whether chunks that hold only the fill value are stored; as
    configured by default. If two writes overlap, an error is raised before anything is written.
    """
    _check_distinct([target for _, target in writes])
    begun: list[WriteTarget] = []
    try:
        for _, target in writes:
            begun.append(target)
            target.begin()
    except BaseException as error:
        _report_failure(begun, error)
        raise
    return [
        WriteJob(
            to,
            write_blocks(
                x,
                ArrayRegion(to.chunks, to.region),
                to.beyond,
                empty=stores_empty,
                is_blank=to.is_blank,
            ),
        )
        for (x, to), stores_empty in zip(writes, empty or [None] * len(writes), strict=True)
    ]


@contextmanager
def batches(targets: Iterable[WriteTarget]) -> Iterator[None]:
    """Make all changes in the block appear at once, in stores that can do that."""
    with ExitStack() as stack:
        for target in targets:
            stack.enter_context(target.array.store.batch())
        yield


def check_deferrable(arrays: Iterable[Array]) -> None:
    """Check that the stores of arrays allow writes that are computed later."""
    for array in arrays:
        if not array.store.deferrable:
            raise UnsupportedError(
                "a write to a zip archive can't be computed later, unless both the call and the "
                "computation are within `with store.batch():`; omit compute=False, or write a "
                "directory and zarrdask.copy it",
                key=array.node_path.location,
            )


def _check_distinct(targets: Sequence[WriteTarget]) -> None:
    if len(targets) == 1:
        return
    counts = Counter(target.written.place for target in targets)
    for target in targets:
        if target.is_new and counts[target.written.place] > 1:
            raise MetadataError(
                "two arrays would be stored at the same place; give each its own path",
                key=target.array.node_path.location,
            )
    check_disjoint([target.written for target in targets])


def compute(jobs: Sequence[WriteJob], *, show: Show = False, **options: Any) -> None:
    """Write all blocks of all jobs, then commit each job."""
    if not jobs:
        return
    uncommitted = list(jobs)
    try:
        nbytes = sum(job.nbytes for job in jobs)
        tasks = bundled([job.tasks for job in jobs])
        compute_blocks(tasks, "write", show, nbytes=nbytes, **options)
        while uncommitted:
            uncommitted[0].target.commit()
            uncommitted.pop(0)
    except BaseException as error:
        for job in jobs:
            job.tasks.writer.abort()
        _report_failure([job.target for job in uncommitted], error)
        raise


def deferred(jobs: Sequence[WriteJob], completions: Sequence[Action] = ()) -> Delayed:
    """Return one Delayed that writes all blocks of all jobs, commits each, then completes all."""
    # By then, other writes may have stored what equal blocks without values have to erase.
    tasks = [job.tasks._replace(repeats=None) for job in jobs]
    # All blocks come first: a commit may replace what another array is computed from.
    return gather(bundled(tasks), [*(job.commit for job in jobs), *completions])


def _report_failure(targets: Sequence[WriteTarget], error: BaseException) -> None:
    """Clean up targets, and add notes to an error that describe what they hold now."""
    for target in targets:
        if state := target.abort():
            error.add_note(f"{target.array.node_path.location}: {state}")
