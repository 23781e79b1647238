"""The order in which a dataset is written, so that nobody sees half of it, even after a crash.

Values first: those of new arrays, and those beyond the end of arrays that get longer, nobody can
see yet. Then the shapes, those of index coordinates last: only they make the new elements part of
the dataset. Then consolidated metadata, all in one document: readers that use it see the dataset
as it was, complete, until that document is replaced.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from zarrdask import config
from zarrdask.chunks.write import Beyond, write_region
from zarrdask.errors import MetadataError, ZarrdaskError
from zarrdask.graph.dependencies import Inputs
from zarrdask.graph.target import ExistingRegion, WriteOptions, WriteTarget, find_target
from zarrdask.graph.write_job import WriteJob, begin
from zarrdask.hierarchy.append import guarded, roll_back_append
from zarrdask.hierarchy.create import at_once
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.metadata.model import GroupMetadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.unchanged import Lease
from zarrdask.xarray.creation import NewNodes
from zarrdask.xarray.plan import GroupWrite, VariableWrite

#: Variables, and where their values go.
Targets = Sequence[tuple[VariableWrite, WriteTarget]]

#: What a failed write of a new dataset, or of new variables, leaves.
_LATE_DATASET = (
    "there is no dataset, unless the error occurred after its last document was written; the same "
    "write made again, or one with mode='w', replaces chunks that may be left"
)
_EARLY_DATASET = (
    "the new dataset is incomplete: what was not written reads as the fill value; replace it with "
    "mode='w', or write the rest"
)
_LATE_VARIABLES = "new variables may be missing"
_EARLY_VARIABLES = "new variables are incomplete: what was not written reads as the fill value"

#: Variables of at most this size are written at the same time, each by one thread.
_SMALL_BYTES = 2**20


class UnseenRegion(ExistingRegion):
    """A region that no reader sees yet: in a new array, or beyond the end of an existing one."""

    beyond: ClassVar[Beyond] = "fill"

    def abort(self) -> str:
        """Do nothing: `roll_back` does, and describes the whole dataset."""
        return ""


def complete(
    write: GroupWrite,
    root: str | None,
    nodes: Sequence[str] = (),
    lease: Lease | None = None,
) -> None:
    """Make what was written part of the dataset, when all values are there. It may be done again.

    Parameters
    ----------
    write : GroupWrite
        What was written; the values are not needed.
    root : str, optional
        The path of the group that gets consolidated metadata: this one, or one above it.
    nodes : sequence of str
        The paths of nodes that these will probably have, to read all of them at once.
    lease : Lease, optional
        The lease of an append.
    """
    node, metadata = write.node, write.metadata
    grow_arrays(write, root, lease)
    changed = metadata if write.before not in (None, metadata) else None
    if changed is not None and root != node.path:
        node.write(changed, before=write.before)
    if root is not None:
        consolidate(node, root, metadata.zarr_format, changed, nodes)


def grow_arrays(write: GroupWrite, root: str | None, lease: Lease | None) -> None:
    """Write the new shapes of arrays, those of index coordinates last."""
    if not write.appends:
        return
    with write.node.changing(whole=False, keep=root) as real:
        for is_index in (False, True):
            variables = [each for each in write.appends if each.is_index is is_index]
            at_once(real.store, partial(_grow, real.store, lease), variables)


def consolidate(
    node: NodePath,
    root: str,
    zarr_format: ZarrFormat,
    changed: GroupMetadata | None = None,
    nodes: Sequence[str] = (),
) -> None:
    """Write the consolidated metadata of a group, the root, above a changed one, or of that one.

    If the root cannot have any, as it holds nodes of several formats or has no document, the
    changed group itself gets them. Its new metadata, if it has any, are written with them. `nodes`
    are paths that are probably below the root.
    """
    try:
        own = changed if node.path == root else None
        node.at(root).consolidate(zarr_format, group=own, nodes=nodes)
    except MetadataError:
        if node.path == root:
            raise
        with node.changing(whole=False) as real:  # what groups above tell is not true
            real.consolidate(zarr_format, group=changed, nodes=())


def _grow(store: Store, lease: Lease | None, variable: VariableWrite) -> None:
    array, old = variable.array, variable.old_shape or ()
    node = array.node_path.via(store)
    node.grow(array.zarr_format, old, array.shape, is_member=True, lease=lease)


# --------------------------------------------------------------------------------------------
# Values


def write_targets(writes: Iterable[GroupWrite], lease: Lease | None) -> Targets:
    """Return where the values of all variables go; they must not be computed from what is there.

    `lease` is that of an append, if it has one.
    """
    variables = [variable for write in writes for variable in write.variables]
    inputs = Inputs([variable.data for variable in variables if variable.is_dask])
    return [(variable, _target(variable, inputs, lease)) for variable in variables]


def _target(variable: VariableWrite, inputs: Inputs, lease: Lease | None) -> WriteTarget:
    array, old = variable.array, variable.old_shape
    if variable.is_new:
        return UnseenRegion(array, variable.region, array.stored)
    if old is not None:
        chunks = guarded(array.stored, array.node_path, old, lease)
        return UnseenRegion(array, variable.region, chunks)
    if variable.is_dask:
        how = WriteOptions(variable.region)
        return find_target(variable.data, array, None, None, how, {}, inputs)
    return ExistingRegion(array, variable.region, array.stored)


def write_in_memory(targets: Targets) -> list[WriteJob]:
    """Write the values that are in memory, and return the tasks that write the Dask arrays."""
    _write_eager([each for each in targets if not each[0].is_dask])
    writes = [each for each in targets if each[0].is_dask]
    return begin([(v.data, to) for v, to in writes], [v.write_empty for v, _ in writes])


def _write_eager(writes: Targets) -> None:
    """Write values that are in memory: many small variables at once, large ones by all threads."""
    small = [each for each in writes if each[0].data.nbytes <= _SMALL_BYTES]
    if small:
        at_once(small[0][1].chunks.store, partial(_write, threads=1), small)
    for each in writes:
        if each[0].data.nbytes > _SMALL_BYTES:
            _write(each, threads=None)


def _write(write: tuple[VariableWrite, WriteTarget], *, threads: int | None) -> None:
    variable, to = write
    empty = variable.write_empty
    write_region(
        to.chunks,
        to.region,
        variable.data.astype(to.chunks.metadata.dtype, copy=False),
        empty=config.get("write-empty-chunks") if empty is None else empty,
        beyond=to.beyond,
        threads=threads,
    )


# --------------------------------------------------------------------------------------------
# Failures


def roll_back(targets: Targets, new: NewNodes, *, late: bool) -> str:
    """Erase what an append that failed wrote beyond the end of arrays, and describe the result.

    `late` says whether new groups and arrays get their documents when all values are there.
    """
    states = set()
    for variable, to in targets:
        if variable.old_shape is None:
            continue
        try:
            node = variable.array.node_path
            states.add(roll_back_append(node, to.chunks, variable.old_shape))
        except (ZarrdaskError, OSError) as error:
            states.add(f"cleaning up failed, too: {error}")
    if new.includes_first:
        states.add(_LATE_DATASET if late else _EARLY_DATASET)
    elif new.members:
        states.add(_LATE_VARIABLES if late else _EARLY_VARIABLES)
    return "; ".join(sorted(states)) or "each stored chunk has either its old or its new content"
