"""The result of `zarrdask.inventory`: the counts of stored and missing chunks of arrays."""

from dataclasses import dataclass
from typing import Any, ClassVar

from zarrdask.display.html import as_html, beside, heading, muted, table
from zarrdask.display.mosaic import strip
from zarrdask.display.report import Report
from zarrdask.display.words import byte_size, counted, first_of
from zarrdask.formats.indexing.selection import Region
from zarrdask.tools.verification.check import Problem

#: The most arrays that a page shows.
_MAX_ARRAYS = 50


@dataclass(frozen=True)
class Span:
    """A part of the append dimension along which equally many chunks or shards are stored.

    Attributes
    ----------
    start, stop : int
        The part, in elements of the dimension.
    objects, stored : int
        The number of chunks or shards in it, and how many of them are stored.
    nchunks, nchunks_stored : int or None
        The number of chunks in it, also within shards, and how many of them are stored; None if
        they were not counted.
    size : int
        The encoded size of the stored ones in bytes.
    """

    start: int
    stop: int
    objects: int
    stored: int
    nchunks: int | None
    nchunks_stored: int | None
    size: int

    @property
    def share(self) -> float:
        """The share of the chunks, or of the shards if only these were counted, that is stored."""
        if self.nchunks is None or self.nchunks_stored is None:
            return self.stored / self.objects
        return self.nchunks_stored / self.nchunks


@dataclass(frozen=True, repr=False)
class ArrayInventory(Report):
    """The counts of one array.

    Attributes
    ----------
    path : str
        The path of the array below the node of the inventory; "" for the node itself.
    shape : tuple of int
    dtype : str
    objects, stored : int
        The number of chunks, or of shards if there are any, and how many of them are stored.
    nchunks : int
        The number of chunks; in a sharded array, of those in all shards.
    nchunks_stored : int or None
        How many of these are stored; None in a sharded array if only shards were counted.
    size : int
        The encoded size of the stored ones in bytes.
    fill_only : int or None
        The number of stored chunks, or shards, that hold only the fill value; None if not counted.
    dimension : str or None
        The name of the append dimension, or the number of its axis; None if there are no axes.
    along : tuple of Span
        What is stored along the append dimension, from its begin to its end.
    names : tuple of str
        A name for each axis.
    expected, missing : int
        The number of chunks (or shards, if only these were counted) that were expected, and how
        many of them are not stored.
    holes : tuple of tuple of slice
        The missing ones as regions of the array, which do not overlap.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    objects: int
    stored: int
    nchunks: int
    nchunks_stored: int | None
    size: int
    fill_only: int | None
    dimension: str | None
    along: tuple[Span, ...]
    names: tuple[str, ...]
    expected: int
    missing: int
    holes: tuple[Region, ...]
    #: The noun for what a unit is, and a drawing of what is stored, if that is a part.
    _unit: str = "chunk"
    _picture: str = ""

    def facts(self) -> list[tuple[str, str]]:
        """Return the counts as names and descriptions."""
        rows = [(f"{self._unit}s", f"{self.stored} of {self.objects}")]
        if self._unit == "shard" and self.nchunks_stored is not None:
            rows.append(("chunks", f"{self.nchunks_stored} of {self.nchunks}"))
        rows.append(("stored", byte_size(self.size)))
        if self.fill_only is not None:
            rows.append(("fill only", counted(self.fill_only, self._unit)))
        if self.expected:
            rows.append(("missing", f"{self.missing} of {self.expected} expected"))
        return rows

    @property
    def strip(self) -> str:
        """How much is stored along the append dimension, as a line of characters."""
        return strip((span.start, span.stop, span.share) for span in self.along)

    def _text(self) -> str:
        text = f"{self.path or '/'} {self.shape} {self.dtype}: "
        text += (
            f"{self.stored} of {counted(self.objects, self._unit)} stored, {byte_size(self.size)}"
        )
        if self._unit == "shard" and self.nchunks_stored is not None:
            text += f", {self.nchunks_stored} of {self.nchunks} chunks in them"
        if self.fill_only:
            text += f", {self.fill_only} of fill values only"
        lines = [text]
        if len(self.along) > 1:
            lines.append(f"  {self.dimension} {self.strip}")
        lines += first_of([f"  missing: {self.region_text(hole)}" for hole in self.holes], "holes")
        return "\n".join(lines)

    def region_text(self, region: Region) -> str:
        """Return a region as text, as options of commands have it."""
        pairs = zip(self.names, region, strict=True)
        return ", ".join(f"{name}={pick.start}:{pick.stop}" for name, pick in pairs) or "..."

    def to_dict(self) -> dict[str, Any]:
        """Return the inventory as JSON values: holes are (start, stop) along each axis."""
        holes = [[[pick.start, pick.stop] for pick in hole] for hole in self.holes]
        return super().to_dict() | {"holes": holes}

    def _repr_html_(self) -> str:
        title = f"{self.path or '/'} {muted(as_html(f'{self.shape} {self.dtype}'))}"
        return f"<div>{title}</div>" + beside(table(self.facts()), self._picture)


#: Advice about missing and damaged chunks.
_REPAIR = (
    "to copy chunks from a backup, call zarrdask.verify(url).repair(backup, missing=True), or "
    "zarrdask repair URL BACKUP --missing"
)


@dataclass(frozen=True, repr=False)
class Inventory(Report):
    """The counts of an array, or of the arrays of a hierarchy: see `zarrdask.inventory`.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    place : str
        The location of the node.
    arrays : tuple of ArrayInventory
        What is stored of each array.
    problems : tuple of Problem
        Metadata that can't be read; shards whose index is damaged, whose chunks count as not
        stored; and of an inventory with `fill_only`, chunks and shards that can't be decoded.
    """

    derived: ClassVar[tuple[str, ...]] = ("stored", "size", "expected", "missing", "ok")
    _instead: ClassVar[str] = "an inventory has arrays, each with the counts of its chunks"

    place: str
    arrays: tuple[ArrayInventory, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def stored(self) -> int:
        """The number of stored chunks and shards."""
        return sum(array.stored for array in self.arrays)

    @property
    def size(self) -> int:
        """The encoded size of what is stored in bytes."""
        return sum(array.size for array in self.arrays)

    @property
    def expected(self) -> int:
        """The number of chunks that were expected."""
        return sum(array.expected for array in self.arrays)

    @property
    def missing(self) -> int:
        """The number of chunks that were expected and are not stored."""
        return sum(array.missing for array in self.arrays)

    @property
    def ok(self) -> bool:
        """Whether nothing that was expected is missing, and nothing else is wrong."""
        return not self.missing and not self.problems

    def summary(self) -> str:
        """Return one line: the location, and the result."""
        return f"{self._title()}; {self._verdict()}"

    def _title(self) -> str:
        return f"{self.place}: {counted(len(self.arrays), 'array')}"

    def _verdict(self) -> str:
        total = sum(array.objects for array in self.arrays)
        text = f"{self.stored} of {counted(total, 'chunk or shard')} stored, {byte_size(self.size)}"
        if self.expected:
            text = f"{self.missing} of {self.expected} expected chunks missing; {text}"
        if self.problems:
            text = f"{counted(len(self.problems), 'problem')}; {text}"
        return text if self.ok else f"NOT OK: {text}"

    def _text(self) -> str:
        lines = [self._title()]
        for array in self.arrays:
            lines += [f"  {line}" for line in str(array).splitlines()]
        lines += first_of([str(problem) for problem in self.problems], "problems")
        if not self.ok:
            lines.append(_REPAIR)
        return "\n".join([*lines, self._verdict()])

    def _repr_html_(self) -> str:
        parts = [heading("zarrdask.Inventory", self.place)]
        parts += [array._repr_html_() for array in self.arrays[:_MAX_ARRAYS]]
        omitted = len(self.arrays) - _MAX_ARRAYS
        parts += [muted(f"... and {omitted} more arrays")] if omitted > 0 else []
        parts += [f"<div>{as_html(str(problem))}</div>" for problem in self.problems[:_MAX_ARRAYS]]
        return "".join([*parts, f"<div>{as_html(self._verdict())}</div>"])
