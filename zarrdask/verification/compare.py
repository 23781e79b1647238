"""Compare two arrays: what their metadata say, and their elements, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from math import prod
from typing import Any

import numpy as np

from zarrdask.chunks.inventory import chunks_with_data
from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks
from zarrdask.display.words import counted, first_of
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.grids.base import Index, Shape, extent_at
from zarrdask.grids.regular import RegularGrid
from zarrdask.indexing.selection import Region
from zarrdask.metadata.json import render_json
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.retry import is_transient

#: Kinds of dtypes whose values are told without their type.
_PLAIN = "biufcmM"


@dataclass(frozen=True)
class Difference:
    """Something that the metadata of two nodes tell differently.

    Attributes
    ----------
    path : str
        Of the node, below what is compared.
    what : str
        "node", "shape", "data type", "fill value", "dimension names" or "attributes".
    a, b : str
        How it is in each.
    """

    path: str
    what: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.what}: {self.a} and {self.b}"


@dataclass(frozen=True)
class ArrayComparison:
    """What was found of the elements of two arrays.

    Attributes
    ----------
    path : str
        Below what is compared.
    size : int
        How many elements each has.
    differing : int
        How many are not the same.
    first : tuple of int, optional
        The index of the first of these, in C order.
    values : tuple of str, optional
        What stands there in each.
    errors : tuple of str
        What could not be read.
    """

    path: str
    size: int
    differing: int = 0
    first: Index | None = None
    values: tuple[str, str] | None = None
    errors: tuple[str, ...] = ()

    def __add__(self, other: "ArrayComparison") -> "ArrayComparison":
        found = [each for each in (self, other) if each.first is not None]
        least = min(found, key=lambda each: each.first or (), default=self)
        return replace(
            self,
            differing=self.differing + other.differing,
            first=least.first,
            values=least.values,
            errors=(*self.errors, *other.errors),
        )

    def __str__(self) -> str:
        text = f"{self.path or '/'}: {self.differing} of {self.size} elements differ"
        if self.first is not None and self.values is not None:
            text += f", the first at {self.first}: {self.values[0]} and {self.values[1]}"
        return "\n".join([text, *(f"  can't be read: {error}" for error in self.errors)])


@dataclass(frozen=True)
class Comparison:
    """What `verify` found of two arrays or hierarchies. It prints itself.

    Attributes
    ----------
    a, b : str
        What was compared.
    arrays : tuple of ArrayComparison
        Those that are in both, with the same shape.
    differences : tuple of Difference
        Of metadata: of nodes that are in one only, or of another kind, too. Formats, chunks and
        codecs are not compared.
    """

    a: str
    b: str
    arrays: tuple[ArrayComparison, ...]
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether both hold the same elements, and tell the same of them."""
        return self.same_elements and not self.differences

    @property
    def same_elements(self) -> bool:
        """Whether both have the same arrays, of the same shapes, with the same elements."""
        named = {"node", "shape"}
        return not (
            any(each.differing or each.errors for each in self.arrays)
            or any(difference.what in named for difference in self.differences)
        )

    def __str__(self) -> str:
        size = sum(each.size for each in self.arrays)
        arrays = counted(len(self.arrays), "array")
        lines = [f"{self.a} and {self.b}: {counted(size, 'element')} in {arrays}"]
        lines += first_of([str(each) for each in self.arrays if each.differing or each.errors])
        lines += first_of([f"metadata  {each}" for each in self.differences])
        return "\n".join([*lines, "the same" if self.ok else "NOT THE SAME"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON has it."""
        return {
            "a": self.a,
            "b": self.b,
            "ok": self.ok,
            "same_elements": self.same_elements,
            "arrays": [dict(vars(each)) for each in self.arrays],
            "differences": [dict(vars(each)) for each in self.differences],
        }


# --------------------------------------------------------------------------------------------
# Metadata


def differences(path: str, a: Metadata, b: Metadata) -> Iterator[Difference]:
    """Yield what the metadata of two nodes tell differently."""
    if isinstance(a, ArrayMetadata) != isinstance(b, ArrayMetadata):
        kinds = ["array" if isinstance(each, ArrayMetadata) else "group" for each in (a, b)]
        yield Difference(path, "node", *kinds)
        return
    ours, theirs = _told(a), _told(b)
    for what, found in ours.items():
        if found != theirs[what]:
            yield Difference(path, what, found, theirs[what])


def _told(metadata: Metadata) -> dict[str, str]:
    """Return what is compared of a node's metadata, as text."""
    attributes = dict(metadata.attributes)
    if not isinstance(metadata, ArrayMetadata):
        return {"attributes": _as_text(attributes)}
    dtype = metadata.dtype.newbyteorder("=")
    fill = metadata.fill if dtype.hasobject else np.array(metadata.fill, dtype)
    names = metadata.dimension_names
    if names is not None and not any(names):
        names = None  # no name at all, in another spelling
    return {
        "shape": str(metadata.shape),
        "data type": str(dtype),
        "fill value": repr(fill) if dtype.hasobject else f"{fill} ({fill.tobytes().hex()})",
        "dimension names": str(names),
        "attributes": _as_text(attributes),
    }


def _as_text(attributes: dict[str, Any]) -> str:
    try:
        ordered = dict(sorted(attributes.items()))
        return render_json(ordered, "attributes", indent=None).decode()
    except ZarrdaskError:
        return repr(attributes)  # NaN, as old writers have it


# --------------------------------------------------------------------------------------------
# Elements


def blocks(a: StoredChunks, b: StoredChunks, most: int) -> Iterator[Region]:
    """Yield regions of two arrays of one shape in which they may differ, each of a bounded size.

    They are chunks of both where these fit in; else what is halved until they do is what makes
    the fewest chunks be read again and again. Where neither stores anything, they are the same if
    their fill values are.

    Parameters
    ----------
    most : int
        The bytes of a region, in either array.
    """
    one, other = a.metadata, b.metadata
    lengths = block_shape(one.shape, (_unit(one), _unit(other)), most // _itemsize(one, other))
    grid = RegularGrid(one.shape, lengths)
    for index in chunks_with_data(grid, [a, b]) if _same_fill(one, other) else grid.indices():
        yield extent_at(grid, index)


def _same_fill(one: ArrayMetadata, other: ArrayMetadata) -> bool:
    if one.dtype.hasobject or other.dtype.hasobject:
        return _equal(one.fill, other.fill)
    fill, another = (np.asarray(metadata.fill, metadata.dtype) for metadata in (one, other))
    return not differing(fill, another).any()


def _itemsize(a: ArrayMetadata, b: ArrayMetadata) -> int:
    return max(a.dtype.itemsize, b.dtype.itemsize, 1)


def _unit(metadata: ArrayMetadata) -> Shape:
    """Return the shape of what is read at once: in shards of the chunks within."""
    return metadata.read_grid.chunk_shape


def block_shape(shape: Shape, units: tuple[Shape, Shape], most: int) -> Shape:
    """Return the shape of the blocks by which two arrays are compared.

    >>> block_shape((256, 1024, 1024), ((1, 1024, 1024), (256, 64, 64)), 2**22)
    (32, 256, 512)
    >>> block_shape((1000,), ((10,), (15,)), 64)
    (60,)
    """
    lengths = [max(1, min(max(pair), n)) for *pair, n in zip(*units, shape, strict=True)]
    while prod(lengths) > most and max(lengths) > 1:
        halved = [
            [-(-n // 2) if i == axis else n for i, n in enumerate(lengths)]
            for axis, length in enumerate(lengths)
            if length > 1
        ]
        lengths = min(halved, key=lambda found: _read_again(found, units))
    for axis in reversed(range(len(lengths))):
        # What room is left is for whole multiples, of the last axes first.
        room = most // max(prod(lengths), 1)
        times = min(room, -(-shape[axis] // lengths[axis]))
        lengths[axis] *= max(times, 1)
    return tuple(lengths)


def _read_again(lengths: list[int], units: tuple[Shape, Shape]) -> tuple[float, int]:
    """Return how often chunks of both are read by blocks of a shape; then the longest axis."""
    often = [prod(max(m / n, 1) for n, m in zip(lengths, unit, strict=True)) for unit in units]
    return sum(often), max(lengths)


def compare_region(a: StoredChunks, b: StoredChunks, path: str, region: Region) -> ArrayComparison:
    """Compare what two arrays hold in a region.

    Raises
    ------
    StoreError
        If a store can't be reached.
    """
    values, errors = [], []
    for chunks in (a, b):
        try:
            values.append(read_region(chunks, region))
        except ZarrdaskError as error:
            if isinstance(error, StoreError) and is_transient(error):
                raise
            errors.append(f"{chunks.store.url}: {error}")
    size = prod(a.metadata.shape)
    if errors:
        return ArrayComparison(path, size, errors=tuple(errors))
    differ = differing(*values)
    count = int(np.count_nonzero(differ))
    if not count:
        return ArrayComparison(path, size)
    at = np.unravel_index(int(np.argmax(differ)), differ.shape) if differ.ndim else ()
    first = tuple(int(i) + part.start for i, part in zip(at, region, strict=True))
    return ArrayComparison(path, size, count, first, _shown(values[0][at], values[1][at]))


def _shown(a: Any, b: Any) -> tuple[str, str]:
    """Return two elements that differ as texts that do, too."""
    texts = [
        str(each)
        if getattr(each, "dtype", None) is not None and each.dtype.kind in _PLAIN
        else repr(each)
        for each in (a, b)
    ]
    if texts[0] == texts[1] and isinstance(a, np.generic) and isinstance(b, np.generic):
        # NaNs of other bits, or values of other types.
        texts = [
            f"{text} ({each.dtype} 0x{each.tobytes()[::-1].hex()})"
            for text, each in zip(texts, (a, b), strict=True)
        ]
    return texts[0], texts[1]


def differing(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays differ: in any bit, or by value where their types do.

    So -0.0 is not 0.0, and a NaN is the same as one of the same bits only. By value, NaN is NaN.
    The byte order makes no difference.

    >>> differing(np.array([0.0, 1.0, np.nan]), np.array([-0.0, 1.0, np.nan])).tolist()
    [True, False, False]
    """
    dtype = a.dtype.newbyteorder("=")
    if dtype.hasobject or b.dtype.newbyteorder("=") != dtype:
        return _unequal(a, b)
    if not dtype.itemsize:
        return np.zeros(a.shape, bool)
    rows = [
        np.ascontiguousarray(each.astype(dtype, copy=False)).reshape(-1).view(np.uint8)
        for each in (a, b)
    ]
    width = dtype.itemsize
    if width in (2, 4, 8):
        rows = [each.view(f"u{width}") for each in rows]
        unequal = rows[0] != rows[1]
    else:
        table = [each.reshape(-1, width) for each in rows]
        unequal = (table[0] != table[1]).any(axis=1)
    found: np.ndarray = unequal.reshape(a.shape)
    return found


def _unequal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.hasobject or b.dtype.hasobject:
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        unequal = [not _equal(*pair) for pair in pairs]
        return np.array(unequal, bool).reshape(a.shape)
    try:
        unequal = np.asarray(a != b) & ~(_is_nan(a) & _is_nan(b))
    except (TypeError, np.exceptions.DTypePromotionError):
        return np.ones(a.shape, bool)  # of types that have nothing in common
    return unequal if unequal.shape == a.shape else np.ones(a.shape, bool)


def _is_nan(value: Any) -> Any:
    # The one value that is not itself; not all dtypes have NumPy's function for it.
    itself = value
    return value != itself


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a == b or (_is_nan(a) and _is_nan(b)))
