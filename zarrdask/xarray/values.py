"""The values of the variables of a dataset: from memory, or computed by Dask."""

from collections.abc import Iterable, Sequence
from functools import partial

from zarrdask import config
from zarrdask.arrays.chunks.write import Beyond, write_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.graph.writing.target import WriteOptions, WriteTarget, find_target
from zarrdask.parallel.graph.writing.write_job import WriteJob, write_jobs
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.xarray.writing.plan import GroupWrite, VariableWrite

#: Variables, and where their values go.
Targets = Sequence[tuple[VariableWrite, WriteTarget]]

#: Variables of at most this size are written at the same time, each by one thread.
_SMALL_BYTES = 2**20


def write_targets(writes: Iterable[GroupWrite]) -> Targets:
    """Return where the values of all variables go; they must not be computed from what is there."""
    variables = [variable for write in writes for variable in write.variables]
    inputs = Inputs([variable.data for variable in variables if variable.is_dask])
    return [(variable, _target(variable, inputs)) for variable in variables]


def _target(variable: VariableWrite, inputs: Inputs) -> WriteTarget:
    array, region = variable.array, variable.region
    is_visible = not variable.is_new and variable.append is None
    if is_visible and variable.is_dask:
        how = WriteOptions(region)
        return find_target(variable.data, array, None, None, how, {}, inputs)
    # Other changes of the array are part of the change of the dataset.
    chunks = chunks_of(array) if variable.append is None else variable.append.chunks
    beyond: Beyond = "keep" if is_visible else "fill"
    return WriteTarget(array, region, chunks, None, beyond, is_new=False)


def write_in_memory(targets: Targets, *, later: bool, digests: bool = False) -> list[WriteJob]:
    """Write the values that are in memory, and return the tasks that write the Dask arrays.

    As in `write_jobs`, `later` is whether the caller returns the tasks, and `digests` whether it
    updates manifests at the end.
    """
    writes = [each for each in targets if each[0].is_dask]
    # If an earlier run has stored all blocks, it has stored these values before. In a dataset that
    # is complete, others may have changed them since.
    is_stored = any(to.recorded is not None and to.recorded.is_complete for _, to in writes)
    if not is_stored or any(to.is_compared for _, to in writes):
        _write_eager([each for each in targets if not each[0].is_dask])
    empty = [v.write_empty for v, _ in writes]
    return write_jobs([(v.data, to) for v, to in writes], empty, later=later, digests=digests)


def _write_eager(writes: Targets) -> None:
    """Write values that are in memory: many small variables at once, large ones by all threads."""
    small = [each for each in writes if each[0].data.nbytes <= _SMALL_BYTES]
    if small:
        request_on_each(small[0][1].chunks.store, partial(_write, threads=1), small)
    for each in writes:
        if each[0].data.nbytes > _SMALL_BYTES:
            _write(each, threads=None)


def _write(write: tuple[VariableWrite, WriteTarget], *, threads: int | None) -> None:
    variable, to = write
    empty = variable.write_empty
    write_region(
        to.chunks,
        to.region,
        variable.data,
        empty=config.get("write-empty-chunks") if empty is None else empty,
        beyond=to.beyond,
        threads=threads,
    )
