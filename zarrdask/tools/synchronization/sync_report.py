"""The report of a synchronization: what was added, changed and removed."""

from dataclasses import dataclass
from typing import ClassVar

from zarrdask.display.report import Report
from zarrdask.display.words import byte_size, counted


@dataclass(frozen=True, repr=False)
class SyncReport(Report):
    """The report of `zarrdask.sync`: the changes, or with ``dry_run=True`` the planned changes.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    source, target : str
        The locations of both nodes.
    added, changed, removed : tuple of str
        The keys of objects (chunks, shards and documents), below the nodes, that were added to the
        target, stored in place of other ones, and removed from it.
    kept : tuple of str
        The keys of objects that only the target has, and that stay as `delete` is False.
    replaced : tuple of str
        The paths of arrays that were replaced as a whole, as their codecs, chunks, data type or
        format differ.
    changed_meanwhile : tuple of str
        The keys of objects of the source that changed while they were copied, and of documents of
        the target that another writer changed during the run. Both were then compared again.
    bytes : int
        The bytes that were copied.
    dry_run : bool
        Whether nothing was changed.
    """

    source: str
    target: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    changed_meanwhile: tuple[str, ...] = ()
    bytes: int = 0
    dry_run: bool = False
    derived: ClassVar[tuple[str, ...]] = ("is_equal",)

    @property
    def is_equal(self) -> bool:
        """Whether the target has what the source has, and nothing else."""
        return not self.kept and not (self.dry_run and (self.added or self.changed or self.removed))

    def summary(self) -> str:
        """Return one line: both nodes, and the numbers of objects."""
        counts = [
            f"{len(keys)} {name}"
            for name, keys in (
                ("added", self.added),
                ("changed", self.changed),
                ("removed", self.removed),
            )
        ]
        text = f"{self.source} -> {self.target}: {', '.join(counts)}, {byte_size(self.bytes)}"
        return f"{text} (dry run)" if self.dry_run else text

    def _text(self) -> str:
        lines = [self.summary()]
        lines += [f"replaced {path or '/'}" for path in self.replaced]
        if self.kept:
            objects = counted(len(self.kept), "object")
            lines.append(f"kept {objects} that only the target has; delete=True removes them")
        if self.changed_meanwhile:
            objects = counted(len(self.changed_meanwhile), "object")
            lines.append(f"compared again, as {objects} changed during the run")
        return "\n".join(lines)
