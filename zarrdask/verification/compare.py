"""Compare the metadata and the elements of two arrays, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from zarrdask.chunks.inventory import chunks_with_data
from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks
from zarrdask.display.report import Displayed, Report
from zarrdask.display.words import counted, first_of
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.execution.executor import run_shown
from zarrdask.execution.handle import Handle
from zarrdask.grids.base import Index, Shape, extent_at
from zarrdask.grids.regular import RegularGrid
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.indexing.selection import Region
from zarrdask.metadata.json import render_json
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.runtime.progress import Show
from zarrdask.storage.base import Store
from zarrdask.storage.retry import is_transient
from zarrdask.verification.scan import find_nodes

#: The differences that leave elements uncompared.
_STRUCTURE = ("node", "shape")
#: The kinds of data types whose values are shown without their type.
_PLAIN_KINDS = "biufcmM"


@dataclass(frozen=True)
class Difference(Displayed):
    """A difference between the metadata of two nodes.

    Attributes
    ----------
    path : str
        The path of the node below the nodes that are compared.
    what : str
        The property that differs: "node", "shape", "data type", "fill value", "dimension names"
        or "attributes".
    a, b : str
        The property of each node.
    """

    path: str
    what: str
    a: str
    b: str

    def _text(self) -> str:
        return f"{self.path or '/'}: {self.what}: {self.a} and {self.b}"


@dataclass(frozen=True)
class ArrayComparison(Displayed):
    """The comparison of the elements of two arrays.

    Attributes
    ----------
    path : str
        The path of the arrays below the nodes that are compared.
    size : int
        The number of elements of each array.
    differing : int
        The number of elements that differ.
    first : tuple of int, optional
        The index of the first element that differs, in C order.
    values : tuple of str, optional
        The values of this element in both arrays.
    errors : tuple of str
        The errors of regions that could not be read.
    """

    path: str
    size: int
    differing: int = 0
    first: Index | None = None
    values: tuple[str, str] | None = None
    errors: tuple[str, ...] = ()

    def __add__(self, other: "ArrayComparison") -> "ArrayComparison":
        unequal = [part for part in (self, other) if part.first is not None]
        least = min(unequal, key=lambda part: part.first or (), default=self)
        return replace(
            self,
            differing=self.differing + other.differing,
            first=least.first,
            values=least.values,
            errors=(*self.errors, *other.errors),
        )

    def _text(self) -> str:
        text = f"{self.path or '/'}: {self.differing} of {self.size} elements differ"
        if self.first is not None and self.values is not None:
            text += f", the first at {self.first}: {self.values[0]} and {self.values[1]}"
        return "\n".join([text, *(f"  can't be read: {error}" for error in self.errors)])


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """The comparison of two arrays or hierarchies by `zarrdask.verify`.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    a, b : str
        The locations of both nodes.
    arrays : tuple of ArrayComparison
        The arrays that are in both, with the same shape.
    differences : tuple of Difference
        The differences of metadata; also nodes that are in one hierarchy only, or are an array in
        one and a group in the other. Formats, chunks and codecs are not compared.
    """

    a: str
    b: str
    arrays: tuple[ArrayComparison, ...]
    differences: tuple[Difference, ...]
    derived: ClassVar[tuple[str, ...]] = ("ok", "same_elements")

    @property
    def ok(self) -> bool:
        """Whether elements and metadata are the same."""
        return self.same_elements and not self.differences

    @property
    def same_elements(self) -> bool:
        """Whether both have the same arrays, of the same shapes, with the same elements."""
        return not any(array.differing or array.errors for array in self.arrays) and not any(
            difference.what in _STRUCTURE for difference in self.differences
        )

    def without_metadata(self) -> "Comparison":
        """Return the comparison of the elements alone: differing nodes and shapes still count."""
        differences = tuple(each for each in self.differences if each.what in _STRUCTURE)
        return replace(self, differences=differences)

    def summary(self) -> str:
        """Return one line: both nodes, the numbers of elements and arrays, and the result."""
        return f"{self._title()}; {self._verdict()}"

    def _title(self) -> str:
        size = sum(array.size for array in self.arrays)
        arrays = counted(len(self.arrays), "array")
        return f"{self.a} and {self.b}: {counted(size, 'element')} in {arrays}"

    def _verdict(self) -> str:
        return "the same" if self.ok else "NOT THE SAME"

    def _text(self) -> str:
        lines = [self._title()]
        lines += first_of([str(array) for array in self.arrays if array.differing or array.errors])
        lines += first_of([f"metadata  {difference}" for difference in self.differences])
        return "\n".join([*lines, self._verdict()])


# --------------------------------------------------------------------------------------------
# Metadata


def differences(path: str, a: Metadata, b: Metadata) -> Iterator[Difference]:
    """Yield the differences between the metadata of two nodes."""
    if isinstance(a, ArrayMetadata) != isinstance(b, ArrayMetadata):
        kinds = ["array" if isinstance(node, ArrayMetadata) else "group" for node in (a, b)]
        yield Difference(path, "node", *kinds)
        return
    properties_a, properties_b = _properties(a), _properties(b)
    for name, value in properties_a.items():
        if value != properties_b[name]:
            yield Difference(path, name, value, properties_b[name])


def _properties(metadata: Metadata) -> dict[str, str]:
    """Return the properties of a node that are compared, as text."""
    attributes = dict(sorted(metadata.attributes.items()))
    try:
        text = render_json(attributes, "attributes", indent=None).decode()
    except ZarrdaskError:
        text = repr(attributes)  # old writers stored NaN, which is no JSON
    if not isinstance(metadata, ArrayMetadata):
        return {"attributes": text}
    # A list without any name is another spelling of no names.
    names = metadata.dimension_names if any(metadata.dimension_names or ()) else None
    return {**element_properties(metadata), "dimension names": str(names), "attributes": text}


def element_properties(metadata: ArrayMetadata) -> dict[str, str]:
    """Return the properties of an array that determine the elements of missing chunks, as text."""
    dtype = metadata.dtype.newbyteorder("=")
    fill = metadata.fill if dtype.hasobject else np.array(metadata.fill, dtype)
    return {
        "shape": str(metadata.shape),
        "data type": str(dtype),
        "fill value": repr(fill) if dtype.hasobject else f"{fill} ({fill.tobytes().hex()})",
    }


# --------------------------------------------------------------------------------------------
# Elements


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
        yield extent_at(grid, index)


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


def _texts(a: Any, b: Any) -> tuple[str, str]:
    """Return two elements that differ as texts that differ, too."""
    texts = [
        str(value)
        if getattr(value, "dtype", None) is not None and value.dtype.kind in _PLAIN_KINDS
        else repr(value)
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


# --------------------------------------------------------------------------------------------
# In parallel

#: The bytes that a task holds of each array.
_TASK_BYTES = 2**25


#: A region of two arrays, with their path: what one task compares.
ComparedRegion = tuple[Handle, Handle, str, Region]


def compare(
    a: tuple[Store, str], b: tuple[Store, str], *, scheduler: Any, progress: Show
) -> Comparison:
    """Compare two nodes, and everything below them; see `zarrdask.verify`."""
    scan_a, scan_b = (find_nodes(store, path) for store, path in (a, b))
    nodes_a, nodes_b = scan_a.below(), scan_b.below()
    unequal = [
        Difference(path, "node", *("present", "missing")[:: 1 if path in nodes_a else -1])
        for path in sorted(nodes_a.keys() ^ nodes_b.keys())
    ]
    tasks, arrays = list[ComparedRegion](), dict[str, ArrayComparison]()
    for path in sorted(nodes_a.keys() & nodes_b.keys()):
        one, other = nodes_a[path], nodes_b[path]
        if one is None or other is None:
            valid = ["not valid" if node is None else "valid" for node in (one, other)]
            unequal.append(Difference(path, "node", *valid))
            continue
        unequal += differences(path, one, other)
        if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata):
            continue
        if one.shape == other.shape:
            first, second = (
                StoredChunks(scan.store, key_prefix(join_path(scan.path, path)), metadata)
                for scan, metadata in ((scan_a, one), (scan_b, other))
            )
            handles, regions = (Handle(first), Handle(second)), blocks(first, second, _TASK_BYTES)
            tasks += [(*handles, path, region) for region in regions]
            arrays[path] = ArrayComparison(path, prod(one.shape))
    # What explains other differences comes first: nodes that are missing, or of another kind.
    unequal.sort(key=lambda difference: (difference.what != "node", difference.path))
    places, options = (scan_a.base, scan_b.base), {"scheduler": scheduler, "show": progress}
    for result in run_shown(compare_regions, tasks, "compare", *places, **options, unit="region"):
        arrays[result.path] += result
    return Comparison(node_location(*a), node_location(*b), tuple(arrays.values()), tuple(unequal))


def compare_regions(task: ComparedRegion) -> ArrayComparison:
    """Compare a region. This is the task: dashboards of clusters show its name.

    Errors of codecs are part of the result.
    """
    *handles, path, region = task
    values, errors, size = [], [], prod(task[0].chunks.metadata.shape)
    for handle in handles:
        try:
            values.append(read_region(handle.chunks, region))
        except ZarrdaskError as error:
            if isinstance(error, StoreError) and is_transient(error):
                raise
            errors.append(f"{handle.chunks.store.url}: {error}")
    if errors:
        return ArrayComparison(path, size, errors=tuple(errors))
    mask = differing(*values)
    count = int(np.count_nonzero(mask))
    if not count:
        return ArrayComparison(path, size)
    index = np.unravel_index(int(np.argmax(mask)), mask.shape) if mask.ndim else ()
    first = tuple(int(i) + part.start for i, part in zip(index, region, strict=True))
    return ArrayComparison(path, size, count, first, _texts(values[0][index], values[1][index]))
