"""The targets of writes: what happens before the blocks are written, afterwards, and on failure."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import dask.array as da

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.region import ArrayRegion
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import Beyond
from zarrdask.compliance import strictness
from zarrdask.errors import MetadataError, NodeExistsError, SelectionError
from zarrdask.execution.client import check_visible
from zarrdask.graph.dependencies import Inputs
from zarrdask.graph.placement import chunk_options, find_place
from zarrdask.graph.read import data_type_of
from zarrdask.hierarchy.create import create_parents, put_documents
from zarrdask.hierarchy.lookup import locate_node
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.replace import Stage, can_stage
from zarrdask.indexing.selection import Region, whole_region
from zarrdask.metadata.create import plan_array
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.metadata.options import ArrayOptions, GridLike
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.open import check_commit, check_mode, open_array
from zarrdask.storage.v3_draft import DraftStore


class WriteOptions(NamedTuple):
    """The options of `to_zarr` that are not options of a new array; see there."""

    region: Any = None
    mode: str = "a"
    overwrite: bool = False
    grid: GridLike = "regular"
    commit: Literal["first", "last"] = "first"

    def check(self) -> None:
        """Check the options that have a few possible values."""
        check_mode(self.mode, ("a", "r+", "w", "w-"))
        check_commit(self.commit)

    @property
    def replaces(self) -> bool:
        """Whether an existing node is replaced."""
        return self.overwrite or self.mode == "w"


@dataclass(frozen=True)
class WriteTarget(ABC):
    """An array, or a region of one, that a Dask array is written to.

    Nothing is written before `begin` is called. Instances pickle, as `commit` may run in a task.
    """

    #: The array as it is after the write.
    array: Array
    #: The region of the array that is written.
    region: Region
    #: The stored chunks that tasks write to.
    chunks: StoredChunks

    #: What becomes of the elements that stored units hold beyond the end of the array: they are
    #: kept, or become the fill value; see `zarrdask.chunks.write.write_region`.
    beyond: ClassVar[Beyond] = "fill"
    #: Whether the array is created or replaced.
    is_new: ClassVar[bool] = True
    #: Whether `commit` does anything.
    has_commit: ClassVar[bool] = True

    @property
    def written(self) -> ArrayRegion:
        """The written region, at its final place."""
        return ArrayRegion(self.array.stored, self.region)

    @property
    def is_blank(self) -> bool:
        """Whether `begin` makes sure that nothing is stored in the region."""
        return False

    def begin(self) -> None:  # noqa: B027 - most targets need no preparation
        """Prepare the target. Called once, before the first block is written."""

    def commit(self) -> None:  # noqa: B027 - nor do they need this
        """Finish the write after all blocks were written. It may run again, and elsewhere."""

    @abstractmethod
    def abort(self) -> str:
        """Clean up after a failure, and describe what the target holds now.

        The text is empty if the caller does both.
        """


@dataclass(frozen=True)
class NewArray(WriteTarget):
    """A new array whose metadata are written before its chunks."""

    #: The node in the store that it is created in, which may know what is there already.
    node: NodePath
    #: Whether an existing node is erased first.
    overwrite: bool
    #: Whether there was a node when the write was requested.
    existed: bool

    has_commit: ClassVar[bool] = False

    @property
    def is_blank(self) -> bool:
        """Whether chunks that were left here can be found, and are erased."""
        is_listable = self.node.store.capabilities.listable
        return is_listable and not self.node.is_in_draft(self.array.metadata)

    def begin(self) -> None:
        """Erase the old node, if there is one, and write the metadata."""
        node, metadata = self.node, self.array.metadata

        def check() -> None:
            # Of two writers that create the array, the other may be writing chunks by now.
            self.array.node_path.check_creation(metadata, overwrite=False)

        if not self.overwrite and not node.is_in_draft(metadata):
            erase_leftovers(node.chunks(metadata), unless=check)
        node.create(metadata, overwrite=self.overwrite)

    def abort(self) -> str:
        """Describe what the target holds now."""
        erased = "the previous content was erased; " if self.existed else ""
        return f"{erased}chunks or shards that were not written read as the fill value"


@dataclass(frozen=True)
class LateArray(WriteTarget):
    """A new array whose metadata are written after its chunks."""

    #: The node in the store that it is created in.
    node: NodePath
    #: Whether an existing node may have to be erased first.
    erases: bool
    #: Whether there was a node when the write was requested.
    existed: bool

    def begin(self) -> None:
        """Erase the old node, if there is one."""
        if self.erases:
            self.array.node_path.erase()

    def commit(self) -> None:
        """Write the metadata, or only those documents that an interrupted commit left out."""
        node = self.array.node_path
        documents = self.array.metadata.render()
        stored = {name: node.store.get(node.prefix + name) for name in documents}
        if any(stored.values()) and all(
            stored[name] in (None, value) for name, value in documents.items()
        ):
            put_documents(node, documents)
            return
        # Warnings about the metadata were given when the write was requested.
        with strictness(strict=False, quiet=True):
            self.node.create(self.array.metadata, overwrite=False)

    def abort(self) -> str:
        """Describe what the target holds now."""
        erased = ", and the previous content was erased" if self.existed else ""
        return f"there is no array{erased}; the next write here replaces chunks that may be left"


@dataclass(frozen=True)
class ReplacedArray(WriteTarget):
    """A new array that is written beside an existing node, and replaces it when complete."""

    #: The hidden directory that the tasks write to.
    stage: Stage

    is_blank: ClassVar[bool] = True

    @classmethod
    def of(cls, array: Array) -> "ReplacedArray":
        """Return the target for an array that `_can_stage`."""
        stage = Stage(array.node_path.current)
        chunks = NodePath(stage.inner, "").chunks(array.metadata)
        return cls(array, whole_region(array.shape), chunks, stage)

    def begin(self) -> None:
        """Create the hidden directory."""
        self.stage.begin(self.array.metadata.render())

    def commit(self) -> None:
        """Put the new array in the place of the old node."""
        create_parents(self.stage.node, self.array.metadata)
        self.stage.finish()

    def abort(self) -> str:
        """Remove the new array, and describe what the target holds now."""
        unchanged = "the previous content is unchanged"
        try:
            self.stage.give_up()
        except OSError as error:
            return f"{unchanged}, but the hidden directory of the new array is left: {error}"
        return unchanged


@dataclass(frozen=True)
class ExistingRegion(WriteTarget):
    """A region of an existing array."""

    beyond: ClassVar[Beyond] = "keep"
    is_new: ClassVar[bool] = False
    has_commit: ClassVar[bool] = False

    def abort(self) -> str:
        """Describe what the target holds now."""
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

    `options` are those of a new array, and `inputs` what all arrays read that the call stores.
    """
    how.check()
    node = locate_node(url, component, storage_options)
    check_visible(node.store)
    is_open = isinstance(url, Array) and not component
    if not (is_open or how.region is not None or how.mode == "r+"):
        options = {
            **chunk_options(x.chunks, how.grid, options),
            "dtype": data_type_of(x),
        } | options
        if isinstance(node.store, DraftStore):
            options.setdefault("zarr_format", node.store.zarr_format)
        elif isinstance(url, Group):
            options.setdefault("zarr_format", url.zarr_format)
        metadata = plan_array(ArrayOptions(shape=x.shape, **options))
        return _new_array(node, metadata, how, inputs)
    if options or how.grid != "regular" or how.commit != "first":
        raise MetadataError(
            "these options are for new arrays, and this array exists; omit them",
            key=node.location,
            found=sorted(options) or ["grid" if how.grid != "regular" else "commit"],
        )
    array: Array = url if is_open else open_array(*node, mode="r+")
    array.check_writable()
    return _existing_region(array, find_place(x.shape, how.region, array.metadata), inputs)


def _new_array(
    node: NodePath, metadata: ArrayMetadata, how: WriteOptions, inputs: Inputs
) -> WriteTarget:
    known = node.prefetched(metadata, listed=True)
    view = known.check_creation(metadata, overwrite=how.replaces)
    existed = how.replaces and view.has_document()
    array = Array(*view.fresh, metadata, "r+")
    # Whatever the blocks read, through this package or not: the old array stays until the end.
    if existed and _can_stage(array):
        return ReplacedArray.of(array)
    # A group of the draft may have no document.
    erases = how.replaces and (existed or isinstance(view.store, DraftStore))
    if erases and inputs.are_below(array.stored.place):
        raise NodeExistsError(
            "the new array is computed from the one that it would replace, which this store can't "
            "keep until the new one is complete; write it elsewhere",
            key=node.location,
        )
    region = whole_region(array.shape)
    if how.commit == "first":
        return NewArray(array, region, array.stored, known, how.replaces, existed)
    return LateArray(array, region, array.stored, node, erases, existed)


def _can_stage(array: Array) -> bool:
    return not array.metadata.transformers and can_stage(array.node_path.current)


def _existing_region(array: Array, region: Region, inputs: Inputs) -> WriteTarget:
    if inputs.overlap(ArrayRegion(array.stored, region)):
        current = open_array(*array.node_path, mode="r+", consolidated=False)
        if region == whole_region(current.shape) and _can_stage(current):
            return ReplacedArray.of(current)
        raise SelectionError(
            "the source reads the region that is being overwritten; write elsewhere, or read "
            "less: from_zarr(..., region=...)",
            key=array.node_path.location,
            found=region,
        )
    return ExistingRegion(array, region, array.stored)
