"""Statistics of a stored array, block by block, so that memory is bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.display.report import Report
from zarrdask.display.words import counted
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE, decode_fill_value
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata
from zarrdask.parallel.execution.executor import run_shown
from zarrdask.runtime.progress import Show
from zarrdask.tools.verification.element_differences import blocks
from zarrdask.tools.verification.histogram import Histogram

#: The largest size of a block in bytes.
TASK_BYTES = 2**25
_COUNTS = ("count", "nan", "fill", "missing")
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
    missing : int
        The number of elements that CF's ``_FillValue`` or ``missing_value`` marks as missing; they
        are left out of the numbers.
    units : str, optional
        The attribute ``units``.
    """

    derived: ClassVar[tuple[str, ...]] = ("std", "histogram")

    array: str
    count: int = 0
    nan: int = 0
    fill: int = 0
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    missing: int = 0
    units: str | None = None
    #: The sum of the squared deviations from the mean.
    _squares: float = 0.0
    _histogram: Histogram | None = None
    #: The factor and the offset that the bins of the histogram are multiplied by and moved by.
    _scale: tuple[float, float] = (1, 0)

    @property
    def numbers(self) -> int:
        """The number of elements that are a number."""
        return self.count - self.nan - self.missing

    @property
    def histogram(self) -> dict[str, Any] | None:
        """The counts of the finite numbers in bins: where these begin, their width, the counts."""
        if self._histogram is None:
            return None
        (factor, offset), bins = self._scale, self._histogram
        start, width, counts = bins.start, bins.width, bins.counts
        if factor < 0:
            start, counts = start + len(counts) * width, counts[::-1]
        return {"start": start * factor + offset, "width": width * abs(factor), "counts": counts}

    @property
    def std(self) -> float | None:
        """The standard deviation of all elements (not the estimate from a sample)."""
        return sqrt(self._squares / self.numbers) if self.numbers else None

    def __add__(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the elements of both."""
        a, b = self, other
        counts: list[Any] = [getattr(a, name) + getattr(b, name) for name in _COUNTS]
        if a.mean is None or b.mean is None:
            some = b if a.mean is None else a
            return replace(some, array=a.array, **dict(zip(_COUNTS, counts, strict=True)))
        total, delta = a.numbers + b.numbers, b.mean - a.mean
        mean = a.mean + delta * b.numbers / total
        squares = a._squares + b._squares + delta * delta * a.numbers * b.numbers / total
        low, high = min(a.minimum, b.minimum), max(a.maximum, b.maximum)  # type: ignore[type-var]
        bins = a._histogram or b._histogram
        if a._histogram and b._histogram:
            bins = a._histogram + b._histogram
        numbers: dict[str, Any] = {"minimum": low, "maximum": high, "mean": mean}
        return Statistics(
            a.array,
            **dict(zip(_COUNTS, counts, strict=True)),
            **numbers,
            _squares=squares,
            _histogram=bins,
        )

    def scaled(self, factor: float, offset: float, units: str | None) -> "Statistics":
        """Return the statistics of the numbers that packed ones stand for, with their units."""
        if self.mean is None or self.minimum is None or self.maximum is None:
            return replace(self, units=units)
        low, high = sorted(end * factor + offset for end in (self.minimum, self.maximum))
        return replace(
            self,
            minimum=low,
            maximum=high,
            mean=self.mean * factor + offset,
            units=units,
            _squares=self._squares * factor * factor,
            _scale=(factor, offset),
        )

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
        if self.missing:
            yield "missing", f"{counted(self.missing, 'element')} ({self.missing / self.count:.0%})"
        units = f" {self.units}" if self.units else ""
        for name, digits in (("minimum", 10), ("maximum", 10), ("mean", 6), ("std", 6)):
            value = getattr(self, name)
            yield name, "-" if value is None else f"{value:.{digits}g}{units}"
        bins = self.histogram
        if bins is not None and self._histogram is not None and len(bins["counts"]) > 1:
            end = bins["start"] + bins["width"] * len(bins["counts"])
            bars = self._histogram.bars()[:: -1 if self._scale[0] < 0 else 1]
            yield "histogram", f"{bars}  from {bins['start']:.6g} to {end:.6g}"


def statistics(array: Array, *, scheduler: Any = None, show: Show = False) -> Statistics:
    """Return the statistics of the elements of a numeric array, as CF's attributes describe them.

    Elements that ``_FillValue`` or ``missing_value`` marks are missing, and the others are
    multiplied by ``scale_factor``, to which ``add_offset`` is added.

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
    chunks, attributes = chunks_of(array), array.metadata.attributes
    tasks = [ArrayRegion(chunks, region) for region in blocks(chunks, chunks, TASK_BYTES)]
    options = {"scheduler": scheduler, "show": show, "unit": "region", "nbytes": array.nbytes}
    total = Statistics(location)
    for part in run_shown(block_statistics, tasks, "stats", array.store, **options):
        total += part
    fill = np.asarray(array.metadata.fill, array.dtype)
    omitted = _of_values(np.broadcast_to(fill, (1,)), array.metadata)
    total += _repeated(omitted, array.size - total.count)
    factor, offset = (attributes.get(name) for name in ("scale_factor", "add_offset"))
    units = attributes.get("units")
    return total.scaled(
        1 if factor is None else _number(factor, f"{location}: scale_factor"),
        0 if offset is None else _number(offset, f"{location}: add_offset"),
        units if isinstance(units, str) else None,
    )


def _number(value: Any, name: str) -> float:
    """Return a number that an attribute has, also in a list, as NetCDF has it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise MetadataError(
        "this attribute must be a number, as values are unpacked by it; correct it",
        key=name,
        found=value,
        expected="a number",
    )


def block_statistics(block: ArrayRegion) -> Statistics:
    """Return the statistics of a block. This is the task: dashboards of clusters show its name."""
    return _of_values(block[...], block.metadata)


def _markers(metadata: ArrayMetadata) -> list[Any]:
    """Return the values that CF's attributes mark as missing; in v2, xarray's fill value, too."""
    attributes, dtype = metadata.attributes, metadata.dtype
    values = [attributes.get(FILL_VALUE), attributes.get("missing_value")]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    markers = [decode_fill_value(item, dtype) for item in items if item is not None]
    if metadata.format.fill_masks and DIMENSIONS in attributes:
        markers += [] if metadata.fill_value is None else [metadata.fill_value]
    return markers


def _of_values(values: np.ndarray, metadata: ArrayMetadata) -> Statistics:
    fill = np.asarray(metadata.fill, values.dtype)
    is_nan = np.isnan(values) if values.dtype.kind == "f" else np.False_
    is_missing = np.False_
    for marker in _markers(metadata):
        is_missing = is_missing | (values == marker)
    nan, missing = int(np.count_nonzero(is_nan)), int(np.count_nonzero(is_missing))
    numbers = values[~(is_nan | is_missing)] if nan or missing else values
    is_fill_nan = fill.dtype.kind == "f" and bool(np.isnan(fill))
    filled = nan if is_fill_nan else int(np.count_nonzero(values == fill))
    counts: dict[str, Any] = {"count": values.size, "nan": nan, "fill": filled}
    counts["missing"] = missing
    if not numbers.size:
        return Statistics("", **counts)
    with np.errstate(all="ignore"):  # infinities have no deviation
        mean = float(numbers.mean(dtype=np.float64))
        squares = float(((numbers - np.float64(mean)) ** 2).sum(dtype=np.float64))
    return Statistics(
        "",
        **counts,
        minimum=numbers.min().item(),
        maximum=numbers.max().item(),
        mean=mean,
        _squares=squares,
        _histogram=Histogram.of(numbers),
    )


def _repeated(one: Statistics, times: int) -> Statistics:
    """Return the statistics of an element that occurs several times."""
    if times == 0:
        return Statistics("")
    counts: dict[str, Any] = {name: getattr(one, name) * times for name in _COUNTS}
    return replace(one, **counts, _histogram=one._histogram and one._histogram * times)
