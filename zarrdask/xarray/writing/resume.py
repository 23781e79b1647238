"""The plan of a write of a dataset, and how one that was interrupted is resumed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dask import base

from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import ZarrdaskError
from zarrdask.parallel.graph.writing.resume import complete_targets, has_all_values, resumable
from zarrdask.parallel.graph.writing.target import Resume
from zarrdask.xarray.values import Targets, write_targets
from zarrdask.xarray.writing.destination import Destination
from zarrdask.xarray.writing.existing import StoredDataset
from zarrdask.xarray.writing.plan import GroupWrite, plan_group
from zarrdask.xarray.writing.request import Content


class WritePlan(NamedTuple):
    """The parts of a write of a dataset."""

    writes: Sequence[GroupWrite]
    #: Where the values of all variables go.
    targets: Targets
    #: The location beside the group where it is written completely, if it is.
    stage: NodePath | None
    #: Whether there is a node that is replaced.
    replaces: bool
    #: Whether all is written already, so that it is only compared with what is there.
    is_complete: bool = False

    @property
    def source(self) -> str:
        """An identifier of what is written beside the Dask arrays: values in memory, attributes."""
        values = [each.data for each, _ in self.targets if not each.is_dask]
        groups = [(each.node.path, each.metadata.attributes) for each in self.writes]
        token: str = base.tokenize(values, groups)
        return token


def plan_write(
    to: Destination, contents: Mapping[str, Content], stored: Mapping[str, StoredDataset | None]
) -> WritePlan:
    """Plan a write, given what is stored in each group; nothing is changed."""
    replaces = to.is_replaced(stored[""])
    settings = to.settings(stored[""])
    stage = to.stage() if replaces else None
    root = stage or to.view(stored[""])
    writes = [
        plan_group(
            content.dataset, root.join(path), stored[path], settings, content.encoding, to.lease
        )
        for path, content in contents.items()
    ]
    return WritePlan(writes, write_targets(writes), stage, replaces)


def find_complete(to: Destination, contents: Mapping[str, Content]) -> WritePlan | None:
    """Return the plan of an earlier run of this write that has stored all values, if there is one.

    It was killed while it made them part of the dataset: it is planned as if it had not begun to.
    """
    options = to.options
    stored: dict[str, StoredDataset | None] = dict.fromkeys(contents)
    if options.resume == "restart" or options.region is not None or options.mode == "r+":
        return None
    if options.append_dim is None:
        to = replace(to, options=replace(options, mode="w"))
    else:
        dataset = contents[""].dataset
        current = to.stored("")
        added = dataset.sizes.get(options.append_dim, 0)
        before = None if current is None else current.before_append(options.append_dim, added)
        if before is None:
            return None
        stored[""] = before
    try:
        plan = plan_write(to, contents, stored)
    except ZarrdaskError:
        return None  # the write does not fit what was there
    writes = [(variable.data, target) for variable, target in plan.targets if variable.is_dask]
    return plan if writes and has_all_values(writes, plan.source) else None


def find_written(to: Destination, contents: Mapping[str, Content]) -> WritePlan | None:
    """Return the plan that compares a dataset with a stored one, if the same call has written that.

    It has if all documents equal the documents that the call writes.
    """
    if to.options.resume == "restart" or to.options.mode != "w-":
        return None
    to = replace(to, options=replace(to.options, mode="w"))
    plan = plan_write(to, contents, dict.fromkeys(contents))
    nodes = [(each.node, each.metadata) for each in plan.writes]
    arrays = [(each.array.node_path, each.array.metadata) for each, _ in plan.targets]
    writes = [(each.data if each.is_dask else None, to) for each, to in plan.targets]
    complete = complete_targets(writes, [*nodes, *arrays], plan.source)
    if complete is None:
        return None
    targets = [(each, to) for (each, _), to in zip(plan.targets, complete, strict=True)]
    return plan._replace(targets=targets, replaces=False, is_complete=True)


def resumed(
    plan: WritePlan, changes: Sequence[Change], resume: Resume
) -> tuple[Targets, list[Change]]:
    """Return the targets of a write that can be resumed, with records of their blocks.

    Without Dask arrays there is nothing to record.
    """
    dask = [(variable.data, target) for variable, target in plan.targets if variable.is_dask]
    if not dask:
        return plan.targets, [*changes]
    recorded = resumable(dask, resume, changes, plan.source)
    recorded_targets = iter(target for _, target in recorded)
    targets = [
        (each, next(recorded_targets) if each.is_dask else target) for each, target in plan.targets
    ]
    return targets, [to.change for _, to in recorded if to.change is not None]
