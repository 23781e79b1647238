"""The steps of a write: plan all of it, then make the change, or return what makes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from dask import delayed

from zarrdask.execution.client import scheduler_in_task
from zarrdask.graph.write_job import compute, deferred
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.replace import ReplacedNode
from zarrdask.hierarchy.transaction import Change, transaction
from zarrdask.xarray.changes import ChangedDataset, ReplacedDataset, creates_nodes
from zarrdask.xarray.destination import Destination
from zarrdask.xarray.plan import GroupWrite, plan_group
from zarrdask.xarray.request import Content
from zarrdask.xarray.values import write_in_memory, write_targets


def write(
    to: Destination,
    contents: Mapping[str, Content],
    *,
    expected: Mapping[str, Shape] | None = None,
    compute_options: Mapping[str, Any] | None = None,
) -> Any:
    """Plan a write, then do it, or return what does it. If planning fails, nothing is changed.

    Parameters
    ----------
    to : Destination
        The group that is written.
    contents : mapping of str to Content
        What is written, by the path of the group from that one, parents first.
    expected : mapping, optional
        The shapes that stored arrays must have; it is an error if others changed them.
    compute_options : mapping, optional
        Options of `dask.compute`.
    """
    to = replace(to)  # what an earlier call has seen may have changed
    to.check()
    stored = {path: to.stored(path) for path in contents}
    stored[""] = to.recovered(stored[""], contents[""].dataset)
    to.check_shapes(stored[""], expected or {})
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
    if to.options.append_dim is not None and not to.options.compute:
        return _append_later(to, contents, writes[0])
    targets = write_targets(writes)
    if replaces and stage is None:
        to.check_not_read(variable for variable, _ in targets)
    change = _change(to, writes, stage, replaces=replaces)
    changes = [*(target.change for _, target in targets if target.change is not None), change]
    with transaction(changes, commits=to.options.compute):
        jobs = write_in_memory(targets, later=not to.options.compute)
        if to.options.compute:
            compute(jobs, show=to.options.progress, **(compute_options or {}))
            return None
        # Documents that come first are complete now: others may write regions before the result.
        if is_early := isinstance(change, ChangedDataset) and not change.late:
            change.commit()
        return deferred(jobs, [] if is_early else [change.commit])


def _change(
    to: Destination, writes: Sequence[GroupWrite], stage: NodePath | None, *, replaces: bool
) -> Change:
    """Return the change of the dataset; `stage` is the location beside the group, if there is one.

    The values are in the graph: they need not be sent a second time.
    """
    root = to.root if _consolidates(to, writes) else None
    bare = [write.without_values() for write in writes]
    if stage is not None:
        replaced = ReplacedNode(to.node, writes[0].metadata, stage)
        return ReplacedDataset(replaced, to.node, bare, root)
    late, overwrites = _commits_last(to, writes), to.options.mode == "w"
    seen = to.seen if creates_nodes(bare) else to.node
    return ChangedDataset(to.node, seen, bare, root, late, overwrites, replaces)


def _commits_last(to: Destination, writes: Sequence[GroupWrite]) -> bool:
    """Whether new groups and arrays get their documents after their values."""
    if to.options.commit is not None:
        return to.options.commit == "last"
    first = writes[0]
    return to.options.compute and not (
        first.node.store.capabilities.bounded or first.metadata.format.has_entry_point
    )


def _consolidates(to: Destination, writes: Sequence[GroupWrite]) -> bool:
    """Whether consolidated metadata is written."""
    options, form = to.options, writes[0].metadata.format
    if options.mode == "r+" or options.consolidated is False or form.consolidated_key is None:
        return False
    if options.region is None or options.consolidated:
        return True
    # Regions may be written by many processes: none of them changes the documents.
    return any(group.changes_metadata for group in writes)


# --------------------------------------------------------------------------------------------
# Appends that are computed later


def _append_later(to: Destination, contents: Mapping[str, Content], group: GroupWrite) -> Any:
    """Return one task that appends as it would be done now, if nobody has done so before."""
    shapes = {v.name: v.append.old_shape for v in group.appends if v.append is not None}
    to = replace(to, options=replace(to.options, compute=True))
    later = delayed(partial(_append, to, contents, shapes), pure=False, traverse=False)
    return later(dask_key_name=f"append-zarr-{uuid4().hex}")


def _append(
    to: Destination, contents: Mapping[str, Content], expected: Mapping[str, Shape]
) -> None:
    """Append: a task, which does all of it under the locks.

    The stored arrays must have the shapes that they had when the append was asked for: so it is
    done once, and no other append is lost.
    """
    with to.alone(contents[""].dataset) as own, scheduler_in_task() as options:
        write(own, contents, expected=expected, compute_options=options)
