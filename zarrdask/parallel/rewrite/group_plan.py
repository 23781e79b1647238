"""The plan to rewrite all arrays of a group, one after another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, digest
from zarrdask.arrays.hierarchy.changes.recorded import check_begun
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.display.html import as_html, fold
from zarrdask.display.report import Report
from zarrdask.display.words import counted
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.formats.metadata.convert import convert_group
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.parallel.execution.executor import workers
from zarrdask.parallel.rewrite.array_plan import RechunkPlan
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.parallel.rewrite.node_plan import Origin, check_apart, plan_nodes
from zarrdask.parallel.rewrite.planning import RechunkOptions, plan_target
from zarrdask.parallel.rewrite.pyramid_records import copy_pyramid_records
from zarrdask.parallel.rewrite.rewrite_changes import rewriting
from zarrdask.runtime.progress import Show
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_on_each


@dataclass(frozen=True, eq=False, repr=False)
class GroupPlan(Report):
    """How the arrays of a group are rewritten. `zarrdask.rechunk` returns it.

    It is a mapping: ``plan["path/of/array"]`` is the `RechunkPlan` of one array.

    Attributes
    ----------
    groups : mapping of str to GroupMetadata
        The metadata of the new groups by path: "" is the root.
    arrays : mapping of str to RechunkPlan
        The plan of each array by path.
    store : Store
        The store of the new group.
    path : str
        The path of the new group in the store.
    overwrite : bool
        Whether nodes at the target are removed when the plan is executed.
    consolidated : bool
        Whether consolidated metadata is written for the new group.
    source : NodePath, optional
        The group that is read; None for the variables of a dataset.
    """

    _instead = "plan.execute() runs the plan"

    groups: Mapping[str, GroupMetadata]
    arrays: Mapping[str, RechunkPlan]
    store: Store
    path: str
    overwrite: bool
    consolidated: bool
    source: NodePath | None = None

    def __getitem__(self, path: str) -> RechunkPlan:
        return self.arrays[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(plan.tasks for plan in self.arrays.values())

    @property
    def peak(self) -> int:
        """The most bytes that a process holds."""
        return max((plan.peak for plan in self.arrays.values()), default=0)

    @property
    def fingerprint(self) -> Fingerprint:
        """The values that identify this plan among all others, by their names."""
        fingerprints = [plan.fingerprint for plan in self.arrays.values()]
        names = {name: None for each in fingerprints for name in each}
        parts = {name: digest([each[name] for each in fingerprints]) for name in names}
        return {"nodes": digest(sorted(self.groups), [*self.arrays]), **parts}

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can represent: sizes are numbers of bytes."""
        return {
            "target": NodePath(self.store, self.path).location,
            "groups": list(self.groups),
            "tasks": self.tasks,
            "peak_memory": self.peak,
            "arrays": {path: plan.to_dict() for path, plan in self.arrays.items()},
        }

    @checks_booleans
    def execute(
        self,
        scheduler: Any = None,
        *,
        progress: Show = True,
        restart: bool = False,
    ) -> Group:
        """Rewrite the arrays one after another. Readers see each array when it is complete.

        A run that was interrupted is resumed as by `RechunkPlan.execute`; the parameters and the
        errors are the same, too.

        Returns
        -------
        Group
            The new group.
        """
        arrays = {path: plan.target.metadata for path, plan in self.arrays.items()}
        node = NodePath(self.store, self.path)
        with workers(scheduler) as on:
            for plan in self.arrays.values():
                plan.check(on)
            if plans := list(self.arrays.values()):
                request_on_each(plans[0].source.store, RechunkPlan.check_source, plans)
            with rewriting(
                node,
                {**self.groups, **arrays},
                self.fingerprint,
                overwrite=self.overwrite,
                restart=restart,
            ) as rewrite:
                first = 0
                for path, plan in self.arrays.items():
                    target = plan.target
                    with target.node.lock("rewrite"):
                        if not rewrite.has_written(path, target):
                            plan.run(rewrite, path, first, on, progress)
                    first += plan.stages
                rewrite.write_documents()
                if self.source is not None:
                    copied = {
                        path: (chunks_of(plan.source), plan.target.chunks)
                        for path, plan in self.arrays.items()
                    }
                    copy_pyramid_records(self.source, node, copied)
                if self.consolidated:
                    node.consolidate(self.groups[""].zarr_format)
        return open_group(*node, mode="r+", consolidated=False)

    def _text(self) -> str:
        counts = f"{counted(len(self.groups), 'group')}, {counted(len(self), 'array')}"
        arrays = [f"{path}\n{indent(str(plan), '    ')}" for path, plan in self.arrays.items()]
        return "\n".join([counts, *arrays])

    def summary(self) -> str:
        """Return one line: the numbers of arrays and tasks."""
        return f"{counted(len(self), 'array')}, {counted(self.tasks, 'task')}"

    def _repr_html_(self) -> str:
        return "".join(
            fold(as_html(f"{path}: {plan!r}"), plan._repr_html_())
            for path, plan in self.arrays.items()
        )


def plan_group(group: Group, target_node: NodePath, options: RechunkOptions) -> GroupPlan:
    """Return the plan to write all arrays of a group to a new group."""
    check_apart(group.node_path, target_node, replaces=True)
    root = convert_group(group.metadata, options.changes.get("zarr_format"))
    begun, view = check_begun(target_node, root, overwrite=options.overwrite)

    def convert_array(below: str, before: ArrayMetadata) -> ArrayMetadata:
        return options.of_member(below, before).converted(before)

    has_consolidated = group.node_path.find(consolidated="own")[0].is_cached
    origin = Origin(group.node_path, group.metadata, has_consolidated)
    nodes, _ = plan_nodes(origin, convert_array, root.zarr_format)
    options.check_members({node.path: node.before for node in nodes if node.is_array})  # type: ignore[misc]
    if not (options.overwrite or begun):
        # Otherwise everything below the target is removed, or checked when the plan is executed.
        view.check_members({node.path: node.after for node in nodes if node.is_array})
    groups, plans = dict[str, GroupMetadata](), dict[str, RechunkPlan]()
    for node in nodes:
        if not isinstance(node.after, ArrayMetadata):
            groups[node.path] = node.after
            continue
        array = Array(group.node_path.join(node.path), node.before)  # type: ignore[arg-type]
        target = Destination.new(target_node.join(node.path), view.join(node.path), node.after)
        plans[node.path] = plan_target(array, whole_region(array.shape), target, options)
    consolidated = has_consolidated and root.format.consolidated_key is not None
    source = group.node_path
    return GroupPlan(groups, plans, *target_node, options.overwrite, consolidated, source)
