"""Targets of writes: where a Dask array is stored, and the change that creates or updates it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import dask.array as da
import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import Beyond
from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.hierarchy.changes.block_log import RecordedBlocks
from zarrdask.arrays.hierarchy.changes.journal import digest
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.marker import LaterMarker, new_marker
from zarrdask.arrays.hierarchy.changes.new_array import LateArray, NewArray
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode, can_stage
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.stored_manifest import digested
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.node import check_writable
from zarrdask.arrays.nodes.open import check_commit, check_mode, open_array
from zarrdask.arrays.nodes.replaced import check_not_replaced
from zarrdask.errors import MetadataError, NodeExistsError, SelectionError, is_one_of
from zarrdask.formats.indexing.selection import Region, whole_region
from zarrdask.formats.metadata.array_options import ArrayOptions, GridLike
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.execution.client import check_changeable
from zarrdask.parallel.execution.compared import (
    ComparedStore,
    compared,
    find_complete_node,
)
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.graph.placement import chunk_options, written_region
from zarrdask.parallel.graph.stored_array import data_type_of
from zarrdask.parallel.graph.writing.object_elements import check_elements
from zarrdask.storage.adapters.zarr_python import is_zarr_object

#: Whether a write is resumed; "restart" discards what earlier runs have stored.
Resume = bool | Literal["restart"]


def check_resume(resume: Resume) -> None:
    """Check the option `resume`."""
    if not isinstance(resume, bool | np.bool_) and not is_one_of(resume, ["restart"]):
        raise MetadataError(
            "unknown value", key="resume", found=resume, expected="True, False or 'restart'"
        )


class WriteOptions(NamedTuple):
    """The options of `to_zarr` that are not options of a new array; see there."""

    region: Any = None
    mode: str = "a"
    overwrite: bool = False
    grid: GridLike = "regular"
    commit: Literal["first", "last"] = "first"
    resume: Resume = False
    compute: bool = True
    #: Whether the array is one of several that are written together.
    is_member: bool = False
    #: Whether the stored array is read again by the caller.
    is_read: bool = False

    def check(self) -> None:
        """Check the options that have a few possible values."""
        check_mode(self.mode, ("a", "r+", "w", "w-"))
        check_resume(self.resume)
        check_commit(self.commit)

    @property
    def is_immediate(self) -> bool:
        """Whether the values are written by this call, and by no later one."""
        return self.compute and not self.resume

    @property
    def replaces(self) -> bool:
        """Whether an existing node is replaced."""
        return self.overwrite or self.mode == "w"


@dataclass(frozen=True)
class WriteTarget:
    """An array, or a region of one, that a Dask array is written to."""

    #: The array as it is after the write.
    array: Array
    #: The region of the array that is written.
    region: Region
    #: The stored chunks that tasks write to.
    chunks: StoredChunks
    #: The change of the array besides its chunks; None if there is none, or the caller makes it.
    change: Change | None
    #: How elements that stored units hold beyond the end of the array are treated: they are kept,
    #: or become the fill value; see `zarrdask.arrays.chunks.write.write_region`.
    beyond: Beyond = "fill"
    #: Whether the array is created or replaced.
    is_new: bool = True
    #: Whether nothing is stored in the region when the change has begun.
    is_blank: bool = False
    #: The blocks that earlier runs have stored, if the write can be resumed.
    recorded: RecordedBlocks | None = None
    #: The marker of the unfinished array, from the first task to the last.
    marker: LaterMarker | None = None
    #: The claim of the array whose documents come last, from the first task to the last.
    claim: LaterClaim | None = None

    @property
    def is_compared(self) -> bool:
        """Whether values are compared with the stored ones, and not stored."""
        return self.chunks.guard is ComparedStore

    @property
    def stores_all(self) -> bool:
        """Whether this call stores all chunks, as no earlier run has stored any."""
        before = self.recorded
        return not self.is_compared and (
            before is None or not (before.stored or before.is_complete)
        )

    @cached_property
    def written(self) -> ArrayRegion:
        """The written region of the final array."""
        return ArrayRegion(chunks_of(self.array), self.region)

    @property
    def expected(self) -> tuple[NodePath, ArrayMetadata] | LaterClaim | None:
        """The array that tasks find whenever they run, if its documents are stored by then.

        If they are not, it is the claim of the array.
        """
        if self.claim is not None:
            return self.claim
        is_there = self.marker is not None or isinstance(self.change, NewArray | ExistingArray)
        if not is_there or self.array.store.capabilities.forks:
            return None
        return self.array.node_path, self.array.metadata

    @classmethod
    def replacing(cls, array: Array) -> Self:
        """Return the target for an array that `_can_stage`: it replaces the node when complete."""
        change = ReplacedNode(array.node_path.current, array.metadata)
        chunks = change.new.chunks(array.metadata)
        return cls(array, whole_region(array.shape), chunks, change, is_blank=True)

    @classmethod
    def comparing(cls, node: NodePath, metadata: ArrayMetadata) -> Self | None:
        """Return the target for an array that a write has completed, if the documents are equal.

        Nothing is changed: the write that is made again compares what it would store, unless that
        is known to be what is there.
        """
        view = find_complete_node(node, metadata)
        if view is None:
            return None
        array = Array(view.fresh, metadata, "r+")
        chunks = compared(chunks_of(array))
        return cls(array, whole_region(array.shape), chunks, None)

    def digested(self) -> Self:
        """Return the same, with digests of the chunks that this process stores."""
        return replace(self, chunks=digested(self.chunks))

    def marked(self) -> Self:
        """Return the same for a new array whose chunks are computed later."""
        return replace(self, marker=LaterMarker.of(self.array.node_path))

    def known(self, record: ArrayRecord) -> Self:
        """Return the same without blocks, if the array is known to be as the write stored it."""
        if not record.is_finished:
            return self
        record.blocks.is_complete = True
        return replace(self, recorded=record.blocks)

    @classmethod
    def existing(cls, array: Array, region: Region) -> Self:
        """Return the target for a region of an array that exists."""
        change = ExistingArray(array)
        return cls(array, region, chunks_of(array), change, beyond="keep", is_new=False)


@dataclass(frozen=True)
class ExistingArray(Change):
    """An existing array whose chunks are stored one by one."""

    array: Array

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.array.node_path.location

    def begin(self) -> None:
        """Store valid documents, if the documents of the array are invalid."""
        self.array.node_path.store_repaired(chunks_of(self.array))

    def abort(self) -> str:
        """Describe what the array holds now."""
        return "each stored chunk or shard has either its old or its new content"


def find_target(
    x: da.Array,
    url: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    how: WriteOptions,
    options: dict[str, Any],
    inputs: Inputs,
) -> WriteTarget:
    """Return the target of an array: a new array, or an existing one. Nothing is written.

    `options` are the options of a new array, and `inputs` the stored arrays that this call reads.
    """
    node = locate_node(url, component, storage_options)
    check_changeable(node.store)
    is_open = is_opened(url) and not component
    if not (is_open or how.region is not None or how.mode == "r+"):
        options = {
            "dtype": data_type_of(x),
            **options,
            **chunk_options(x.chunks, how.grid, options),
        }
        if isinstance(url, Group):
            options.setdefault("zarr_format", url.zarr_format)
        chosen = options.get("zarr_format")
        seen = node if chosen is not None else node.prefetched(None, listed=True)
        options["zarr_format"] = seen.format_of_new(chosen)
        metadata = plan_array(ArrayOptions(shape=x.shape, **options))
        check_elements(x, metadata)
        return _new_array(node, seen, metadata, how, inputs)
    if options or how.grid != "regular" or how.commit != "first":
        raise MetadataError(
            "these options are for new arrays, and this array exists; omit them",
            key=node.location,
            found=sorted(options) or ["grid" if how.grid != "regular" else "commit"],
        )
    array = _opened(url) if is_open else open_array(*node, mode="r+")
    check_writable(array)
    check_not_replaced(array)
    return _existing_region(array, written_region(x.shape, how.region, array.metadata), inputs)


def is_opened(target: Any) -> bool:
    """Whether a target is an open array, of zarrdask or zarr-python."""
    return isinstance(target, Array) or is_zarr_object(target, "Array")


def _opened(target: Any) -> Array:
    """Return a target that is an open array as an array of zarrdask."""
    if isinstance(target, Array):
        return target
    # The store may be writable though the array is not.
    return open_array(target, mode="r" if target.read_only else "r+", consolidated=False)


def _new_array(
    node: NodePath, seen: NodePath, metadata: ArrayMetadata, how: WriteOptions, inputs: Inputs
) -> WriteTarget:
    """Return the target of a new array; `seen` may have read beforehand what is there."""
    prefetched = seen.prefetched(metadata, listed=True)
    # Some resumed arrays may be complete: `ResumableChanges` checks that.
    view = prefetched.check_creation(metadata, overwrite=how.replaces or bool(how.resume))
    existed = (how.replaces or bool(how.resume)) and view.has_document()
    array = Array(view.fresh, metadata, "r+")
    # Whatever the blocks read, through this package or not: the old array stays until the end.
    if existed and not how.resume and _can_stage(array):
        return WriteTarget.replacing(array)
    # A group of the draft may have no document.
    erases = how.replaces and (existed or view.layout.base is not None)
    if erases and inputs.are_below(chunks_of(array).canonical_location):
        raise _read_error(node)
    region = whole_region(array.shape)
    # Where chunks need an array (icechunk), nothing is visible before the commit of the session.
    if how.resume or (how.commit == "last" and not node.store.capabilities.bounded):
        is_later = not (how.is_immediate or how.resume)
        claim = LaterClaim(node, array.node_path, {"": metadata}) if is_later else None
        late = LateArray(
            node, array.node_path, metadata, erases, existed, later=claim,
            is_immediate=how.is_immediate, is_recorded=bool(how.resume), overwrites=how.replaces,
        )  # fmt: skip
        return WriteTarget(array, region, chunks_of(array), late, claim=claim)
    marker = new_marker(node) if how.is_immediate else None
    new = NewArray(prefetched, metadata, how.replaces, existed, marker=marker)
    # If an array is read as it is written, only a part may be computed.
    later = None if how.is_immediate or how.is_read else LaterMarker.of(array.node_path)
    return WriteTarget(array, region, chunks_of(array), new, is_blank=new.is_blank, marker=later)


def write_id(x: da.Array, metadata: ArrayMetadata, region: Any = None) -> dict[str, str]:
    """Return the values that identify the write of an array, by their names."""
    settings = [config.get(name) for name in ("block-size", "write-empty-chunks")]
    return {
        "name of the Dask array": x.name,
        "chunks or data type of the Dask array": digest(x.chunks, x.dtype.str),
        "metadata of the target": digest(metadata.render()),
        "region": digest(region),
        "zarrdask.block-size or zarrdask.write-empty-chunks": digest(settings),
    }


def _read_error(node: NodePath) -> NodeExistsError:
    return NodeExistsError(
        "the new array is computed from the array that it would replace, and this store can't "
        "keep the old array until the new one is complete; write it elsewhere",
        key=node.location,
    )


def _can_stage(array: Array) -> bool:
    return not array.metadata.transformers and can_stage(array.node_path.current)


def _existing_region(array: Array, region: Region, inputs: Inputs) -> WriteTarget:
    if inputs.overlap(ArrayRegion(chunks_of(array), region)):
        current = open_array(*array.node_path, mode="r+", consolidated=False)
        if region == whole_region(current.shape) and _can_stage(current):
            return WriteTarget.replacing(current)
        raise SelectionError(
            "the source reads the region that is being overwritten; write elsewhere, or read "
            "less: from_zarr(..., region=...)",
            key=array.node_path.location,
            found=region,
        )
    return WriteTarget.existing(array, region)
