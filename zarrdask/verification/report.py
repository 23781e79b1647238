"""What `zarrdask.verify` found of an array or a hierarchy, and how it is mended."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from zarrdask.display.words import byte_size as bytes_in_words
from zarrdask.display.words import counted, first_of
from zarrdask.errors import MetadataError
from zarrdask.grids.base import Index
from zarrdask.hierarchy.path import locate_node
from zarrdask.storage.base import Store
from zarrdask.verification.check import BAD, Problem
from zarrdask.verification.repair import Mended, check_there
from zarrdask.verification.repair_tasks import MendingWork, mend, plan_mending

#: What makes a check fail.
FAILING = ("invalid", "unsupported", "stale", *BAD)
#: What makes it fail in strict mode, too.
FAILING_STRICT = ("note", "overlap")


@dataclass(frozen=True)
class ArrayReport:
    """What was found of one array.

    Attributes
    ----------
    path : str
        In the store.
    shape : tuple of int
    dtype : str
    units : int
        How many stored units (chunks, or shards) it can have.
    stored, missing, fill_only : int
        How many are there, are not, and hold only the fill value.
    chunks : int
        How many chunks are stored: more than units, in shards.
    size : int
        Of the stored units, in bytes.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    units: int
    stored: int
    missing: int
    fill_only: int
    chunks: int
    size: int

    def __str__(self) -> str:
        text = f"{self.path or '/'} {self.shape} {self.dtype}: "
        text += f"{self.stored} of {self.units} units stored, {bytes_in_words(self.size)}"
        if self.chunks != self.stored:
            text += f", {self.chunks} chunks in them"
        return text + (f", {self.fill_only} of fill values only" if self.fill_only else "")


@dataclass(frozen=True)
class Report:
    """What `verify` found of an array or a hierarchy. It prints itself.

    Attributes
    ----------
    place : str
        What was checked.
    groups : int
        How many there are.
    arrays : tuple of ArrayReport
        Those that could be checked.
    problems : tuple of Problem
        Each with its kind, the path of its node, its key, and a message. Kinds that make the
        check fail: ``invalid`` and ``unsupported`` (metadata), ``stale`` (consolidated metadata),
        ``unreadable``, ``truncated`` and ``corrupt`` (stored units). Others: ``note`` (metadata
        that were read though a rule forbids them) and ``overlap`` (chunks of a shard that share
        bytes), which fail in strict mode; ``extra`` and ``partial`` (what belongs to no node, and
        what a writer left); on request ``missing`` and ``fill-only``.
    strict : bool
    listed : bool
        Whether the store could tell its keys. If not, each unit was asked for, and nothing is
        known of others.
    """

    place: str
    groups: int
    arrays: tuple[ArrayReport, ...]
    problems: tuple[Problem, ...]
    strict: bool = False
    listed: bool = True
    _store: Store | None = field(default=None, repr=False, compare=False)
    _path: str = field(default="", repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether all metadata are valid, and every stored unit can be read."""
        return not self.failures

    @property
    def failures(self) -> tuple[Problem, ...]:
        """The problems that make the check fail."""
        kinds = (*FAILING, *FAILING_STRICT) if self.strict else FAILING
        return tuple(problem for problem in self.problems if problem.kind in kinds)

    @property
    def bad(self) -> dict[str, tuple[Index, ...]]:
        """The units that can't be read: by the path of their array, their indices."""
        return _by_array(self.problems, BAD)

    def count(self, kind: str) -> int:
        """Return how many problems there are of a kind."""
        return sum(problem.kind == kind for problem in self.problems)

    def __str__(self) -> str:
        counts = f"{counted(self.groups, 'group')}, {counted(len(self.arrays), 'array')}"
        lines = [f"{self.place}: {counts}"]
        lines += first_of([f"  {array}" for array in self.arrays], "arrays")
        kinds = Counter(problem.kind for problem in self.problems)
        for kind in kinds:
            alike = [str(problem) for problem in self.problems if problem.kind == kind]
            lines += first_of(alike, kind)
        if not self.listed:
            lines.append(
                "the store can't be listed: keys that belong to nothing were not looked for"
            )
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return "\n".join([*lines, ("ok" if self.ok else "NOT OK") + (f": {told}" if told else "")])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "place": self.place,
            "ok": self.ok,
            "strict": self.strict,
            "listed": self.listed,
            "groups": self.groups,
            "arrays": [dict(vars(each), shape=list(each.shape)) for each in self.arrays],
            "problems": [dict(vars(each)) for each in self.problems],
        }

    def repair(
        self,
        from_: Any,
        *,
        missing: bool = False,
        storage_options: dict[str, Any] | None = None,
        scheduler: Any = None,
        progress: bool = False,
    ) -> "Report":
        """Copy what can't be read from another array or hierarchy, and look at it again.

        Bytes are copied if both arrays store units in the same way, else values. What is bad in
        the other one, too, is not copied, and stays as it is. Metadata are not repaired.

        Parameters
        ----------
        from_ : str, os.PathLike, MutableMapping, Store, Array or Group
            The other one: of the same kind; its arrays have the same paths below it.
        missing : bool
            Whether what is not stored in one of both is taken for the truth of it, too: units
            that are missing here and stored there are copied, and those that are bad here and
            not stored there erased.
        storage_options : dict, optional
            For `from_`.
        scheduler, progress
            As in `verify`.

        Returns
        -------
        Report
            This one, with what is left.

        Raises
        ------
        NodeNotFoundError
            If nothing is there.
        MetadataError
            If an array there has another shape, data type or fill value. Nothing is changed then.
        """
        if self._store is None:
            raise MetadataError("this report does not know its store", key="verify")
        there = locate_node(from_, None, storage_options)
        check_there(*there)
        paths = [each.path for each in self.arrays] if missing else list(self.bad)
        works = plan_mending((self._store, self._path), there, paths, self.bad, missing=missing)
        return _after(self, works, mend(works, scheduler=scheduler, progress=progress))


def _by_array(problems: Iterable[Problem], kinds: Sequence[str]) -> dict[str, tuple[Index, ...]]:
    """Return which units have problems of some kinds: by array, each once."""
    found: dict[str, dict[Index, None]] = {}
    for problem in problems:
        if problem.kind in kinds and problem.index is not None:
            found.setdefault(problem.path, {})[problem.index] = None
    return {path: tuple(indices) for path, indices in found.items()}


def _after(report: Report, works: Sequence[MendingWork], mended: Sequence[Mended]) -> Report:
    """Return a report as it is after some units were mended."""
    seen = {(work.path, index) for work in works for index in work.indices}
    kinds = (*BAD, "overlap", "missing", "fill-only")
    problems = [p for p in report.problems if (p.path, p.index) not in seen or p.kind not in kinds]
    arrays = {each.path: each for each in report.arrays}
    for work, (before, after) in zip(works, mended, strict=True):
        old = arrays[work.path]
        arrays[work.path] = replace(
            old,
            stored=old.stored + after.stored - before.stored,
            missing=old.missing + after.missing - before.missing,
            fill_only=old.fill_only + after.fill_only - before.fill_only,
            chunks=old.chunks + after.chunks - before.chunks,
            size=old.size + after.size - before.size,
        )
        problems += after.problems
    return replace(report, arrays=tuple(arrays.values()), problems=tuple(problems))
