"""The statistics of all numeric arrays of a group, one array after another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.display.report import Report
from zarrdask.display.words import counted
from zarrdask.errors import UnsupportedError, ZarrdaskError
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.progress import Show
from zarrdask.tools.verification.statistics import Statistics, statistics

_HEADER = ("array", "elements", "missing", "minimum", "maximum", "mean", "std", "units")


@dataclass(frozen=True, repr=False)
class GroupStatistics(Report):
    """The statistics of the arrays of a group.

    Attributes
    ----------
    group : str
        The location of the group.
    arrays : mapping of str to Statistics
        The statistics of each numeric array, by its path from the group.
    skipped : mapping of str to str
        The other arrays, and the reason why they have none.
    """

    group: str
    arrays: Mapping[str, Statistics]
    skipped: Mapping[str, str]

    def summary(self) -> str:
        """Return one line: the group, and the number of arrays."""
        return f"{self.group}: {counted(len(self.arrays), 'array')}"

    def _text(self) -> str:
        rows = [_HEADER, *(_row(path, each) for path, each in self.arrays.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (rows if self.arrays else ())
        ]
        lines += [f"{path}: {reason}" for path, reason in self.skipped.items()]
        return "\n".join(lines or [f"{self.group}: there are no arrays"])


def _row(path: str, each: Statistics) -> tuple[str, ...]:
    share = (each.nan + each.missing) / max(each.count, 1)
    numbers = ((each.minimum, 10), (each.maximum, 10), (each.mean, 6), (each.std, 6))
    texts = ("-" if value is None else f"{value:.{digits}g}" for value, digits in numbers)
    return (path, str(each.count), f"{share:.0%}", *texts, each.units or "")


def group_statistics(group: Group, *, scheduler: Any = None, show: Show = False) -> GroupStatistics:
    """Return the statistics of all numeric arrays below a group.

    Arrays that are not numeric, or whose metadata can't be read, are skipped. A chunk that can't be
    read raises an error.
    """
    arrays, skipped = dict[str, Statistics](), dict[str, str]()
    for path, metadata in group.node_path.walk():
        if isinstance(metadata, ZarrdaskError):
            skipped[path] = str(metadata)
        elif isinstance(metadata, ArrayMetadata):
            array = Array(group.node_path.join(path), metadata, "r")
            try:
                arrays[path] = statistics(array, scheduler=scheduler, show=show)
            except UnsupportedError as error:
                skipped[path] = f"{error.found}: no statistics"
    return GroupStatistics(group.node_path.location, arrays, skipped)
