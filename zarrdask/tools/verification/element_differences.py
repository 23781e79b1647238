"""Find the elements of two arrays that differ, block by block."""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import chunks_with_data
from zarrdask.display.words import value_text
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.model import ArrayMetadata

#: The kinds of data types whose values are shown without their type.
_PLAIN_KINDS = "biufcmM"


def blocks(a: StoredChunks, b: StoredChunks, max_bytes: int) -> Iterator[Region]:
    """Yield the regions in which two arrays of one shape may differ, each of a bounded size.

    A region covers whole chunks of both arrays where these fit into the limit. Otherwise it is
    halved along the axes where that makes the fewest chunks be read several times. Regions where
    neither array stores anything are left out if the fill values are equal.
    """
    one, other = a.metadata, b.metadata
    chunks = one.read_grid.chunk_shape, other.read_grid.chunk_shape
    itemsize = max(one.dtype.itemsize, other.dtype.itemsize, 1)
    lengths = block_shape(one.shape, chunks, max_bytes // itemsize)
    grid = RegularGrid(one.shape, lengths)
    for index in chunks_with_data(grid, [a, b]) if _same_fill(one, other) else grid.indices():
        yield grid.region(index)


def _same_fill(one: ArrayMetadata, other: ArrayMetadata) -> bool:
    if one.dtype.hasobject or other.dtype.hasobject:
        return _equal(one.fill, other.fill)
    fill, another = (np.asarray(metadata.fill, metadata.dtype) for metadata in (one, other))
    return not differing(fill, another).any()


def block_shape(shape: Shape, chunks: tuple[Shape, Shape], max_size: int) -> Shape:
    """Return the shape of the blocks by which two arrays are compared.

    Examples
    --------
    >>> block_shape((256, 1024, 1024), ((1, 1024, 1024), (256, 64, 64)), 2**22)
    (32, 256, 512)
    >>> block_shape((1000,), ((10,), (15,)), 64)
    (60,)
    """

    def read_cost(lengths: list[int]) -> tuple[float, int]:
        """Return how often blocks read each chunk, for both arrays; and the longest axis."""
        pairs = [zip(lengths, chunk, strict=True) for chunk in chunks]
        return sum(prod(max(m / n, 1) for n, m in pair) for pair in pairs), max(lengths)

    lengths = [max(1, min(max(pair), n)) for *pair, n in zip(*chunks, shape, strict=True)]
    while prod(lengths) > max_size and max(lengths) > 1:
        halved = [
            [-(-n // 2) if i == axis else n for i, n in enumerate(lengths)]
            for axis, length in enumerate(lengths)
            if length > 1
        ]
        lengths = min(halved, key=read_cost)
    for axis in reversed(range(len(lengths))):
        # If there is room, a block covers several times as much, along the last axes first.
        room = max_size // max(prod(lengths), 1)
        times = min(room, -(-shape[axis] // lengths[axis]))
        lengths[axis] *= max(times, 1)
    return tuple(lengths)


def texts_of(a: Any, b: Any) -> tuple[str, str]:
    """Return two elements that differ as texts that differ, too."""
    texts = [
        value_text(value)
        if getattr(value, "dtype", None) is not None and value.dtype.kind in _PLAIN_KINDS
        else value_text(value, repr)
        for value in (a, b)
    ]
    if texts[0] == texts[1] and isinstance(a, np.generic) and isinstance(b, np.generic):
        # NaNs with different bits, or equal values of different types.
        texts = [
            f"{text} ({value.dtype} 0x{value.tobytes()[::-1].hex()})"
            for text, value in zip(texts, (a, b), strict=True)
        ]
    return texts[0], texts[1]


def differing(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a mask of the elements that differ.

    Elements of the same data type differ if any bit does: -0.0 is not 0.0, and a NaN equals only a
    NaN with the same bits. The byte order makes no difference. Elements of different types are
    compared by value: all NaNs are equal then.

    >>> differing(np.array([0.0, 1.0, np.nan]), np.array([-0.0, 1.0, np.nan])).tolist()
    [True, False, False]
    """
    dtype = a.dtype.newbyteorder("=")
    if dtype.hasobject or b.dtype.newbyteorder("=") != dtype:
        return _unequal(a, b)
    if not dtype.itemsize:
        return np.zeros(a.shape, bool)
    rows = [
        np.ascontiguousarray(values.astype(dtype, copy=False)).reshape(-1).view(np.uint8)
        for values in (a, b)
    ]
    width = dtype.itemsize
    if width in (2, 4, 8):
        rows = [row.view(f"u{width}") for row in rows]
        unequal = rows[0] != rows[1]
    else:
        table = [row.reshape(-1, width) for row in rows]
        unequal = (table[0] != table[1]).any(axis=1)
    return np.asarray(unequal.reshape(a.shape))


def _unequal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.hasobject or b.dtype.hasobject:
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        return np.array([not _equal(*pair) for pair in pairs], bool).reshape(a.shape)
    try:
        unequal = np.asarray(a != b) & ~(_is_nan(a) & _is_nan(b))
    except (TypeError, np.exceptions.DTypePromotionError):
        return np.ones(a.shape, bool)  # types that can't be compared
    return unequal if unequal.shape == a.shape else np.ones(a.shape, bool)


def _is_nan(value: Any) -> Any:
    # NaN is the only value that differs from itself; np.isnan does not support all data types.
    same = value
    return value != same


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a == b or (_is_nan(a) and _is_nan(b)))
