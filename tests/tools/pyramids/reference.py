"""Pyramids by brute force: each window by itself, in exact arithmetic."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np


def reference(values, steps, method, borders, missing=None):
    """Return all levels of an array; `missing` has the missing values and that of empty windows."""
    levels = [values]
    for factors in steps:
        levels.append(_level(levels[-1], factors, method, borders, missing))
    return levels


def _level(values, factors, method, borders, missing):
    pairs = list(zip(values.shape, factors, strict=True))
    shape = [n // f if borders == "trim" else -(-n // f) for n, f in pairs]
    if borders == "pad":
        width = [(0, c * f - n) for c, (n, f) in zip(shape, pairs, strict=True)]
        values = np.pad(values, width, "edge") if width else values
    out = np.empty(shape, values.dtype)
    for index in np.ndindex(*shape):
        axes = zip(index, factors, strict=True)
        window = values[(*(slice(i * f, (i + 1) * f) for i, f in axes), ...)]
        out[index] = _cell(window, method, missing)
    return out


def _cell(window, method, missing):
    dtype = window.dtype
    if method == "nearest":
        return window[tuple((n - 1) // 2 for n in window.shape)]
    cells = [window[index] for index in product(*map(range, window.shape))]
    if missing is not None:
        cells = [c for c in cells if not (c != c or any(c == m for m in missing[0]))]
        if not cells:
            return missing[1]
    if method in ("min", "max"):
        return {"min": np.min, "max": np.max}[method](cells)
    if method == "mode":
        counts = Counter(cells)
        return min(value for value, n in counts.items() if n == max(counts.values()))
    if method == "median":
        cells = sorted(cells)
        cells = [cells[(len(cells) - 1) // 2], cells[len(cells) // 2]]
    if dtype.kind in "iu":
        total = sum(map(int, cells))
        if method == "sum":
            return min(max(total, np.iinfo(dtype).min), np.iinfo(dtype).max)
        return round(Fraction(total, len(cells)))  # half to even
    total = sum(cells[1:], np.float64(cells[0]) if dtype.kind == "f" else np.complex128(cells[0]))
    return total if method == "sum" else total / len(cells)
