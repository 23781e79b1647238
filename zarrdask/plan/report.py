"""What a plan to rewrite an array says of itself: in words, and as drawings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from math import prod
from textwrap import fill
from typing import Self

import numpy as np

from zarrdask.display.picture import Picture
from zarrdask.display.svg import html, svg
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import MetadataError
from zarrdask.plan.axis import AxisPlan
from zarrdask.plan.regions import edges_within
from zarrdask.plan.strategies import Costs, Grids, Scheme, Stage
from zarrdask.plan.write import WritePlan

#: Characters in a line of text.
_WIDTH = 100
#: Of longer axes no drawing is made: chunks, or regions.
_MOST = 200_000


@dataclass(frozen=True, eq=False)
class Report:
    """A plan that prints, and draws itself.

    Attributes
    ----------
    grids : Grids
        What is rewritten into what.
    costs : Costs
        What it was reckoned with.
    schemes : tuple of Scheme
        The ways that there are, the best first: that is taken.
    """

    grids: Grids
    costs: Costs
    schemes: tuple[Scheme, ...]

    @property
    def scheme(self) -> Scheme:
        """The way that is taken."""
        return self.schemes[0]

    def by(self, way: str) -> Self:
        """Return the plan that goes another of the ways that there are.

        Parameters
        ----------
        way : str
            Its name, as `schemes` has it: such as "two passes".

        Raises
        ------
        MetadataError
            If there is none of that name.
        """
        names = [scheme.name for scheme in self.schemes]
        if way not in names:
            raise MetadataError("no such way", key="way", found=way, expected=", ".join(names))
        chosen = self.schemes[names.index(way)]
        others = (scheme for scheme in self.schemes if scheme is not chosen)
        return replace(self, schemes=(chosen, *others))

    @property
    def peak(self) -> int:
        """The most bytes that a process holds."""
        return self.scheme.peak

    @property
    def tasks(self) -> int:
        """How many there are."""
        return self.scheme.tasks

    @property
    def units(self) -> int:
        """How many stored units are written."""
        return self._count("target")

    def _count(self, grid: str) -> int:
        axes = zip(getattr(self.grids, grid), self.grids.shape, strict=True)
        return prod(len(edges_within(axis, n)) - 1 for axis, n in axes)

    # ----------------------------------------------------------------------------------------
    # In words

    def __repr__(self) -> str:
        tasks = counted(self.tasks, "task")
        return f"<zarrdask.RechunkPlan {self.grids.shape}, {self.scheme.name}, {tasks}>"

    def __str__(self) -> str:
        facts = list(self.facts())
        wide = max(len(name) for name, _ in facts) + 2
        return "\n".join(
            fill(text, _WIDTH, initial_indent=name.ljust(wide), subsequent_indent=" " * wide)
            for name, text in facts
        )

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to know, by name."""
        grids, scheme = self.grids, self.scheme
        yield "array", f"{grids.shape}, {byte_size(grids.nbytes)}"
        pieces, units = counted(self._count("source"), "piece"), counted(self.units, "unit")
        before, after = _shape(grids.longest("source")), _shape(grids.longest("target"))
        yield "chunks", f"{pieces} of {before} become {units} of {after}"
        yield "way", f"{scheme.name}: {self._numbers(scheme)}"
        yield "why", "; ".join(self._why())
        yield from self._before()
        if scheme.exchange is not None:
            handed = scheme.exchange
            boxes = f"{handed.boxes.size} of {_shape(handed.boxes.longest)}"
            pieces = f"{byte_size(handed.nbytes)} in {counted(handed.pieces, 'piece')}"
            yield "boxes", f"{boxes}, one after another; workers hand each other {pieces}"
        for at, stage in enumerate(scheme.stages, 1):
            yield f"pass {at}", _stage(stage)
        at_once = max(stage.at_once for stage in scheme.stages)
        tasks = "one task" if at_once == 1 else f"{at_once} tasks"
        memory = (
            f"at most {byte_size(scheme.peak)} of {byte_size(self.costs.memory)} in each process"
        )
        yield "memory", f"{memory}, which does {tasks} at a time"

    def _before(self) -> Iterator[tuple[str, str]]:
        """Yield what is to be said of what comes before the first pass."""
        return iter(())

    def _numbers(self, scheme: Scheme) -> str:
        times = scheme.moved / max(self.grids.nbytes, 1)
        return (
            f"{byte_size(scheme.moved)} read and written, {times:.3g} times the array, "
            f"by {counted(scheme.requests, 'request')}"
        )

    def _why(self) -> Iterator[str]:
        best = self.scheme
        if best.stages[0].moves:
            yield "the encoded bytes are the same in both"
        elif best.stages[0].reads == "blocks":
            yield "each unit lies in one block"
        elif best.moved <= 2 * self.grids.nbytes:
            yield "every byte is read and written once, nothing can be less"
        for other in self.schemes[1:]:
            times = other.cost / max(best.cost, 1)
            yield f"{other.name} would cost {times:.3g} times as much ({self._numbers(other)})"
        if len(self.schemes) == 1 and best.moved > 2 * self.grids.nbytes:
            yield (
                "two passes need more memory"
                if self.costs.packs
                else "values of no fixed size can't be packed"
            )

    # ----------------------------------------------------------------------------------------
    # As drawings

    def svg(self, stage: int = -1) -> str:
        """Return a drawing of a pass, by default the last.

        It shows what is stored, in the colours of the tasks that do it, and what they read.
        """
        return svg(self.picture(stage))

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(text)}</td></tr>'
            for name, text in self.facts()
        )
        drawn = "".join(
            html(self.picture(at)) for at in range(len(self.scheme.stages)) if self._can_draw(at)
        )
        return f"<table>{rows}</table>{drawn}"

    def _can_draw(self, stage: int) -> bool:
        read, written = self._ends(stage)
        owned = self.scheme.stages[stage].regions.edges
        return max(map(len, (*read, *written, *owned)), default=0) < _MOST

    def _ends(self, stage: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the boundaries of what a pass reads, and of what it writes."""
        stages, at = self.scheme.stages, range(len(self.scheme.stages))[stage]
        one, other = (
            tuple(map(edges_within, axes, self.grids.shape))
            for axes in (self.grids.source, self.grids.target)
        )
        return (
            stages[at - 1].regions.edges if at else one,
            _pieces(*stages[at : at + 2]) if at + 1 < len(stages) else other,
        )

    def picture(self, stage: int = -1) -> Picture:
        """Return what `svg` draws."""
        at = range(len(self.scheme.stages))[stage]
        what = self.scheme.stages[at]
        axes = tuple(
            AxisPlan(_lengths(read), _lengths(owned), written, n, 0)
            for read, owned, written, n in zip(
                self._ends(at)[0],
                what.regions.edges,
                self._ends(at)[1],
                self.grids.shape,
                strict=True,
            )
        )
        names = tuple(f"axis {i}" for i in range(len(axes)))
        item = np.dtype(("V", self.grids.itemsize))
        plan = WritePlan(axes, item, item, names, _read(what))
        found = plan.picture()
        kinds = tuple((kind, text) for kind, text in found.legend if kind in ("whole", "merged"))
        return replace(
            found,
            title=f"pass {at + 1} of {len(self.scheme.stages)}: {self.grids.shape}",
            legend=(
                *((kind, text.replace("Dask block", _read(what))) for kind, text in kinds),
                ("block", "regions, one task each"),
                ("source", f"{_read(what)}s that are read"),
            ),
            notes=(*_stage(what).split("; "), *found.notes[3:]),
        )


def _pieces(stage: Stage, after: Stage) -> tuple[np.ndarray, ...]:
    """Return the boundaries of what a pass packs: its regions, cut where the next one's end."""
    return tuple(map(np.union1d, stage.regions.edges, after.regions.edges))


def _read(stage: Stage) -> str:
    return {
        "source": "chunk",
        "packed": "packed region",
        "held": "kept region",
        "blocks": "Dask block",
    }[stage.reads]


def _lengths(edges: np.ndarray) -> tuple[int, ...]:
    # An axis without elements has one block, without any, for Dask.
    return tuple(np.diff(edges).tolist()) or (0,)


def _shape(lengths: tuple[int, ...]) -> str:
    return " x ".join(map(str, lengths)) or "1"


def _stage(stage: Stage) -> str:
    tasks = f"{counted(stage.tasks, 'task')} of {_shape(stage.regions.longest)}"
    read, written = f" ({byte_size(stage.bytes_read)})", f" ({byte_size(stage.bytes_written)})"
    source = {
        "source": f"read chunks{read}",
        "packed": f"read packed pieces{read}",
        "held": "ask workers for pieces",
        "blocks": f"take blocks{read}",
    }[stage.reads]
    target = {
        "packed": f"pack pieces{written}",
        "held": "keep pieces",
        "target": f"write units{written}",
    }[stage.writes]
    if stage.moves:
        source, target = f"read encoded bytes{read}", f"write them{written}"
    requests, peak = counted(stage.requests, "request"), byte_size(stage.peak)
    return f"{tasks}; {source}, {target} by {requests}; at most {peak} a task"
