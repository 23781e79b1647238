"""Reduce each window of cells to one cell: mean, nearest, min, max, sum, mode, median. Pure.

Work is done on parts that fit into the cache of a processor, in NumPy, which releases the GIL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from zarrdask.errors import UnsupportedError, one_of
from zarrdask.formats.dtypes.ml import kind_of, limits
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.regions import slabs, view
from zarrdask.formats.indexing.selection import Region
from zarrdask.tools.pyramids.exact import (
    MAX_COUNT,
    halfway_to_even,
    mean_of_integers,
    sum_of_integers,
)
from zarrdask.tools.pyramids.levels import Borders
from zarrdask.tools.pyramids.sorting import median, median_of_first, mode

Method = Literal["mean", "nearest", "min", "max", "sum", "mode", "median"]
#: The bytes of cells that are reduced at a time, so that intermediate values stay in a cache.
_SLAB_BYTES = 2**18


@dataclass(frozen=True)
class Missing:
    """The values that count as missing, and the value of windows without any other."""

    values: tuple[Any, ...]
    has_nan: bool
    result: Any

    def mask(self, values: np.ndarray) -> np.ndarray | None:
        """Return which values are missing; None if none is."""
        is_missing = np.isnan(values) if self.has_nan else np.zeros(values.shape, bool)
        for value in self.values:
            is_missing |= values == value
        return is_missing if is_missing.any() else None


@dataclass(frozen=True)
class Reduction:
    """How windows of cells of one level become the cells of the next level."""

    #: The methods, each with the kinds of data types whose values it combines; None for all.
    METHODS: ClassVar[dict[str, str | None]] = {
        "mean": "iufc",
        "nearest": None,
        "min": "biuf",
        "max": "biuf",
        "sum": "iufc",
        "mode": "biufc",
        "median": "iuf",
    }

    method: str
    factors: Shape
    borders: Borders
    missing: Missing | None = None

    @classmethod
    def check(cls, method: str, dtype: np.dtype[Any]) -> None:
        """Check that a method is known, and combines values of a data type."""
        one_of(method, "method", cls.METHODS)
        kinds, kind = cls.METHODS[method], kind_of(dtype)
        if kinds is not None and (kind not in kinds or dtype.hasobject):
            possible = [name for name, each in cls.METHODS.items() if each is None or kind in each]
            raise UnsupportedError(
                f"the method {method!r} can't combine values of {dtype}",
                key="method",
                found=method,
                expected=" or ".join(map(repr, possible)),
            )

    def reduce(self, values: np.ndarray, out: np.ndarray) -> None:
        """Reduce values, which begin at the border of a window, into an array."""
        with np.errstate(all="ignore"):
            for part, windows, region in self._parts(values.shape):
                cells, target = view(values, part), view(out, region)
                if self.borders == "pad" and windows != self.factors:
                    cells, windows = self._padded(cells), self.factors
                self._reduce_whole(cells, windows, target)

    def _parts(self, shape: Shape) -> Iterator[tuple[Region, Shape, Region]]:
        """Yield the parts with windows of one size: their cells, this size and their results."""
        axes = []
        for length, factor in zip(shape, self.factors, strict=True):
            count, rest = divmod(length, factor)
            whole = slice(0, count * factor, 1), factor, slice(0, count, 1)
            last = slice(count * factor, length, 1), rest, slice(count, count + 1, 1)
            axes.append([whole] * (count > 0) + [last] * (rest > 0 and self.borders != "trim"))
        for parts in product(*axes):
            yield tuple(zip(*parts, strict=True)) if parts else ((), (), ())  # type: ignore[misc]

    def _padded(self, cells: np.ndarray) -> np.ndarray:
        """Return cells with the last one repeated, up to the length of a whole window."""
        lengths = zip(cells.shape, self.factors, strict=True)
        return np.pad(cells, [(0, -length % factor) for length, factor in lengths], "edge")

    def _reduce_whole(self, values: np.ndarray, windows: Shape, out: np.ndarray) -> None:
        """Reduce whole windows of one size."""
        if self.method == "nearest":
            first = tuple(slice((n - 1) // 2, None, n) for n in windows)
            out[...] = view(values, first)
            return
        limit = _SLAB_BYTES // max(values.dtype.itemsize * prod(windows), 1)
        for region in slabs(out.shape, limit):
            pairs = zip(region, windows, strict=True)
            part = tuple(slice(pick.start * n, pick.stop * n, 1) for pick, n in pairs)
            target = view(out, region)
            target[...] = self._reduce_part(_computable(view(values, part)), windows, out.dtype)

    def _reduce_part(self, values: np.ndarray, windows: Shape, dtype: np.dtype[Any]) -> np.ndarray:
        is_missing = None if self.missing is None else self.missing.mask(values)
        if is_missing is None or self.missing is None:
            return _PLAIN[self.method](_Cells(values, windows, dtype))
        counts = _folded(~is_missing, windows, np.add, np.dtype(np.intp))
        result = _MASKED[self.method](_MaskedCells(values, windows, dtype, is_missing, counts))
        return np.where(counts, result, np.asarray(self.missing.result, result.dtype))


@dataclass(frozen=True)
class _Cells:
    """The cells of whole windows of one size, which become one cell of a data type each."""

    values: np.ndarray
    windows: Shape
    dtype: np.dtype[Any]

    def folded(self, combine: np.ufunc, dtype: np.dtype[Any] | None = None) -> np.ndarray:
        """Combine the cells of each window, one axis after another, in a data type."""
        return _folded(self.values, self.windows, combine, dtype)

    def rows(self) -> np.ndarray:
        """Return the cells of each window along a last axis."""
        return np.moveaxis(self.stacked(), 0, -1)

    def stacked(self) -> np.ndarray:
        """Return the cells of each window along a first axis, as a copy."""
        counts = [n // w for n, w in zip(self.values.shape, self.windows, strict=True)]
        stacked = np.empty((prod(self.windows), *counts), self.values.dtype)
        for n, start in enumerate(np.ndindex(self.windows)):
            picks = tuple(slice(i, None, w) for i, w in zip(start, self.windows, strict=True))
            stacked[n] = self.values[picks]
        return stacked


@dataclass(frozen=True)
class _MaskedCells(_Cells):
    """Cells that may be missing; `counts` are the numbers of the other cells in each window."""

    is_missing: np.ndarray
    counts: np.ndarray

    def filled(self, value: Any) -> _Cells:
        """Return the cells with a value instead of the missing ones."""
        values = np.where(self.is_missing, np.asarray(value, self.values.dtype), self.values)
        return _Cells(values, self.windows, self.dtype)

    def missing_last(self) -> np.ndarray:
        """Return the stacked cells; those that are missing come last if they are sorted."""
        return self.filled(_limits(self.values.dtype)[1]).stacked()


def _computable(values: np.ndarray) -> np.ndarray:
    """Return values in the byte order of the machine, and in a type that NumPy computes with."""
    dtype = values.dtype
    if dtype.kind == "V" or (dtype.itemsize == 2 and dtype.kind == "f"):
        return values.astype(np.float64 if kind_of(dtype) == "f" else np.int64)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


# --------------------------------------------------------------------------------------------
# Windows


def _folded(
    values: np.ndarray, windows: Shape, combine: np.ufunc, dtype: np.dtype[Any] | None = None
) -> np.ndarray:
    """Combine the cells of each window, one axis after another, in a data type."""
    if dtype is not None and values.dtype != dtype:
        values = values.astype(dtype)
    for axis, count in enumerate(windows):
        if count > 1:
            before = (slice(None),) * axis
            parts = [values[(*before, slice(n, None, count))] for n in range(count)]
            values = combine(parts[0], parts[1])
            for part in parts[2:]:
                combine(values, part, out=values)
    return values


def _sum_of_bytes(values: np.ndarray, windows: Shape) -> np.ndarray:
    """Return the sums of windows of uint8, in uint16.

    Neighbours in a pair along the last axis are the two halves of a uint16.
    """
    *before, last = windows
    if last != 2 or not values.flags.c_contiguous:
        return _folded(values, windows, np.add, np.dtype(np.uint16))
    pairs = values.view(np.uint16)
    sums = pairs >> 8
    sums += pairs & 0xFF
    return _folded(sums, (*before, 1), np.add)


# --------------------------------------------------------------------------------------------
# Methods, if no value is missing


def _mean(cells: _Cells) -> np.ndarray:
    return _mean_of(cells, prod(cells.windows))


def _mean_of(cells: _Cells, counts: np.ndarray | int) -> np.ndarray:
    """Return the sums of windows divided by the numbers of their cells."""
    dtype, windows = cells.values.dtype, cells.windows
    if dtype.kind not in "iu":
        mean: np.ndarray = cells.folded(np.add, _wide(dtype)) / counts
        return mean
    if dtype.itemsize == 8 or prod(windows) >= MAX_COUNT:
        return mean_of_integers(cells.rows(), np.asarray(counts))
    if dtype == np.uint8 and prod(windows) <= 256:
        return halfway_to_even(_sum_of_bytes(cells.values, windows), counts)
    return halfway_to_even(cells.folded(np.add, _sum_type(dtype, windows)), counts)


def _sum(cells: _Cells) -> np.ndarray:
    if cells.values.dtype.kind not in "iu":
        return cells.folded(np.add, _wide(cells.values.dtype))
    if cells.dtype.itemsize < 8:
        low, high = limits(cells.dtype)
        sums = cells.folded(np.add, np.dtype(np.int64))
        return np.clip(sums, low, high, out=sums)
    return sum_of_integers(cells.rows())


def _least(cells: _Cells) -> np.ndarray:
    return cells.folded(np.minimum)


def _greatest(cells: _Cells) -> np.ndarray:
    return cells.folded(np.maximum)


def _mode(cells: _Cells) -> np.ndarray:
    return mode(cells.stacked(), prod(cells.windows))


def _median(cells: _Cells) -> np.ndarray:
    return median(cells.stacked())


# --------------------------------------------------------------------------------------------
# Methods, if values are missing; the results of windows without values are arbitrary


def _masked_mean(cells: _MaskedCells) -> np.ndarray:
    return _mean_of(cells.filled(0), np.maximum(cells.counts, 1))


def _masked_sum(cells: _MaskedCells) -> np.ndarray:
    return _sum(cells.filled(0))


def _masked_least(cells: _MaskedCells) -> np.ndarray:
    return _least(cells.filled(_limits(cells.values.dtype)[1]))


def _masked_greatest(cells: _MaskedCells) -> np.ndarray:
    return _greatest(cells.filled(_limits(cells.values.dtype)[0]))


def _masked_mode(cells: _MaskedCells) -> np.ndarray:
    return mode(cells.missing_last(), cells.counts)


def _masked_median(cells: _MaskedCells) -> np.ndarray:
    return median_of_first(cells.missing_last(), np.maximum(cells.counts, 1))


# --------------------------------------------------------------------------------------------
# Arithmetic


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which numbers that are no integers are added."""
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def _sum_type(dtype: np.dtype[Any], windows: Shape) -> np.dtype[Any]:
    """Return the smallest type for sums of integers of less than 64 bits."""
    bits = 8 * dtype.itemsize + prod(windows).bit_length()
    return np.dtype(f"{dtype.kind}{2 if bits <= 16 else 4 if bits <= 32 else 8}")


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value of a type."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf), complex(np.inf, np.inf)
    return -np.inf, np.inf


_PLAIN: dict[str, Callable[[_Cells], np.ndarray]] = {
    "mean": _mean,
    "sum": _sum,
    "min": _least,
    "max": _greatest,
    "mode": _mode,
    "median": _median,
}
_MASKED: dict[str, Callable[[_MaskedCells], np.ndarray]] = {
    "mean": _masked_mean,
    "sum": _masked_sum,
    "min": _masked_least,
    "max": _masked_greatest,
    "mode": _masked_mode,
    "median": _masked_median,
}
