"""The report of `zarrdask.verify` for one array or hierarchy, and the repair from there."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.display.report import Displayed, Report
from zarrdask.display.words import byte_size, counted, first_of
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.runtime.progress import Show
from zarrdask.tools.verification.absent_chunks import absent_problems
from zarrdask.tools.verification.check import BAD_KINDS, Problem
from zarrdask.tools.verification.repair import (
    plan_repair,
    run_repair,
)

#: The kinds of problems that make a check fail.
FAILING_KINDS = ("invalid", "unsupported", "stale", "absent", *BAD_KINDS)
#: The kinds that make it fail in strict mode only.
STRICT_FAILING_KINDS = ("note", "overlap")


@dataclass(frozen=True)
class ArrayReport(Displayed):
    """The counts of one array.

    Attributes
    ----------
    path : str
        The path of the array in the store.
    shape : tuple of int
    dtype : str
    objects : int
        The number of chunks or shards of the grid.
    stored, missing, fill_only : int
        How many of them are stored, are not, and hold only the fill value.
    chunks : int
        The number of stored chunks: in shards, those that are in the index.
    size : int
        The encoded size of the stored ones in bytes.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    objects: int
    stored: int
    missing: int
    fill_only: int
    chunks: int
    size: int

    def _text(self) -> str:
        text = f"{self.path or '/'} {self.shape} {self.dtype}: "
        text += f"{self.stored} of {self.objects} chunks or shards stored, {byte_size(self.size)}"
        if self.chunks != self.stored:
            text += f", {self.chunks} chunks in them"
        return text + (f", {self.fill_only} of fill values only" if self.fill_only else "")


@dataclass(frozen=True, repr=False)
class VerifyReport(Report):
    """The report of `zarrdask.verify` for an array or a hierarchy.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    place : str
        The location of the node that was checked.
    groups : int
        The number of groups.
    arrays : tuple of ArrayReport
        The arrays that could be checked.
    problems : tuple of Problem
        Each with its kind, the path of its node, its key, and a message. These kinds make the
        check fail: ``invalid`` and ``unsupported`` (metadata), ``stale`` (consolidated metadata,
        and levels of pyramids), ``unreadable``, ``truncated`` and ``corrupt`` (chunks and shards);
        and after `repair`, ``absent`` (a chunk that is stored only in the other hierarchy).
        In strict mode these do, too: ``note`` (metadata that was read although it breaks a rule)
        and ``overlap`` (chunks of a shard that share bytes). Others do not: ``extra`` (a key that
        belongs to no node), ``partial`` (left by an interrupted writer), and on request ``missing``
        and ``fill-only``.
    strict : bool
        Whether the check was strict.
    listed : bool
        Whether the store could be listed. If not, each unit was requested by its key, and keys
        that belong to no node were not looked for.
    """

    place: str
    groups: int
    arrays: tuple[ArrayReport, ...]
    problems: tuple[Problem, ...]
    strict: bool = False
    listed: bool = True
    _root: NodePath | None = field(default=None, repr=False, compare=False)
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """Whether all metadata is valid, and every stored chunk or shard can be read."""
        return not self.failures

    @property
    def failures(self) -> tuple[Problem, ...]:
        """The problems that make the check fail."""
        kinds = (*FAILING_KINDS, *STRICT_FAILING_KINDS) if self.strict else FAILING_KINDS
        return tuple(problem for problem in self.problems if problem.kind in kinds)

    @property
    def bad(self) -> dict[str, tuple[Index, ...]]:
        """The indices of the chunks or shards that can't be read, by the path of their array."""
        by_array: dict[str, dict[Index, None]] = {}
        for problem in self.problems:
            if problem.kind in BAD_KINDS and problem.index is not None:
                by_array.setdefault(problem.path, {})[problem.index] = None
        return {path: tuple(indices) for path, indices in by_array.items()}

    def count(self, kind: str) -> int:
        """Return the number of problems of a kind."""
        return sum(problem.kind == kind for problem in self.problems)

    def summary(self) -> str:
        """Return one line: the location, the numbers of nodes, the result, the first failure."""
        first = f" (the first: {self.failures[0].key or '/'})" if self.failures else ""
        return f"{self._title()}; {self._verdict()}{first}"

    def _title(self) -> str:
        counts = f"{counted(self.groups, 'group')}, {counted(len(self.arrays), 'array')}"
        return f"{self.place}: {counts}"

    def _verdict(self) -> str:
        kinds = Counter(problem.kind for problem in self.problems)
        numbers = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        verdict = "ok" if self.ok else "NOT OK"
        return f"{verdict}: {numbers}" if numbers else verdict

    def _text(self) -> str:
        lines = [self._title()]
        lines += first_of([f"  {array}" for array in self.arrays], "arrays")
        for kind in dict.fromkeys(problem.kind for problem in self.problems):
            alike = [str(problem) for problem in self.problems if problem.kind == kind]
            lines += first_of(alike, kind)
        if not self.listed:
            lines.append("the store can't be listed: keys that belong to no node were not checked")
        return "\n".join([*lines, self._verdict()])

    def repair(
        self,
        from_: Any,
        *,
        missing: bool = False,
        dry_run: bool = False,
        storage_options: dict[str, Any] | None = None,
        scheduler: Any = None,
        progress: Show = False,
    ) -> "VerifyReport":
        """Copy what can't be read from another array or hierarchy, and check it again.

        Encoded bytes are copied if both arrays store their chunks in the same way; otherwise the
        values are read and encoded. Units that are damaged in the other array as well are not
        changed. Metadata is not repaired. If both stores can be listed, chunks that only the other
        one has are looked for, also if nothing is damaged: the report is not `ok` then.

        Parameters
        ----------
        from_ : str, os.PathLike, MutableMapping, Store, Array or Group
            The array or hierarchy to copy from. Its arrays have the same paths below it.
        missing : bool, default False
            Whether the other one also decides what is stored: chunks and shards that are missing
            here and stored there are copied, also single chunks of a shard, and those bad here and
            missing there are erased.
        dry_run : bool, default False
            Return the report as it is, with the chunks that only the other one has. Nothing is
            copied.
        storage_options : dict, optional
            Options of fsspec for `from_`.
        scheduler, progress
            As in `zarrdask.verify`.

        Returns
        -------
        VerifyReport
            This report, with the problems that are left.

        Raises
        ------
        NodeNotFoundError
            If there is no node at `from_`.
        MetadataError
            If an array there has another shape, data type or fill value. Nothing is changed then.
        """
        if self._root is None:
            raise MetadataError(
                "only a report that zarrdask.verify has returned can repair; verify the node again",
                key="verify",
            )
        intact = locate_node(from_, None, storage_options)
        everything = [array.path for array in self.arrays]
        paths = everything if missing else list(self.bad)
        tasks = plan_repair(self._root, intact, paths, self.bad, missing=missing)
        tasks = [] if dry_run else tasks
        results = run_repair(tasks, scheduler=scheduler, progress=progress)
        repaired = {(task.path, index) for task in tasks for index in task.indices}
        kinds = (*BAD_KINDS, "overlap", "missing", "fill-only")
        problems = [
            problem
            for problem in self.problems
            if problem.kind != "absent"
            if (problem.path, problem.index) not in repaired or problem.kind not in kinds
        ]
        arrays = {array.path: array for array in self.arrays}
        for task, (before, after) in zip(tasks, results, strict=True):
            old, counts = arrays[task.path], ("stored", "missing", "fill_only", "chunks", "size")
            changes = {n: getattr(old, n) + getattr(after, n) - getattr(before, n) for n in counts}
            arrays[task.path] = replace(old, **changes)
            problems += after.problems
        work = {"scheduler": scheduler, "progress": progress}
        problems += absent_problems(self._root, intact, everything, **work)
        return replace(self, arrays=tuple(arrays.values()), problems=tuple(problems))
