"""The plan of a read: which chunks are decoded how often, and by how many requests. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zarrdask.display.html import heading
from zarrdask.display.picture import Picture
from zarrdask.display.report import Report
from zarrdask.display.svg import html, svg
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import SelectionError
from zarrdask.grids.base import Axis, Index
from zarrdask.indexing.projection import chunk_number
from zarrdask.indexing.regions import cut_axis
from zarrdask.indexing.selection import Region
from zarrdask.plan.axis import AxisPlan
from zarrdask.plan.drawing import Description, draw_units
from zarrdask.plan.units import Kind, describe_lengths
from zarrdask.plan.write import Target

#: The largest number of chunks in the box around all regions, each of which needs two bytes.
_MAX_CHUNKS = 2**27
#: The largest number of chunks that a text lists.
_MAX_LISTED = 4


class _Met(NamedTuple):
    """The chunks that a region meets along one axis, and the objects.

    Each chunk has a length, and a number of elements that are in the region.
    """

    chunks: np.ndarray
    lengths: np.ndarray
    picked: np.ndarray
    units: np.ndarray
    chunks_of_whole_units: int

    @property
    def ones(self) -> np.ndarray:
        """A 1 for each chunk."""
        return np.ones_like(self.chunks)


@dataclass(frozen=True, eq=False, repr=False)
class ArrayReads(Report):
    """The reads of one stored array.

    A stored object is a chunk, or a shard. A task decodes each chunk that its region meets, as a
    whole: `decoded` are the bytes of these chunks, `needed` those of their elements that are in
    the regions, and `fetched` the stored bytes. On a local disk and in memory, chunks that are not
    stored are left out; elsewhere it is not known which are, and all count.

    Attributes
    ----------
    location : str
        The location of the array.
    stored : Target
        The stored array.
    chunk_axes, unit_axes : tuple
        The chunks, and the stored objects, along each axis; the same if there are no shards.
    regions : tuple of tuple of slice
        The region that each task reads.
    sizes : numpy.ndarray, optional
        The stored bytes of each chunk in `box`, -1 for chunks that are not stored; if known.
    """

    derived: ClassVar[tuple[str, ...]] = (
        *("tasks", "objects", "requests", "chunks", "missing", "decodes", "repeated"),
        *("needed", "fetched", "decoded", "amplification"),
    )

    location: str
    stored: Target
    chunk_axes: tuple[Axis, ...]
    unit_axes: tuple[Axis, ...]
    regions: tuple[Region, ...]
    sizes: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that JSON can represent: sizes are numbers of bytes."""
        return {"array": self.location} | {name: getattr(self, name) for name in self.derived}

    @cached_property
    def _met(self) -> list[tuple[_Met, ...]]:
        """What each region meets along each axis."""
        find = lru_cache(maxsize=None)(self._meet)
        return [
            tuple(find(axis, *_bounds(pick)) for axis, pick in enumerate(region))
            for region in self.regions
        ]

    def _meet(self, number: int, start: int, stop: int, step: int) -> _Met:
        pick, axis, unit_axis = slice(start, stop, step), *self._axes_at(number)
        chunks, units = self._numbers_met(pick, axis), self._numbers_met(pick, unit_axis)
        first, last = _starts(axis, chunks), _starts(axis, chunks + 1)
        # The elements of the slice before each end, by dividing upwards.
        picked = -(-np.clip(last - start, 0, max(stop - start, 0)) // step)
        picked += np.clip(first - start, 0, max(stop - start, 0)) // -step
        whole = 0
        if step == 1 and len(units):
            # A shard that is needed as a whole is one request.
            begins, ends = _starts(unit_axis, units), _starts(unit_axis, units + 1)
            needed = units[(begins >= start) & (ends <= stop)]
            whole = int(np.isin(chunk_number(first, unit_axis), needed).sum())
        return _Met(chunks, last - first, picked, units, whole)

    def _axes_at(self, number: int) -> tuple[Axis, Axis]:
        return self.chunk_axes[number], self.unit_axes[number]

    def _numbers_met(self, pick: slice, axis: Axis) -> np.ndarray:
        """Return the numbers of the chunks that a slice meets along an axis."""
        if pick.start >= pick.stop:
            return np.zeros(0, np.intp)
        first, last = chunk_number(np.array([pick.start, pick.stop - 1]), axis).tolist()
        shortest = axis if isinstance(axis, int) else int(np.diff(axis).min())
        if pick.step > shortest:
            return np.unique(chunk_number(np.arange(pick.start, pick.stop, pick.step), axis))
        self._check_size(last - first + 1)
        return np.arange(first, last + 1)

    def _check_size(self, count: int) -> None:
        if count > _MAX_CHUNKS:
            raise SelectionError(
                "there are too many chunks to plan this read; plan a smaller selection",
                key=self.location,
                found=count,
                expected=f"at most {_MAX_CHUNKS}",
            )

    @cached_property
    def box(self) -> tuple[tuple[int, int], ...]:
        """The first and the last chunk along each axis that any region meets."""
        met = [axes for axes in self._met if all(len(axis.chunks) for axis in axes)]
        if not met:
            return ((0, -1),) * len(self.stored.shape)
        return tuple(
            (min(int(m[i].chunks[0]) for m in met), max(int(m[i].chunks[-1]) for m in met))
            for i in range(len(self.stored.shape))
        )

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each chunk in `box` is decoded (uint16).

        Raises
        ------
        SelectionError
            If there are too many chunks to count.
        """
        return self._met_counts if self.sizes is None else self._met_counts * (self.sizes >= 0)

    @cached_property
    def _met_counts(self) -> np.ndarray:
        """How many regions meet each chunk in `box`, stored or not."""
        shape = tuple(max(last - first + 1, 0) for first, last in self.box)
        self._check_size(prod(shape))
        counts = np.zeros(shape, np.uint16)
        for met in self._met:
            counts[self._place(met)] += 1
        return counts

    def _place(self, met: tuple[_Met, ...]) -> tuple[np.ndarray, ...]:
        """Return the index in an array over `box` of the chunks that a region meets."""
        return np.ix_(*(axis.chunks - low for axis, (low, _) in zip(met, self.box, strict=True)))

    def _total(self, weights: Callable[[_Met], np.ndarray]) -> int:
        """Return the sum over all decodes of the product of a chunk's weights along each axis."""
        if self.sizes is None:
            return sum(prod(int(weights(axis).sum()) for axis in met) for met in self._met)
        total = 0
        for met in self._met:
            part = self.sizes[self._place(met)] >= 0
            for axis in met:
                part = np.tensordot(weights(axis), part, 1)
            total += int(part)
        return total

    def count_at(self, index: Index) -> int:
        """Return how often a chunk is decoded."""
        inside = all(low <= i <= high for i, (low, high) in zip(index, self.box, strict=True))
        place = tuple(i - low for i, (low, _) in zip(index, self.box, strict=True))
        return int(self.counts[place]) if inside else 0

    @property
    def tasks(self) -> int:
        """The number of tasks that read; 1 for a read without Dask."""
        return len(self.regions)

    @property
    def chunks(self) -> int:
        """The number of different chunks that are decoded."""
        return int(np.count_nonzero(self.counts))

    @property
    def missing(self) -> int | None:
        """The number of different chunks that would be decoded, but are not stored; None: unknown.

        Their elements are the fill value.
        """
        if self.sizes is None:
            return None
        return int(np.count_nonzero(self._met_counts)) - self.chunks

    @property
    def decodes(self) -> int:
        """How often any chunk is decoded."""
        return self._total(lambda axis: axis.ones)

    @property
    def repeated(self) -> int:
        """The number of chunks that are decoded by more than one task."""
        return int(np.count_nonzero(self.counts > 1))

    def repeated_chunks(self) -> Iterator[Index]:
        """Yield the indices of the chunks that are decoded by more than one task."""
        first = [low for low, _ in self.box]
        for place in zip(*np.nonzero(self.counts > 1), strict=True):
            yield tuple(int(i) + low for i, low in zip(place, first, strict=True))

    @property
    def objects(self) -> int:
        """The number of different stored objects that are read."""
        is_read = self.counts > 0
        if is_read.size == 0:
            return 0
        for number, (low, high) in enumerate(self.box):
            axis, unit_axis = self._axes_at(number)
            units = chunk_number(_starts(axis, np.arange(low, high + 1)), unit_axis)
            firsts = np.flatnonzero(np.diff(units, prepend=-1))
            is_read = np.logical_or.reduceat(is_read, firsts, number)
        return int(np.count_nonzero(is_read))

    @property
    def requests(self) -> int:
        """The largest number of requests, of chunks that are not stored, too.

        One for each chunk that a task reads. Of a shard, one if it is needed as a whole; or else
        one for the index, and one for each chunk. There are fewer where neighbouring chunks of a
        shard are requested together.
        """
        chunks = sum(prod(len(axis.chunks) for axis in met) for met in self._met)
        if not self._is_sharded:
            return chunks
        whole = sum(prod(axis.chunks_of_whole_units for axis in met) for met in self._met)
        return self._units_met + chunks - whole

    @property
    def _units_met(self) -> int:
        """The number of objects that regions meet; each counts for each region that meets it."""
        return sum(prod(len(axis.units) for axis in met) for met in self._met)

    def units(self, limit: int) -> set[Index] | None:
        """Return the objects that regions meet, or None if they are more than a number."""
        if self._units_met > limit:
            return None
        axes = ([axis.units.tolist() for axis in met] for met in self._met)
        return {unit for lists in axes for unit in product(*lists)}

    @property
    def needed(self) -> int:
        """The bytes of the elements in the regions that decoded chunks hold."""
        return self._total(lambda axis: axis.picked) * self._itemsize

    @property
    def fetched(self) -> int | None:
        """The stored bytes of the decoded chunks, each as often as it is decoded; None: unknown."""
        return None if self.sizes is None else int((self.sizes * self.counts).sum())

    @property
    def decoded(self) -> int:
        """The bytes of the chunks that are decoded, each as often as it is."""
        return self._total(lambda axis: axis.lengths) * self._itemsize

    @property
    def amplification(self) -> float:
        """The decoded bytes for each needed byte."""
        return self.decoded / max(self.needed, 1)

    @property
    def _itemsize(self) -> int:
        return self.stored.dtype.itemsize

    @property
    def _is_sharded(self) -> bool:
        axes = zip(self.chunk_axes, self.unit_axes, strict=True)
        return any(a is not b and not np.array_equal(a, b) for a, b in axes)

    # ---- text and drawings

    def summary(self) -> str:
        """Return one line: the array, and the decoded and the needed bytes."""
        return f"{self.location}: {self._cost()}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the name and the text of each line."""
        shards = f" in {counted(self.objects, 'shard')}" if self._is_sharded else ""
        at_most = "up to " if self._is_sharded else ""
        missing = f"; {self.missing} more are not stored" if self.missing else ""
        requests = f"by {at_most}{counted(self.requests, 'request')}"
        facts = [
            ("array", f"{self.location} {self._title()}"),
            ("tasks", counted(self.tasks, "read task")),
            ("chunks", f"{self.chunks}{shards}, {requests}{missing}"),
            ("decoded", self._cost()),
        ]
        if self.fetched is not None:
            facts.insert(3, ("fetched", byte_size(self.fetched)))
        if self.repeated:
            first = islice(self.repeated_chunks(), _MAX_LISTED)
            chunks = ", ".join(f"{index} {self.count_at(index)}x" for index in first)
            more = ", ..." if self.repeated > _MAX_LISTED else ""
            facts.append(("repeated", f"{self._repeated()}: {chunks}{more}"))
        return facts

    def _title(self) -> str:
        lengths = (
            np.diff(axis).tolist() if isinstance(axis, np.ndarray) else (axis,)
            for axis in self.chunk_axes
        )
        chunks = " x ".join(map(describe_lengths, lengths))
        return f"{self.stored.shape} {self.stored.dtype}, chunks of {chunks or 1}"

    def _cost(self) -> str:
        times = _times(self.amplification)
        return f"{byte_size(self.decoded)} for {byte_size(self.needed)} that are needed ({times})"

    def _repeated(self) -> str:
        extra = self.decodes - self.chunks
        return (
            f"{counted(self.repeated, 'chunk')} decoded by more than one task, "
            f"{counted(extra, 'decode')} too many"
        )

    def picture(self, axes: Sequence[int] | None = None) -> Picture:
        """Return the content of the drawing; see `ReadPlan.svg`."""
        plans = [self._axis_plan(number) for number in range(len(self.stored.shape))]
        given = self.stored.dimension_names or (None,) * len(plans)
        names = [name or f"axis {i}" for i, name in enumerate(given)]

        def describe(index: Index) -> Description | None:
            times = self.count_at(index)
            owner = tuple(map(AxisPlan.owner, plans, index))
            kind: Kind = "read-modify-write" if times > 1 else "whole"
            label = f"{times}x" if times > 1 else ""
            text = f"chunk {index}: decoded {counted(times, 'time')}"
            return (owner, kind, label, text) if times else None

        picture = draw_units(plans, names, describe, axes)
        once = self.chunks - self.repeated
        kinds = [("whole", f"{counted(once, 'chunk')} decoded once")] if once else []
        if self.repeated:
            kinds.append(("read-modify-write", self._repeated()))
        lines = [("block", "regions that tasks read")]
        if self._is_sharded:
            lines.append(("source", "shards"))
        return picture.with_text(
            title=self._title(),
            legend=(*kinds, *lines),
            notes=(
                f"decoded: {self._cost()}",
                "pale: not needed"
                + (f"; dotted: {self.missing} not stored" if self.missing else ""),
                *picture.notes,
            ),
        )

    def _axis_plan(self, number: int) -> AxisPlan:
        """Return the regions and the chunks along an axis, as a drawing needs them."""
        picks = {_bounds(region[number]) for region in self.regions}
        size, units = self.stored.shape[number], self.unit_axes[number]
        edges = sorted(
            {0} if not picks else {at for start, stop, _ in picks for at in (start, stop)}
        )
        inside = cut_axis(units, slice(edges[0], edges[-1]))[1:-1]
        shards = np.diff([edges[0], *inside, edges[-1]]) if self._is_sharded else np.diff(edges)
        blocks = tuple(np.diff(edges).tolist()) or (0,)
        return AxisPlan(
            tuple(shards.tolist()) or (0,), blocks, self.chunk_axes[number], size, edges[0]
        )

    def _repr_html_(self) -> str:
        return heading("array", self.location) + html(self.picture())


@dataclass(frozen=True, eq=False, repr=False)
class ReadPlan(Report):
    """What a read would fetch and decode: of each stored array, the chunks, requests and bytes.

    Attributes
    ----------
    arrays : tuple of ArrayReads
        The reads of each stored array.

    See Also
    --------
    zarrdask.plan_read : Create a plan.
    """

    derived: ClassVar[tuple[str, ...]] = ("objects", "requests", "needed", "fetched", "decoded")

    arrays: tuple[ArrayReads, ...]

    def _sum(self, name: str) -> int:
        return sum(getattr(reads, name) for reads in self.arrays)

    @property
    def objects(self) -> int:
        """The number of different stored objects that are read."""
        return self._sum("objects")

    @property
    def requests(self) -> int:
        """The largest number of requests; see `ArrayReads.requests`."""
        return self._sum("requests")

    @property
    def repeated(self) -> int:
        """The number of chunks that are decoded by more than one task."""
        return self._sum("repeated")

    @property
    def needed(self) -> int:
        """The bytes of the elements that tasks take from the chunks."""
        return self._sum("needed")

    @property
    def fetched(self) -> int | None:
        """The stored bytes of these chunks, each as often as it is decoded; None: unknown."""
        return None if any(r.fetched is None for r in self.arrays) else self._sum("fetched")

    @property
    def decoded(self) -> int:
        """The bytes of the chunks that are decoded, each as often as it is."""
        return self._sum("decoded")

    @property
    def amplification(self) -> float:
        """The decoded bytes for each needed byte."""
        return self.decoded / max(self.needed, 1)

    def svg(self, axes: Sequence[int] | None = None) -> str:
        """Return a drawing of the chunks of the first array that is read.

        Parameters
        ----------
        axes : sequence of int, optional
            One axis, or two: the vertical one and the horizontal one.

        Returns
        -------
        str
            An SVG document; empty text if nothing is read.

        Raises
        ------
        SelectionError
            If these are not one or two of the axes.
        """
        return svg(self.arrays[0].picture(axes)) if self.arrays else ""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.arrays)) or "no stored array is read"

    def summary(self) -> str:
        """Return one line: the number of requests, and the decoded bytes per needed byte."""
        return f"{counted(self.requests, 'request')}, {_times(self.amplification)} decoded"

    def _repr_html_(self) -> str:
        return "".join(reads._repr_html_() for reads in self.arrays) or str(self)


def _times(factor: float) -> str:
    return f"{factor:.0f}x" if factor >= 100 else f"{factor:.3g}x"


def _bounds(pick: slice) -> tuple[int, int, int]:
    return pick.start, pick.stop, pick.step


def _starts(axis: Axis, numbers: np.ndarray) -> np.ndarray:
    return numbers * axis if isinstance(axis, int) else axis[numbers]
