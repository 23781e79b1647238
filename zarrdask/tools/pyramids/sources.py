"""The source of a pyramid: a stored array, a Dask array, or one of xarray."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import dask.array as da
import numpy as np

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.open_group import open as open_node
from zarrdask.errors import NodeExistsError, NodeTypeError
from zarrdask.formats.grids.axis import Axis, axis_of
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.graph.placement import chunk_options
from zarrdask.parallel.graph.stored_array import data_type_of
from zarrdask.parallel.graph.writing.write_job import as_dask_array, is_labelled
from zarrdask.parallel.rewrite.node_plan import check_apart, check_unchanged, documents_of
from zarrdask.storage.base import Store


@dataclass(frozen=True, eq=False)
class PyramidSource:
    """The array that is read: a stored one, or the blocks of a Dask array.

    `metadata` describes level 0, as it is or would be stored.
    """

    metadata: ArrayMetadata
    array: Array | None = None
    blocks: da.Array | None = None

    @property
    def location(self) -> str:
        """The location of the source, for messages."""
        return "a Dask array" if self.array is None else self.array.node_path.location

    @property
    def is_cast(self) -> bool:
        """Whether level 0 has another data type than the stored array."""
        return self.array is not None and self.array.dtype != self.metadata.dtype

    @property
    def itemsize(self) -> int:
        """The bytes that a task holds for a cell; if it is cast, in both data types."""
        read = self.array.dtype.itemsize if self.array is not None and self.is_cast else 0
        return self.metadata.dtype.itemsize + read

    @property
    def chunk_bytes(self) -> int:
        """The bytes of the largest chunk that is read; 0 for blocks, which Dask counts itself."""
        if self.array is None:
            return 0
        return prod(min(axis.longest, axis.size) for axis in self.axes) * self.array.dtype.itemsize

    @property
    def stores(self) -> tuple[Store, ...]:
        """The store of a stored array."""
        return () if self.array is None else (self.array.store,)

    @property
    def fingerprint(self) -> list[Any]:
        """Values that differ between any two sources."""
        if self.array is None:
            return [] if self.blocks is None else [self.blocks.name]
        return [chunks_of(self.array).canonical_location, documents_of(self.array.metadata)]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The chunks that can be read by themselves, along each axis."""
        if self.array is not None:
            return self.array.metadata.read_grid.axes
        chunks = () if self.blocks is None else self.blocks.chunks
        return tuple(axis_of(sum(lengths), lengths) for lengths in chunks)

    @property
    def pieces(self) -> Shape:
        """The lengths of the chunks that are read; 1 along an axis where they differ."""
        if self.array is None:
            return (1,) * len(self.metadata.shape)
        return tuple(a.lengths[0] if len(a.lengths) == 1 else 1 for a in self.axes)

    def path_in(self, node: NodePath) -> str | None:
        """Return the path of the stored array from a group; None if it is elsewhere."""
        if self.array is None:
            return None
        read, written = self.array.node_path.canonical_location, node.canonical_location
        is_inside = read.startswith(written) and read != written
        return read[len(written) :].strip("/") if is_inside else None

    def check_apart(self, node: NodePath) -> None:
        """Check that a new group is neither in the source nor around it."""
        if self.array is not None:
            check_apart(self.array.node_path, node, replaces=True)
        elif self.blocks is not None and Inputs([self.blocks]).are_below(node.canonical_location):
            raise NodeExistsError(
                "the source reads what would be overwritten; write to another location",
                key=node.location,
            )

    def check_unchanged(self) -> None:
        """Check that the source has not changed since the plan was made."""
        if self.array is not None:
            check_unchanged(self.array)


def find_source(
    source: Any, storage_options: dict[str, Any] | None, changes: Mapping[str, Any]
) -> PyramidSource:
    """Return the source that a user passes; `changes` are properties of the new arrays."""
    changes = {name: value for name, value in changes.items() if value is not None}
    if isinstance(source, da.Array | np.ndarray):
        return _of_blocks(source, changes)
    if is_labelled(source) and hasattr(source, "dims") and hasattr(source, "name"):
        labels = {"dimension_names": source.dims, "attributes": _attributes(source)}
        return _of_blocks(source.data, {**labels, **changes})
    array = (
        None
        if is_labelled(source)
        else open_node(source, storage_options=storage_options, consolidated=False)
    )
    if not isinstance(array, Array):
        raise NodeTypeError(
            "a pyramid is made from an array",
            key="source",
            found=type(source).__name__ if array is None else array,
            expected="an array, or one variable of a dataset or group",
        )
    before = array.metadata
    if "chunks" in changes and "shards" not in changes and before.shard is not None:
        changes["shards"] = False  # the old shards need not fit the new chunks
    return PyramidSource(convert(before, **changes), array)


def _of_blocks(values: Any, changes: Mapping[str, Any]) -> PyramidSource:
    if isinstance(values, np.ndarray):  # which has no blocks that the chunks could be
        changes = {"chunks": "auto", **changes}
    x = as_dask_array(values)
    lengths = chunk_options(x.chunks, "regular", changes)
    options = {"dtype": data_type_of(x), **changes, **lengths}
    return PyramidSource(plan_array(ArrayOptions(shape=x.shape, **options)), blocks=x)


def _attributes(source: Any) -> dict[str, Any]:
    """Return the attributes of an array of xarray that JSON can represent."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in source.attrs.items()
    }
