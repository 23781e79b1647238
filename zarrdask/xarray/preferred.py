"""The default blocks of a variable in xarray, if the user passes no lengths: joined chunks.

xarray asks ``encoding["preferred_chunks"]`` two questions: which blocks to make along a dimension
without a given length, and where the stored chunks end, to warn if given blocks cut them.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from zarrdask import config
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.parallel.plan.align import auto_block
from zarrdask.runtime.packages import load_module


@dataclass(frozen=True)
class Storage:
    """How a variable is stored, as far as its blocks depend on it."""

    dims: tuple[Hashable, ...]
    #: The stored chunks, or shards, along each axis.
    axes: tuple[Axis, ...]
    #: The size of an element in bytes by which blocks are joined; see `decoded_sizes`.
    itemsize: int
    #: `block_factor` of the store's costs.
    block_factor: int

    def blocks(self) -> dict[Hashable, "JoinedLength | JoinedLengths"]:
        """Return the blocks of `zarrdask.from_zarr` by dimension."""
        # Imported here: xarray asks for blocks only if it uses Dask.
        from zarrdask.parallel.graph.blocks import block_bytes

        # For "auto", Dask multiplies these blocks; it would divide larger ones within chunks.
        auto_size = load_module("dask.config").get("array.chunk-size")
        auto_limit = config.parse_size(auto_size, "array.chunk-size")
        return _blocks(self, min(block_bytes(self.block_factor), auto_limit))


@lru_cache(maxsize=256)
def _blocks(storage: Storage, limit: int) -> "dict[Hashable, JoinedLength | JoinedLengths]":
    """Return the blocks of at most `limit` bytes; many variables are stored in the same way."""
    shape = tuple(axis.size for axis in storage.axes)
    chunk = tuple(axis.longest for axis in storage.axes)
    block = auto_block(shape, chunk, chunk, storage.itemsize, limit)
    blocks: dict[Hashable, JoinedLength | JoinedLengths] = {}
    for dim, axis, length in zip(storage.dims, storage.axes, block, strict=True):
        whole = axis.join(length)
        common = _common_length(whole)
        joined = JoinedLengths(_lengths(whole)) if common is None else JoinedLength(common)
        joined.axis, joined.block_factor = axis, storage.block_factor
        joined.itemsize = storage.itemsize
        blocks[dim] = joined
    return blocks


class JoinedLength(int):
    """The length of blocks of joined chunks, chosen here and not by the user.

    By the class, the chunk manager recognises lengths that it may change.
    """

    #: The stored chunks.
    axis: Axis
    block_factor: int
    itemsize: int


class JoinedLengths(tuple[int, ...]):
    """The lengths of all blocks along an axis, where they differ; see `JoinedLength`."""

    axis: Axis
    block_factor: int
    itemsize: int


class PreferredChunks(dict[Hashable, Any]):
    """The lengths of the stored chunks by dimension; `get` with a default returns joined blocks.

    xarray looks for the blocks to make by ``get(dim, size)``, and for the stored chunks, which it
    compares with given blocks, by ``get(dim)`` or ``[dim]``.
    """

    storage: Storage

    @classmethod
    def of(
        cls, dims: tuple[Hashable, ...], grid: ChunkGrid, itemsize: int, block_factor: int
    ) -> "PreferredChunks":
        """Return the preferred chunks of an array that is stored with a chunk grid."""
        chunks = cls(zip(dims, map(axis_lengths, grid.axes), strict=True))
        chunks.storage = Storage(dims, grid.axes, itemsize, block_factor)
        return chunks

    @property
    def layout(self) -> Hashable:
        """The common properties of variables that are divided into the same chunks."""
        sizes = tuple(axis.size for axis in self.storage.axes)
        return tuple(self.items()), sizes

    def decoded(self, itemsize: int) -> "PreferredChunks":
        """Return them for elements that have a size after decoding."""
        chunks = PreferredChunks(self)
        chunks.storage = replace(self.storage, itemsize=itemsize)
        return chunks

    def get(self, dim: Hashable, default: Any = None) -> Any:
        """Return the stored length or, if there is a default, the length of joined blocks."""
        if default is None:
            return super().get(dim)
        return self.storage.blocks().get(dim, default)


def decoded_sizes(
    variables: Iterable[tuple[PreferredChunks, int]],
) -> dict[Hashable, int]:
    """Return the size of the largest elements of the variables of each layout.

    The blocks of all of them are joined by this size: with blocks of the same size in bytes,
    variables of different data types would have different blocks, which xarray does not combine.
    """
    sizes: dict[Hashable, int] = {}
    for chunks, itemsize in variables:
        sizes[chunks.layout] = max(itemsize, sizes.get(chunks.layout, 0))
    return sizes


def axis_lengths(axis: Axis) -> int | tuple[int, ...]:
    """Return the length of all chunks along an axis, or each length if they differ."""
    common = _common_length(axis)
    return _lengths(axis) if common is None else common


def _common_length(axis: Axis) -> int | None:
    """Return the length of all chunks along an axis; None if they differ."""
    lengths = axis.lengths
    # Rectilinear grids are sometimes regular along an axis; the last chunk may be shorter.
    is_common = len(set(lengths[:-1])) <= 1 and lengths and lengths[-1] <= lengths[0]
    return lengths[0] if is_common else None


def _lengths(axis: Axis) -> tuple[int, ...]:
    return axis.blocks(slice(0, axis.size, 1))
