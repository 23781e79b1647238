"""The plan of a read, as text and drawings. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from zarrdask.display.html import heading
from zarrdask.display.picture import Picture
from zarrdask.display.report import Report
from zarrdask.display.svg import html, svg
from zarrdask.display.words import byte_size, counted
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.parallel.plan.axis import AxisPlan, Kind, describe_lengths
from zarrdask.parallel.plan.drawing import Description, axis_names, draw_units
from zarrdask.parallel.plan.read_counts import ReadCounts, bounds
from zarrdask.parallel.plan.request_costs import RequestCosts

#: The largest number of chunks that a text lists.
_MAX_LISTED = 4
#: The largest number of arrays that a plan shows one by one: a concatenation has many.
_MAX_SHOWN_ARRAYS = 10


@dataclass(frozen=True, eq=False, repr=False)
class ArrayReads(ReadCounts, Report):
    """The reads of one stored array.

    A stored object is a chunk, or a shard. A task decodes each chunk that its region overlaps, as a
    whole: `decoded` counts the bytes of these chunks, `needed` the bytes of their elements that
    are in the regions, and `fetched` the stored bytes. On a local disk and in memory, chunks that
    are not stored are left out; elsewhere it is not known which are, and all count.

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
    sent : RequestCosts, optional
        The requests for shards, and their bytes including indexes; if known.
    """

    derived: ClassVar[tuple[str, ...]] = (
        *("tasks", "objects", "requests", "chunks", "missing", "decodes", "repeated"),
        *("needed", "fetched", "decoded", "amplification"),
    )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that JSON can represent: sizes are numbers of bytes."""
        return {"array": self.location} | {name: getattr(self, name) for name in self.derived}

    def summary(self) -> str:
        """Return one line: the array, and the decoded and the needed bytes."""
        return f"{self.location}: {self._cost()}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the name and the text of each line."""
        shards = f" in {counted(self.objects, 'shard')}" if self.is_sharded else ""
        at_most = "up to " if self.is_sharded and self.sent is None else ""
        missing = f"; {self.missing} more not stored" if self.missing else ""
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
        chunks = " x ".join(describe_lengths(axis.lengths) for axis in self.chunk_axes)
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
        names = axis_names(self.stored.dimension_names, len(plans))

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
        if self.is_sharded:
            lines.append(("source", "shards"))
        return replace(
            picture,
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
        picks = {bounds(region[number]) for region in self.regions}
        edges = sorted(
            {0} if not picks else {at for start, stop, _ in picks for at in (start, stop)}
        )
        blocks = tuple(np.diff(edges).tolist()) or (0,)
        shards = self.unit_axes[number].blocks(slice(edges[0], edges[-1], 1))
        sources = shards if self.is_sharded else blocks
        return AxisPlan(sources, blocks, self.chunk_axes[number], edges[0])

    def _repr_html_(self) -> str:
        return heading("array", self.location) + html(self.picture())


@dataclass(frozen=True, eq=False, repr=False)
class ReadPlan(Report):
    """The plan of a read: the chunks, requests and bytes of each stored array.

    Attributes
    ----------
    arrays : tuple of ArrayReads
        The reads of each stored array.

    See Also
    --------
    zarrdask.plan_read : Create a plan.
    """

    derived: ClassVar[tuple[str, ...]] = (*("objects", "requests", "needed", "fetched", "decoded"),)
    _instead = "x.compute() reads the array of this plan"

    arrays: tuple[ArrayReads, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that JSON can represent: sizes are numbers of bytes."""
        return super().to_dict() | self.costs.to_dict()

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

    @property
    def costs(self) -> RequestCosts:
        """The requests by class, the bytes, and the price by the setting ``zarrdask.prices``."""
        costs = RequestCosts({"GET": 0}, 0)
        for reads in self.arrays:
            costs += reads.sent or RequestCosts({"GET": reads.requests}, reads.fetched)
        return costs

    @property
    def requests_by_class(self) -> dict[str, int]:
        """The number of requests by class, such as "GET"."""
        return self.costs.requests

    @property
    def price(self) -> float | None:
        """The price by the setting ``zarrdask.prices``; None without the setting."""
        return self.costs.price

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

    def _text(self) -> str:
        if not self.arrays:
            return "no stored array is read"
        shown = [str(reads) for reads in self.arrays[:_MAX_SHOWN_ARRAYS]]
        if len(self.arrays) > len(shown):
            more = counted(len(self.arrays) - len(shown), "more array")
            shown.append(f"{more}; of all: {self.summary()}")
        return "\n\n".join([*shown, f"requests  {self.costs}"])

    def summary(self) -> str:
        """Return one line: the number of requests, and the decoded bytes per needed byte."""
        return f"{counted(self.requests, 'request')}, {_times(self.amplification)} decoded"

    def _repr_html_(self) -> str:
        if len(self.arrays) > _MAX_SHOWN_ARRAYS:
            return f"<pre>{escape(str(self))}</pre>"
        return "".join(reads._repr_html_() for reads in self.arrays) or str(self)


def _times(factor: float) -> str:
    return f"{factor:.0f}x" if factor >= 100 else f"{factor:.3g}x"
