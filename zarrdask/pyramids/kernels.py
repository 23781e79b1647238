"""Windows of cells reduced to one cell each: mean, nearest, min, max, sum, mode, median. Pure.

Work is done on parts that fit into the cache of a processor, in NumPy, which releases the GIL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np

from zarrdask.dtypes.ml import kind_of, limits
from zarrdask.errors import UnsupportedError, one_of
from zarrdask.grids.base import Shape
from zarrdask.indexing.regions import slabs, view
from zarrdask.indexing.selection import Region
from zarrdask.pyramids.exact import halfway_to_even, mean_of_integers, sum_of_integers
from zarrdask.pyramids.levels import Borders

Method = Literal["mean", "nearest", "min", "max", "sum", "mode", "median"]
#: The methods, each with the kinds of data types whose values it combines; None for all.
METHODS: dict[str, str | None] = {
    "mean": "iufc",
    "nearest": None,
    "min": "biuf",
    "max": "biuf",
    "sum": "iufc",
    "mode": "biufc",
    "median": "iuf",
}
#: The bytes of cells that are reduced at a time, so that intermediate values stay in a cache.
_SLAB_BYTES = 2**17


def check_method(method: str, dtype: np.dtype[Any]) -> None:
    """Check that a method is known, and combines values of a data type."""
    one_of(method, "method", METHODS)
    kinds, kind = METHODS[method], kind_of(dtype)
    if kinds is not None and (kind not in kinds or dtype.hasobject):
        possible = [name for name, each in METHODS.items() if each is None or kind in each]
        raise UnsupportedError(
            f"the method {method!r} can't combine values of {dtype}",
            key="method",
            found=method,
            expected=" or ".join(map(repr, possible)),
        )


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

    method: str
    factors: Shape
    borders: Borders
    missing: Missing | None = None

    def reduce(self, values: np.ndarray, out: np.ndarray) -> None:
        """Reduce values, which begin at the border of a window, into an array."""
        with np.errstate(all="ignore"):
            for part, windows, place in self._parts(values.shape):
                cells, target = view(values, part), view(out, place)
                if self.borders == "pad" and windows != self.factors:
                    cells, windows = self._padded(cells), self.factors
                self._reduce_whole(cells, windows, target)

    def _parts(self, shape: Shape) -> Iterator[tuple[Region, Shape, Region]]:
        """Yield the parts whose windows are alike: the cells, the window and the place of each."""
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
        for place in slabs(out.shape, limit):
            pairs = zip(place, windows, strict=True)
            part = tuple(slice(pick.start * n, pick.stop * n, 1) for pick, n in pairs)
            target = view(out, place)
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
        return _rows(self.values, self.windows)


@dataclass(frozen=True)
class _MaskedCells(_Cells):
    """Cells of which some are missing; `counts` are those of each window that are not."""

    is_missing: np.ndarray
    counts: np.ndarray

    def filled(self, value: Any) -> _Cells:
        """Return the cells with a value in the place of the missing ones."""
        values = np.where(self.is_missing, np.asarray(value, self.values.dtype), self.values)
        return _Cells(values, self.windows, self.dtype)

    def sorted_rows(self) -> np.ndarray:
        """Return the cells of each window in ascending order, with missing ones at the end."""
        rows, missing = self.rows(), _rows(self.is_missing, self.windows)
        order = np.argsort(rows, axis=-1, kind="stable")
        missing = np.take_along_axis(missing, order, -1)
        order = np.take_along_axis(order, np.argsort(missing, axis=-1, kind="stable"), -1)
        return np.take_along_axis(rows, order, -1)


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


def _rows(values: np.ndarray, windows: Shape) -> np.ndarray:
    """Return the cells of each window along a last axis."""
    split = [n for length, w in zip(values.shape, windows, strict=True) for n in (length // w, w)]
    ndim = len(windows)
    order = (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))
    shape = (*(length // w for length, w in zip(values.shape, windows, strict=True)), prod(windows))
    return values.reshape(split).transpose(order).reshape(shape)


# --------------------------------------------------------------------------------------------
# Methods, if no value is missing


def _mean(cells: _Cells) -> np.ndarray:
    count, dtype = prod(cells.windows), cells.values.dtype
    if dtype == np.uint8 and count <= 256:
        return halfway_to_even(_sum_of_bytes(cells.values, cells.windows), count)
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return halfway_to_even(cells.folded(np.add, np.dtype(np.int64)), count)
    if dtype.kind in "iu":
        return mean_of_integers(cells.rows(), np.array(count))
    mean: np.ndarray = cells.folded(np.add, _wide(dtype)) / count
    return mean


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
    rows = cells.rows()
    result = rows[..., 0].copy()
    differ = (rows != rows[..., :1]).any(axis=-1)
    if differ.any():
        several = np.sort(rows[differ], axis=-1)
        result[differ] = _most_frequent(several, np.full(len(several), several.shape[-1]))
    return result


def _median(cells: _Cells) -> np.ndarray:
    rows = np.sort(cells.rows(), axis=-1)
    result = _middle(rows, np.full(rows.shape[:-1], rows.shape[-1]))
    if rows.dtype.kind == "f":  # NaN comes last
        result = np.where(np.isnan(rows[..., -1]), np.nan, result)
    return result


# --------------------------------------------------------------------------------------------
# Methods, if values are missing; windows without values have any result


def _masked_mean(cells: _MaskedCells) -> np.ndarray:
    counts, present = np.maximum(cells.counts, 1), cells.filled(0)
    if cells.values.dtype.kind in "iu":
        return mean_of_integers(present.rows(), counts)
    mean: np.ndarray = present.folded(np.add, _wide(cells.values.dtype)) / counts
    return mean


def _masked_sum(cells: _MaskedCells) -> np.ndarray:
    return _sum(cells.filled(0))


def _masked_least(cells: _MaskedCells) -> np.ndarray:
    return _least(cells.filled(_limits(cells.values.dtype)[1]))


def _masked_greatest(cells: _MaskedCells) -> np.ndarray:
    return _greatest(cells.filled(_limits(cells.values.dtype)[0]))


def _masked_mode(cells: _MaskedCells) -> np.ndarray:
    return _most_frequent(cells.sorted_rows(), cells.counts)


def _masked_median(cells: _MaskedCells) -> np.ndarray:
    return _middle(cells.sorted_rows(), np.maximum(cells.counts, 1))


# --------------------------------------------------------------------------------------------
# Arithmetic


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which numbers that are no integers are added."""
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value of a type."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf


def _most_frequent(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the most frequent of the first `counts` of sorted values; the least if several are."""
    result, run = rows[..., 0].copy(), np.ones(rows.shape[:-1], np.intp)
    longest = run.copy()
    is_nan = np.isnan if rows.dtype.kind in "fc" else np.zeros_like
    for n in range(1, rows.shape[-1]):
        value, before = rows[..., n], rows[..., n - 1]
        is_same = (value == before) | (is_nan(value) & is_nan(before))
        run = np.where(is_same, run + 1, 1)
        is_longer = (run > longest) & (n < counts)
        longest[is_longer] = run[is_longer]
        result[is_longer] = value[is_longer]
    return result


def _middle(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean of the two middle ones of the first `counts` of sorted values."""
    at = np.stack([(counts - 1) // 2, counts // 2], axis=-1)
    low, high = np.moveaxis(np.take_along_axis(rows, at, -1), -1, 0)
    middle: np.ndarray
    if rows.dtype.kind == "f":
        middle = (low.astype(np.float64) + high) / 2
    else:  # the mean, rounded half to even, without overflow
        floor = (low & high) + ((low ^ high) >> 1)
        middle = floor + ((low ^ high) & floor & 1)
    return middle


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
