"""The text and the drawings of a plan to rewrite an array."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from zarrdask.display.html import table
from zarrdask.display.picture import Picture
from zarrdask.display.report import Report
from zarrdask.display.svg import html, svg
from zarrdask.display.words import aligned, byte_size, counted
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.axis import Uneven
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.parallel.plan.axis import AxisPlan
from zarrdask.parallel.plan.drawing import axis_names, draw
from zarrdask.parallel.plan.request_costs import RequestCosts
from zarrdask.parallel.plan.strategies import Costs, Grids, Scheme, Stage, lengths_of

#: The largest number of chunks or regions along an axis that is drawn.
_MAX_DRAWN = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class PlanReport(Report):
    """A plan that prints itself as text and displays itself as drawings.

    Attributes
    ----------
    grids : Grids
        The source and the target.
    costs : Costs
        The resources and costs that the plan was made for.
    schemes : tuple of Scheme
        The possible strategies, the chosen one first, the others by their costs.
    """

    _instead = "plan.execute() runs the plan"

    grids: Grids
    costs: Costs
    schemes: tuple[Scheme, ...]

    @property
    def scheme(self) -> Scheme:
        """The chosen strategy."""
        return self.schemes[0]

    def by(self, strategy: str) -> Self:
        """Return the same plan with another of the possible strategies.

        Parameters
        ----------
        strategy : str
            The name of one of `schemes`, such as "two passes".

        Raises
        ------
        MetadataError
            If no strategy has this name.
        """
        names = [scheme.name for scheme in self.schemes]
        if strategy not in names:
            raise MetadataError(
                "this strategy is unknown, or impossible for this plan",
                key="strategy",
                found=strategy,
                expected=", ".join(names),
            )
        chosen = self.schemes[names.index(strategy)]
        others = (scheme for scheme in self.schemes if scheme is not chosen)
        return replace(self, schemes=(chosen, *others))

    @property
    def peak(self) -> int:
        """The largest number of bytes that a process holds at a time."""
        return self.scheme.peak

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self.scheme.tasks

    @property
    def objects(self) -> int:
        """The number of chunks or shards that are written."""
        return self.grids.units.size

    @property
    def requests_planned(self) -> RequestCosts:
        """The requests by class, and the price by the setting ``zarrdask.prices``."""
        stored = sum(map(self._stored_by, self.scheme.stages))
        return RequestCosts({"GET": self.scheme.requests - stored, "PUT": stored})

    def _stored_by(self, stage: Stage) -> int:
        """Return the number of objects that a pass stores."""
        written = {"target": self.objects, "packed": stage.regions.size}.get(stage.writes, 0)
        return min(written, stage.requests)

    # ----------------------------------------------------------------------------------------
    # Text

    def _text(self) -> str:
        return aligned(self.facts(), line_width=100)

    def summary(self) -> str:
        """Return one line: the shape, the strategy and the number of tasks."""
        return f"{self.grids.shape}, {self.scheme.name}, {counted(self.tasks, 'task')}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the text: a name and a description each."""
        grids, scheme = self.grids, self.scheme
        yield "array", f"{grids.shape}, {byte_size(grids.nbytes)}"
        pieces = counted(grids.pieces.size, "piece")
        units = counted(self.objects, "chunk or shard")
        before, after = _shape(lengths_of(grids.source)), _shape(lengths_of(grids.target))
        yield "chunks", f"from {pieces} of {before} to {units} of {after}"
        yield "strategy", f"{scheme.name}; {self._io(scheme)}"
        if reasons := list(self._reasons()):
            yield "reason", "; ".join(reasons)
        yield "costs", str(self.requests_planned)
        yield from self._before()
        if scheme.exchange is not None:
            exchange = scheme.exchange
            boxes = f"{exchange.boxes.size} of {_shape(exchange.boxes.longest)}"
            handed = f"{byte_size(exchange.nbytes)} in {counted(exchange.pieces, 'piece')}"
            yield "boxes", f"{boxes}, one after another; workers exchange {handed}"
        for number, stage in enumerate(scheme.stages, 1):
            yield f"pass {number}", "; ".join(_describe(stage))
        at_once = max(stage.costs.at_once for stage in scheme.stages)
        peak, limit = byte_size(scheme.peak), byte_size(self.costs.memory)
        yield (
            "memory",
            f"up to {peak} of {limit} per process, for {counted(at_once, 'task')} at a time",
        )

    def _before(self) -> Iterator[tuple[str, str]]:
        """Yield further lines, which stand before the lines of the passes."""
        return iter(())

    def _io(self, scheme: Scheme) -> str:
        times = scheme.moved / max(self.grids.nbytes, 1)
        requests = counted(scheme.requests, "request")
        return f"I/O {byte_size(scheme.moved)} ({times:.1f}x the array), {requests}"

    def _reasons(self) -> Iterator[str]:
        chosen = self.scheme
        if chosen.stages[0].moves:
            yield "source and target have the same encoded bytes"
        elif chosen.stages[0].reads == "blocks":
            yield "each chunk or shard lies in one block"
        elif chosen.moved <= 2 * self.grids.nbytes:
            yield "every byte is read once and written once, which is the minimum"
        for other in self.schemes[1:]:
            times = other.cost / max(chosen.cost, 1)
            yield f"{other.name} would cost {times:.3g}x as much ({self._io(other)})"
        if len(self.schemes) == 1 and chosen.moved > 2 * self.grids.nbytes:
            yield (
                "two passes need more memory"
                if self.costs.packs
                else "values of variable size can't be packed for two passes"
            )

    # ----------------------------------------------------------------------------------------
    # Drawings

    def svg(self, stage: int = -1) -> str:
        """Return a drawing of a pass: what it writes, in the colours of its tasks, and reads.

        Parameters
        ----------
        stage : int, default -1
            The number of the pass, from 0; negative numbers count from the last pass.

        Returns
        -------
        str
            An SVG document.
        """
        return svg(self.picture(stage))

    def _repr_html_(self) -> str:
        numbers = filter(self._can_draw, range(len(self.scheme.stages)))
        drawings = "".join(html(self.picture(number)) for number in numbers)
        return table(self.facts()) + drawings

    @property
    def _dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the axes, for drawings."""
        return None

    def _drawn_shape(self, number: int) -> Shape:
        """Return the shape of the array whose regions the tasks of a pass own."""
        return self.grids.shape

    def _can_draw(self, number: int) -> bool:
        read, written = self._boundaries(number)
        owned = self.scheme.stages[number].regions.edges
        return max(map(len, (*read, *written, *owned)), default=0) < _MAX_DRAWN

    def _boundaries(self, number: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the boundaries of the values that a pass reads, and of those that it writes."""
        stages, grids = self.scheme.stages, self.grids
        owned = stages[number].regions.edges
        read = stages[number - 1].regions.edges if number else grids.pieces.edges
        if number + 1 == len(stages):
            return read, grids.units.edges
        return read, tuple(map(np.union1d, owned, stages[number + 1].regions.edges))

    def picture(self, stage: int = -1) -> Picture:
        """Return the content of the drawing of a pass; see `svg`."""
        stages = self.scheme.stages
        number = range(len(stages))[stage]
        drawn, (read, written) = stages[number], self._boundaries(number)
        axes = [
            AxisPlan(_lengths(blocks), _lengths(owned), Uneven(int(units[-1]), units), 0)
            for blocks, owned, units in zip(read, drawn.regions.edges, written, strict=True)
        ]
        names = axis_names(self._dimension_names, len(axes))
        source_name = _SOURCE_NAMES[drawn.reads]
        picture = draw(axes, names, source_name)
        legend = ("block", "regions, one task each"), ("source", f"{source_name}s that are read")
        return replace(
            picture,
            title=f"pass {number + 1} of {len(stages)}: {self._drawn_shape(number)}",
            legend=(*picture.legend, *legend),
            notes=(*_describe(drawn), *picture.notes),
        )


#: The names of the blocks that a pass reads.
_SOURCE_NAMES = {
    "source": "chunk",
    "packed": "packed region",
    "held": "kept region",
    "blocks": "Dask block",
}


def _lengths(edges: np.ndarray) -> tuple[int, ...]:
    # As in Dask, an axis without elements has one block of length 0.
    return tuple(np.diff(edges).tolist()) or (0,)


def _shape(lengths: tuple[int, ...]) -> str:
    return " x ".join(map(str, lengths)) or "1"


def _describe(stage: Stage) -> tuple[str, str, str]:
    """Return the tasks of a pass, its reads and writes, and its memory, as text."""
    read, written = f" ({byte_size(stage.bytes_read)})", f" ({byte_size(stage.bytes_written)})"
    source = {
        "source": f"read chunks{read}",
        "packed": f"read packed pieces{read}",
        "held": "fetch pieces from other workers",
        "blocks": f"take blocks{read}",
    }[stage.reads]
    target = {
        "packed": f"pack pieces{written}",
        "held": "keep pieces in memory",
        "target": f"write chunks or shards{written}",
    }[stage.writes]
    if stage.moves:
        source, target = f"read encoded bytes{read}", f"write them{written}"
    return (
        f"{counted(stage.tasks, 'task')} of {_shape(stage.regions.longest)}",
        f"{source}, {target}; {counted(stage.requests, 'request')}",
        f"up to {byte_size(stage.peak)} per task",
    )
