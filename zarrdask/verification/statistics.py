"""Statistics of a stored array, block by block, so that memory is bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from zarrdask.chunks.region import ArrayRegion
from zarrdask.display.report import Report
from zarrdask.display.words import counted
from zarrdask.errors import UnsupportedError
from zarrdask.execution.executor import run_shown
from zarrdask.nodes.array import Array, chunks_of
from zarrdask.runtime.progress import Show
from zarrdask.verification.elements import blocks

#: The largest size of a block in bytes.
_TASK_BYTES = 2**25
_COUNTS = ("count", "nan", "fill")
#: The kinds of NumPy's types that have statistics.
_KINDS = "biuf"


@dataclass(frozen=True, repr=False)
class Statistics(Report):
    """The statistics of the elements of a numeric array.

    Attributes
    ----------
    array : str
        The location of the array.
    count : int
        The number of elements.
    nan : int
        The number of elements that are not a number; they are left out below.
    fill : int
        The number of elements that equal the fill value.
    minimum, maximum, mean : float, optional
        None if there are no numbers.
    """

    derived: ClassVar[tuple[str, ...]] = ("std",)

    array: str
    count: int = 0
    nan: int = 0
    fill: int = 0
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    #: The sum of the squared deviations from the mean.
    _squares: float = 0.0

    @property
    def numbers(self) -> int:
        """The number of elements that are a number."""
        return self.count - self.nan

    @property
    def std(self) -> float | None:
        """The standard deviation of all elements (not the estimate from a sample)."""
        return sqrt(self._squares / self.numbers) if self.numbers else None

    def __add__(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the elements of both."""
        a, b = self, other
        counts = a.count + b.count, a.nan + b.nan, a.fill + b.fill
        if a.mean is None or b.mean is None:
            some = b if a.mean is None else a
            return replace(some, array=a.array, **dict(zip(_COUNTS, counts, strict=True)))
        total, delta = a.numbers + b.numbers, b.mean - a.mean
        mean = a.mean + delta * b.numbers / total
        squares = a._squares + b._squares + delta**2 * a.numbers * b.numbers / total
        low, high = min(a.minimum, b.minimum), max(a.maximum, b.maximum)  # type: ignore[type-var]
        return Statistics(a.array, *counts, low, high, mean, squares)

    def summary(self) -> str:
        """Return one line: the array, the number of elements and their range."""
        return f"{self.array}: {counted(self.count, 'element')}, {self.minimum} to {self.maximum}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the text: a name and a value each."""
        yield "array", self.array
        yield "elements", str(self.count)
        share = self.fill / max(self.count, 1)
        yield "fill value", f"{counted(self.fill, 'element')} ({share:.0%})"
        if self.nan:
            yield "NaN", f"{self.nan} ({self.nan / self.count:.0%})"
        for name, digits in (("minimum", 10), ("maximum", 10), ("mean", 6), ("std", 6)):
            value = getattr(self, name)
            yield name, "-" if value is None else f"{value:.{digits}g}"


def statistics(array: Array, *, scheduler: Any = None, show: Show = False) -> Statistics:
    """Return the statistics of the elements of a numeric array.

    Blocks that are not stored are not read: their elements are the fill value.

    Raises
    ------
    UnsupportedError
        If the elements are not real numbers.
    """
    location = array.node_path.location
    if array.dtype.kind not in _KINDS:
        raise UnsupportedError(
            "only arrays of real numbers have statistics",
            key=location,
            found=str(array.dtype),
            expected="bool, int, uint or float",
        )
    chunks = chunks_of(array)
    tasks = [ArrayRegion(chunks, region) for region in blocks(chunks, chunks, _TASK_BYTES)]
    options = {"scheduler": scheduler, "show": show, "unit": "region", "nbytes": array.nbytes}
    total = Statistics(location)
    for part in run_shown(block_statistics, tasks, "stats", array.store, **options):
        total += part
    fill = np.asarray(array.metadata.fill, array.dtype)
    omitted = np.broadcast_to(fill, (1,))
    return total + _repeated(_of_values(omitted, fill), array.size - total.count)


def block_statistics(block: ArrayRegion) -> Statistics:
    """Return the statistics of a block. This is the task: dashboards of clusters show its name."""
    return _of_values(block[...], np.asarray(block.metadata.fill, block.dtype))


def _of_values(values: np.ndarray, fill: np.ndarray) -> Statistics:
    is_nan = np.isnan(values) if values.dtype.kind == "f" else np.False_
    numbers = values[~is_nan] if is_nan.any() else values
    nan = values.size - numbers.size
    is_fill_nan = fill.dtype.kind == "f" and bool(np.isnan(fill))
    filled = nan if is_fill_nan else int(np.count_nonzero(values == fill))
    if not numbers.size:
        return Statistics("", values.size, nan, filled)
    with np.errstate(all="ignore"):  # infinities have no deviation
        mean = float(numbers.mean(dtype=np.float64))
        squares = float(((numbers - np.float64(mean)) ** 2).sum(dtype=np.float64))
    low, high = numbers.min().item(), numbers.max().item()
    return Statistics("", values.size, nan, filled, low, high, mean, squares)


def _repeated(one: Statistics, times: int) -> Statistics:
    """Return the statistics of an element that occurs several times."""
    if times == 0:
        return Statistics("")
    counts = one.count * times, one.nan * times, one.fill * times
    return Statistics("", *counts, one.minimum, one.maximum, one.mean)
