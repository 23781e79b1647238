"""The plan to rewrite all arrays of a group, one after another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from html import escape
from typing import Any, TextIO

from zarrdask.display.words import counted
from zarrdask.execution.executor import workers
from zarrdask.hierarchy.create import create_node, write_consolidated
from zarrdask.hierarchy.find import has_document
from zarrdask.hierarchy.journal import Journal, beside, journal_of
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.hierarchy.resize import rewrite_lock
from zarrdask.metadata.model import GroupMetadata
from zarrdask.nodes.group import Group, open_group
from zarrdask.rewrite.array_plan import RechunkPlan, clear, resumes
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """How the arrays of a group are rewritten; made by `zarrdask.rechunk`.

    Attributes
    ----------
    groups : mapping of str to GroupMetadata
        The new groups, by their paths: "" is the root.
    arrays : mapping of str to RechunkPlan
        How each array is rewritten, by its path.
    store : Store
        Where the new group is to be.
    path : str
        Its path there.
    overwrite : bool
        Whether a node that is there goes.
    consolidated : bool
        Whether the new group gets consolidated metadata.
    """

    groups: Mapping[str, GroupMetadata]
    arrays: Mapping[str, RechunkPlan]
    store: Store
    path: str
    overwrite: bool
    consolidated: bool

    def __getitem__(self, path: str) -> RechunkPlan:
        return self.arrays[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def tasks(self) -> int:
        """How many there are."""
        return sum(plan.tasks for plan in self.arrays.values())

    @property
    def peak(self) -> int:
        """The most bytes that a task holds."""
        return max((plan.peak for plan in self.arrays.values()), default=0)

    @property
    def fingerprint(self) -> str:
        """What tells this plan from all others."""
        plans = [(path, plan.fingerprint) for path, plan in self.arrays.items()]
        return sha256(
            repr((sorted(self.groups), plans)).encode(errors="surrogateescape")
        ).hexdigest()

    def execute(
        self,
        scheduler: Any = None,
        *,
        progress: bool | TextIO = True,
        restart: bool = False,
    ) -> Group:
        """Do it, array by array. Each is there when it is complete.

        Parameters, errors and how a killed run goes on are those of `RechunkPlan.execute`.

        Returns
        -------
        Group
            The new group.
        """
        prefix = key_prefix(self.path)
        with rewrite_lock(self.store, self.path), self.store.batch():
            journal = journal_of(self.store, prefix, self.fingerprint)
            where = node_location(self.store, self.path)
            again = resumes(journal, where, restart=restart)
            self._check_workers(scheduler)
            if not again:
                self._begin()
                journal.store()
            for number, plan in enumerate(self.arrays.values()):
                there = has_document(plain(plan.view), plan.path)
                if number not in journal.done(0) or not there:
                    plan.run(
                        scheduler,
                        progress=progress,
                        restart=not again,
                        finished=partial(_note, journal, number),
                    )
            if self.consolidated:
                write_consolidated(self.store, self.path, self.groups[""].zarr_format)
            clear(beside(self.store, prefix))
        return open_group(self.store, self.path, mode="r+", consolidated=False)

    def _check_workers(self, scheduler: Any) -> None:
        plans = [plan for plan in self.arrays.values() if plan.scheme.exchange is not None]
        if plans:
            with workers(scheduler) as on:
                for plan in plans:
                    plan.check_workers(on)

    def _begin(self) -> None:
        """Make the groups."""
        clear(beside(self.store, key_prefix(self.path)))
        for below, metadata in self.groups.items():
            path = join_path(self.path, below)
            if self.overwrite or not has_document(plain(self.store), path):
                create_node(self.store, path, metadata, overwrite=self.overwrite)

    def __str__(self) -> str:
        parts = [f"{path}\n{_indented(str(plan))}" for path, plan in self.arrays.items()]
        return "\n".join(
            [f"{counted(len(self.groups), 'group')}, {counted(len(self), 'array')}", *parts]
        )

    def __repr__(self) -> str:
        return f"<zarrdask.GroupPlan {counted(len(self), 'array')}, {counted(self.tasks, 'task')}>"

    def _repr_html_(self) -> str:
        return "".join(
            f"<details><summary>{escape(path)}: {escape(repr(plan))}</summary>"
            f"{plan._repr_html_()}</details>"
            for path, plan in self.arrays.items()
        )


def _note(journal: Journal, number: int) -> None:
    journal.add(0, number)
    journal.store()


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
