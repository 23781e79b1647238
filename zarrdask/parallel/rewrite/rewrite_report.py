"""The report of a copy: how each array was copied, and what could not be kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from zarrdask.display.report import Displayed, Report
from zarrdask.display.words import byte_size, counted
from zarrdask.parallel.plan.request_costs import RequestCosts
from zarrdask.parallel.rewrite.node_plan import NodeCopy, Skipped

#: How the values of an array are copied.
CopyMethod = Literal["copied unchanged", "repacked", "recoded", "metadata only", "referenced"]


@dataclass(frozen=True)
class CopiedArray(Displayed):
    """One array of a copy.

    Attributes
    ----------
    path : str
        The path from the root of the copy.
    method : {"copied unchanged", "repacked", "recoded", "metadata only", "referenced"}
        "copied unchanged": whole encoded chunks or shards are copied. "repacked": encoded inner
        chunks of shards are copied. "recoded": values are decoded and encoded. "metadata only":
        no chunk is touched. "referenced": the target refers to the chunks or shards of the source.
    objects : int, optional
        How many chunks or shards were stored. None before the copy has run.
    bytes_read, bytes_written : int
        The bytes that were copied: encoded, or decoded if the method is "recoded".
    notes : tuple of str
        Properties of the source that the copy could not keep.
    """

    path: str
    method: CopyMethod
    objects: int | None = None
    bytes_read: int = 0
    bytes_written: int = 0
    notes: tuple[str, ...] = ()

    def _text(self) -> str:
        text = f"{self.path or '/'}: {self.method}"
        if self.objects is not None and self.method != "metadata only":
            read, written = byte_size(self.bytes_read), byte_size(self.bytes_written)
            text += f", {counted(self.objects, 'chunk or shard')}, {read} read, {written} written"
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, repr=False)
class CopyReport(Report):
    """The report of `zarrdask.copy`.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    source, target : str
        The locations of both nodes.
    arrays : tuple of CopiedArray
        The arrays that were copied.
    groups : int
        The number of groups that were written.
    skipped : tuple of (str, str)
        The paths of the nodes that were left out, each with the reason.
    notes : tuple of str
        Properties of groups that the copy could not keep.
    costs : RequestCosts, optional
        With ``dry_run=True``: the requests for chunks and shards by class, and their bytes.
    """

    source: str
    target: str
    arrays: tuple[CopiedArray, ...]
    groups: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    costs: RequestCosts | None = None
    derived: ClassVar[tuple[str, ...]] = ("objects", "bytes_written")

    @classmethod
    def of_nodes(
        cls,
        source: str,
        target: str,
        nodes: Iterable[NodeCopy],
        skipped: Skipped,
        arrays: Iterable[CopiedArray],
        notes: Iterable[str] = (),
        costs: RequestCosts | None = None,
    ) -> "CopyReport":
        """Return the report of a copy of nodes, from the reports of their arrays."""
        groups = [node for node in nodes if not node.is_array]
        lost = [f"{group.path or '/'}: {note}" for group in groups for note in group.notes]
        said = (*lost, *notes)
        return cls(source, target, tuple(arrays), len(groups), tuple(skipped), said, costs)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can represent: sizes are numbers of bytes."""
        costs = dict.fromkeys(RequestCosts({}).to_dict())
        return super().to_dict() | (costs if self.costs is None else self.costs.to_dict())

    @property
    def requests_by_class(self) -> dict[str, int] | None:
        """The requests that the copy would send, with ``dry_run=True``."""
        return None if self.costs is None else self.costs.requests

    @property
    def price(self) -> float | None:
        """The price of these requests by the setting ``zarrdask.prices``."""
        return None if self.costs is None else self.costs.price

    @property
    def objects(self) -> int:
        """The number of chunks or shards that were stored."""
        return sum(array.objects or 0 for array in self.arrays)

    @property
    def bytes_written(self) -> int:
        """The bytes that were written."""
        return sum(array.bytes_written for array in self.arrays)

    def summary(self) -> str:
        """Return one line: both nodes, and the numbers of arrays and groups."""
        counts = f"{counted(len(self.arrays), 'array')}, {counted(self.groups, 'group')}"
        return f"{self.source} -> {self.target}: {counts}"

    def _text(self) -> str:
        lines = [self.summary(), *map(str, self.arrays)]
        lines += [] if self.costs is None else [f"costs: {self.costs}"]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"skipped {path or '/'}: {reason}" for path, reason in self.skipped]
        return "\n".join(lines)
