"""The blocks of xarray's variables, and the Dask arrays that have them.

Reading and decoding are one task, and a slice of the result is a slice of the read: Dask moves
slices into what a task reads, but not past functions that are tasks of their own.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any

import dask
import dask.array as da
import dask.config
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import normalize_token, tokenize
from dask.utils import IndexCallable, parse_bytes

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.execution.expressions import EXPRESSIONS
from zarrdask.parallel.graph.blocks import block_bytes, region_blocks
from zarrdask.parallel.graph.from_zarr import from_zarr, region_source
from zarrdask.parallel.graph.missing_blocks import read_source, sources_of
from zarrdask.parallel.graph.points.pointwise import points_of
from zarrdask.parallel.graph.stored_array import rechunked
from zarrdask.parallel.plan.align import Chunks, auto_block
from zarrdask.runtime.packages import load_module
from zarrdask.xarray.lazy import LazyArray, as_variable
from zarrdask.xarray.preferred import JoinedLength, JoinedLengths
from zarrdask.xarray.version import check_version
from zarrdask.xarray.xarray_private import LazyParts

Functions = tuple[Callable[[np.ndarray], np.ndarray], ...]


def joined_blocks(
    chunks: Any, shape: tuple[int, ...] | None, limit: int | None, dtype: Any, previous: Any
) -> Chunks | None:
    """Return the blocks of a variable, with stored chunks joined along some axes.

    `chunks` is for each axis what xarray asks for: the preferred length, chunks joined up to the
    size of the blocks of `zarrdask.from_zarr`, ``"auto"``, chunks joined up to Dask's
    ``array.chunk-size``, or what the user asks for. The others are arguments of Dask's
    `normalize_chunks`. The result is None if nothing may be joined, or the variable is not one of
    our engine.
    """
    preferred = _preferred(previous)
    if shape is None or dtype is None or preferred is None or not isinstance(chunks, tuple):
        return None
    auto = [isinstance(axis, str) and axis == "auto" for axis in chunks]
    joined = [
        is_auto or isinstance(axis, JoinedLength | JoinedLengths)
        for axis, is_auto in zip(chunks, auto, strict=True)
    ]
    if not any(joined):
        return None
    if limit is None and any(auto):
        limit = parse_bytes(dask.config.get("array.chunk-size"))
    elif limit is None:
        limit = block_bytes(max((length.block_factor for length in preferred), default=1))
    stored = tuple(length.axis for length in preferred)
    itemsize = max(np.dtype(dtype).itemsize, *(length.itemsize for length in preferred))
    return _join_chunks(chunks, joined, stored, shape, itemsize, limit)


def _preferred(previous: Any) -> tuple[JoinedLength | JoinedLengths, ...] | None:
    """Return the preferred lengths of blocks, or None if our engine does not suggest any."""
    if not isinstance(previous, tuple):
        return None
    ours = all(isinstance(length, JoinedLength | JoinedLengths) for length in previous)
    return previous if ours else None


def _join_chunks(
    chunks: tuple[Any, ...],
    joined: Sequence[bool],
    stored: tuple[Axis, ...],
    shape: tuple[int, ...],
    itemsize: int,
    limit: int,
) -> Chunks:
    """Join stored chunks to blocks along some axes; along the others the user said how."""
    given = [
        None if chosen else normalize_chunks((length,), (size,), dtype=np.dtype(f"V{itemsize}"))[0]
        for length, chosen, size in zip(chunks, joined, shape, strict=True)
    ]
    # A block of a given length counts as the whole axis: it grows no more.
    chunk = tuple(
        axis.longest if blocks is None else max(blocks)
        for axis, blocks in zip(stored, given, strict=True)
    )
    extent = tuple(
        size if blocks is None else max(blocks) for size, blocks in zip(shape, given, strict=True)
    )
    block = auto_block(extent, chunk, chunk, itemsize, limit)
    return tuple(
        axis.join(length).blocks(slice(0, axis.size, 1)) if blocks is None else blocks
        for axis, length, blocks in zip(stored, block, given, strict=True)
    )


def _active_expressions() -> Any:
    """Return the package of xarray's arrays if they are expressions: Dask, or dask-array."""
    if "dask_array._xarray" in sys.modules and load_module("dask_array.xarray").isactive():
        return load_module("dask_array")
    return da if EXPRESSIONS else None


def stored_array(parts: LazyParts, chunks: Any) -> Any:
    """Return the Dask array of a variable, decoded; None if its array is not one of ours."""
    if not isinstance(parts.array, LazyArray):
        return None
    array, decoded = parts.array.stored, decoded_region(parts)
    blocks = region_blocks(decoded.as_stored(), chunks)
    expressions = _active_expressions()
    if parts.array.skip_missing and not expressions:
        x = from_zarr(array, chunks=blocks, region=parts.region, skip_missing=True)
        meta = np.empty((0,) * x.ndim, parts.dtype)
        return da.map_blocks(decode, x, decoded.functions, dtype=parts.dtype, meta=meta)
    if expressions is not None:  # They name arrays themselves.
        options = _options(decoded, blocks)
        x = expressions.from_array(decoded, fancy=False, **options)
        # Imported here: few users have expressions.
        from zarrdask.parallel.graph.expression_array import fused_read

        return fused_read(x)
    _register()
    return _read_array(decoded, blocks)


def decoded_region(parts: LazyParts) -> "DecodedRegion":
    """Return the region that a variable reads, with the functions that decode it."""
    array: LazyArray = parts.array
    functions = parts.functions
    if array.dtype.kind == "T":
        functions = (partial(as_variable, dtype=array.dtype), *functions)
    region = region_source(array.stored, parts.region)
    return DecodedRegion(region, functions, parts.dtype, array.version)


def _read_array(source: "DecodedRegion", blocks: Chunks) -> da.Array:
    """Return the array that reads and decodes blocks of a region.

    It is a plain Dask array, not one backed by its source: xarray does not mix array classes.
    """
    meta = np.empty((0,) * source.ndim, source.dtype)
    return read_source(source, blocks, _name(source, blocks), meta)


def _options(source: "DecodedRegion", blocks: Chunks) -> dict[str, Any]:
    meta = np.empty((0,) * source.ndim, source.dtype)
    return {"chunks": blocks, "meta": meta, "inline_array": source.stored.is_small}


def _name(source: "DecodedRegion", blocks: Chunks) -> str:
    lengths = [np.array(axis).tobytes() for axis in blocks]
    return f"{source.stored.task_name('read')}-{tokenize(source, lengths)}"


@cache
def _register() -> None:
    """Let Dask's ``rechunk`` and ``vindex`` read other parts of such arrays, where possible.

    `ds.chunk` calls the first, and `ds.isel` and `ds.sel` the second for points.
    """
    default = da.Array.rechunk

    @wraps(default)
    def rechunk(x: da.Array, chunks: Any = "auto", *args: Any, **options: Any) -> da.Array:
        source = source_of(x)
        blocks = None if args or source is None else rechunked(x, source, chunks, options)
        if source is not None and blocks is not None:
            return _read_array(source, blocks)
        return default(x, chunks, *args, **options)

    default_points = da.Array.vindex.fget

    @wraps(default_points)
    def vindex(x: da.Array) -> IndexCallable:
        source, default = source_of(x), default_points(x)

        def select(key: Any) -> da.Array:
            points = None if source is None else points_of(source, key)
            return default[key] if points is None else points

        return IndexCallable(select)

    da.Array.rechunk = rechunk
    da.Array.vindex = property(vindex)


def source_of(x: da.Array) -> "DecodedRegion | None":
    """Return the source of an array that reads and decodes one; None of any other array."""
    layer = getattr(x.dask, "layers", {}).get(x.name)
    for source in sources_of(layer):
        if isinstance(source, DecodedRegion) and x.name == _name(source, x.chunks):
            return source
    return None


def decode(values: np.ndarray, functions: Functions) -> np.ndarray:
    """Apply elementwise functions, one after another."""
    for function in functions:
        values = function(values)
    return values


class DecodedRegion(ArrayRegion):
    """A region of a stored array, whose elements functions decode one by one.

    `dtype` is the dtype of the decoded elements, and `version` the version of the array when it was
    opened; see `check_version`. Its parts by `read` and `select` are not decoded.
    """

    __slots__ = ("_dtype", "functions", "version")

    def __init__(
        self, region: ArrayRegion, functions: Functions, dtype: np.dtype[Any], version: str
    ) -> None:
        super().__init__(region.stored, region.region, region.axes, region.token)
        self.functions = functions
        self._dtype = dtype
        self.version = version

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the decoded elements."""
        return self._dtype

    @property
    def fill(self) -> Any:
        """The decoded element for those beyond the ends: a missing value if there is one."""
        if self._dtype.kind in "fcmM":
            return np.array("nan" if self._dtype.kind in "fc" else "NaT", self._dtype)[()]
        stored = np.empty(1, self.metadata.dtype)
        put_fill(stored, ..., super().fill)
        return decode(stored, self.functions)[0]

    def __getitem__(self, index: Any) -> Any:
        # Before the read as well: chunks of another array may not be decoded at all.
        check_version(self.stored, self.version)
        return super().__getitem__(index)

    def narrowed(self, part: Region) -> "DecodedRegion":
        """Return the source with which a task reads and decodes a region of this array."""
        return DecodedRegion(super().narrowed(part), self.functions, self.dtype, self.version)

    def elements(self, stored: np.ndarray) -> np.ndarray:
        """Return stored elements, decoded."""
        check_version(self.stored, self.version)
        return decode(stored, self.functions)

    def with_elements(self, part: ArrayRegion) -> "DecodedRegion":
        """Return a selected part of this array, decoded."""
        return DecodedRegion(part, self.functions, self.dtype, self.version)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        parts = self.as_stored(), self.functions, self.dtype
        return "zarrdask.xarray", normalize_token(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodedRegion, (self.as_stored(), self.functions, self.dtype, self.version)
