"""Histograms whose bins are found while the values are read, and that can be added."""

from dataclasses import dataclass, replace
from math import floor, frexp, isfinite, ldexp
from sys import float_info

import numpy as np

#: The largest number of bins.
_MAX_BINS = 32
#: The heights of a bar of text, from the lowest.
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Histogram:
    """The number of values in bins of equal width, which is a power of 2.

    Two histograms are added by joining neighbouring bins until both have the same, so that one scan
    of unknown values is enough.

    Attributes
    ----------
    exponent : int
        The width of a bin is 2 to this power.
    first : int
        The number of the first bin, which begins at ``first * width``.
    counts : tuple of int
        The number of values in each bin.

    Examples
    --------
    >>> one, other = Histogram.of(np.array([1.0, 2, 2])), Histogram.of(np.array([60.0]))
    >>> joined = one + other
    >>> joined.width, joined.start, joined.counts[0], sum(joined.counts)
    (2.0, 0.0, 1, 4)
    """

    exponent: int
    first: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray) -> "Histogram | None":
        """Return the histogram of values, none of them NaN; None if no value is finite."""
        numbers: np.ndarray = values.astype(np.float64, copy=False).reshape(-1)
        if values.dtype.kind == "f":
            numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return None
        low, high = float(numbers.min()), float(numbers.max())
        exponent = _exponent(low, high, is_integer=values.dtype.kind != "f")
        first = floor(ldexp(low, -exponent))
        bins = np.floor(np.ldexp(numbers, -exponent)) - first
        return cls(exponent, first, tuple(np.bincount(bins.astype(np.intp)).tolist()))

    @property
    def width(self) -> float:
        """The width of a bin."""
        return ldexp(1.0, self.exponent)

    @property
    def start(self) -> float:
        """The begin of the first bin, or the smallest number if the bin begins below it."""
        return max(self.first * self.width, -float_info.max)

    def __add__(self, other: "Histogram") -> "Histogram":
        """Return the histogram of the values of both."""
        exponent = max(self.exponent, other.exponent)
        while True:
            a, b = self._coarser(exponent), other._coarser(exponent)
            first = min(a.first, b.first)
            count = max(a.first + len(a.counts), b.first + len(b.counts)) - first
            if count <= _MAX_BINS:
                break
            exponent += 1
        counts = np.zeros(count, np.int64)
        for each in (a, b):
            counts[each.first - first :][: len(each.counts)] += each.counts
        return Histogram(exponent, first, tuple(counts.tolist()))

    def __mul__(self, times: int) -> "Histogram":
        """Return the histogram of values that occur several times."""
        return replace(self, counts=tuple(count * times for count in self.counts))

    def _coarser(self, exponent: int) -> "Histogram":
        shift = exponent - self.exponent
        first = self.first >> shift
        counts: dict[int, int] = {}
        for number, count in enumerate(self.counts, self.first):
            counts[number >> shift] = counts.get(number >> shift, 0) + count
        return Histogram(exponent, first, tuple(counts.values()))

    def bars(self) -> str:
        """Return the counts as a line of bars; an empty bin is a space."""
        most = max(self.counts)
        return "".join(
            _BARS[(len(_BARS) * count - 1) // most] if count else " " for count in self.counts
        )


def _exponent(low: float, high: float, *, is_integer: bool) -> int:
    """Return the exponent of the smallest width by which values lie in few enough bins."""
    span = high - low
    largest = max(abs(low), abs(high))
    _, of_span = frexp(span if isfinite(span) else largest)
    # A float64 has 53 bits: thinner bins would have no boundaries between them.
    exponent = max(of_span - 6, frexp(largest)[1] - 52, 0 if is_integer else -1000)
    while floor(ldexp(high, -exponent)) - floor(ldexp(low, -exponent)) >= _MAX_BINS:
        exponent += 1
    return exponent
