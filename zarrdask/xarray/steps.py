"""The steps of a write: plan all of it, make the documents, write the values, complete it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from dask import delayed

from zarrdask.execution.client import scheduler_in_task
from zarrdask.graph.write_job import compute as compute_jobs
from zarrdask.graph.write_job import deferred
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.replace import Stage
from zarrdask.storage.unchanged import Lease
from zarrdask.xarray import execution
from zarrdask.xarray.creation import NewNodes
from zarrdask.xarray.destination import Destination
from zarrdask.xarray.plan import GroupWrite, plan_group
from zarrdask.xarray.request import Content


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
    root = NodePath(stage.inner, "") if stage else to.view(stored[""])
    writes = [
        plan_group(content.dataset, root.join(path), stored[path], settings, content.encoding)
        for path, content in contents.items()
    ]
    if to.options.append_dim is not None and not to.options.compute:
        return _append_later(to, contents, writes[0])
    targets = execution.write_targets(writes, to.lease)
    if stage is not None:
        return _replace(to, stage, writes, targets)
    if replaces:
        to.check_not_read(variable for variable, _ in targets)
    return _write(to, writes, targets, compute_options or {}, replaces=replaces)


def _write(
    to: Destination,
    writes: Sequence[GroupWrite],
    targets: execution.Targets,
    compute_options: Mapping[str, Any],
    *,
    replaces: bool,
) -> Any:
    """Write to the group itself."""
    options, overwrites = to.options, to.options.mode == "w"
    late = _commits_last(to, writes)
    root = to.root if _consolidates(to, writes) else None
    completions = _completions(writes, root=root, lease=to.lease)
    new = NewNodes.of(writes, to.node, root)
    try:
        if new and late:
            if replaces:
                to.node.erase()
            new.clear(to.node if replaces else to.seen, "always" if overwrites else "same")
            completions.insert(0, new.create_late)
        elif new:
            new.create(to.seen, overwrite=overwrites)
        if writes[0].node.store.capabilities.bounded:
            execution.grow_arrays(writes[0], root, to.lease)
        jobs = execution.write_in_memory(targets)
        if not options.compute:
            if not late:
                _call(completions)
            return deferred(jobs, completions if late else ())
        compute_jobs(jobs, show=options.progress, **compute_options)
        _call(completions)
    except BaseException as error:
        error.add_note(f"{to.node.location}: {execution.roll_back(targets, new, late=late)}")
        raise
    return None


def _commits_last(to: Destination, writes: Sequence[GroupWrite]) -> bool:
    """Whether new groups and arrays get their documents after their values."""
    if to.options.commit is not None:
        return to.options.commit == "last"
    first = writes[0]
    return to.options.compute and not (
        first.node.store.capabilities.bounded or first.metadata.format.has_entry_point
    )


def _replace(
    to: Destination, stage: Stage, writes: Sequence[GroupWrite], targets: execution.Targets
) -> Any:
    """Write all of it beside the group that it replaces, which stays until then."""
    new, first = NewNodes.of(writes, writes[0].node, None), writes[0].metadata
    is_root, consolidates = to.node.path == to.root, _consolidates(to, writes)
    stage.begin(first.render())
    try:
        new.node.create_members(new.members)
        jobs = execution.write_in_memory(targets)
        _call(_completions(writes, root="" if is_root and consolidates else None))
        stage.seal()
        finish: list[Callable[[], object]] = [stage.finish]
        if consolidates and not is_root:
            finish.append(partial(execution.consolidate, to.node, to.root, first.zarr_format))
        if not to.options.compute:
            return deferred(jobs, finish)
        compute_jobs(jobs, show=to.options.progress)
        _call(finish)
    except BaseException as error:
        stage.give_up()
        error.add_note(f"{to.node.location}: what was here before is unchanged")
        raise
    return None


def _completions(
    writes: Sequence[GroupWrite], *, root: str | None, lease: Lease | None = None
) -> list[Callable[[], None]]:
    """Return what is done when all values are written: the first group comes last.

    `root` is the path of the group that gets consolidated metadata; None if there are none. `lease`
    is that of an append, if it has one.
    """
    # The values are in the graph: they need not be sent a second time.
    first, *others = (write.without_values() for write in writes)
    nodes = [each.node.path for each in others]
    nodes += [variable.array.path for each in writes for variable in each.variables]
    return [
        *(partial(execution.complete, each, None) for each in others[::-1]),
        partial(execution.complete, first, root, nodes, lease),
    ]


def _consolidates(to: Destination, writes: Sequence[GroupWrite]) -> bool:
    """Whether consolidated metadata are written."""
    options, form = to.options, writes[0].metadata.format
    if options.mode == "r+" or options.consolidated is False or form.consolidated_key is None:
        return False
    if options.region is None or options.consolidated:
        return True
    # Regions may be written by many processes: none of them changes the documents.
    return any(group.changes_metadata for group in writes)


def _call(actions: Sequence[Callable[[], object]]) -> None:
    for action in actions:
        action()


# --------------------------------------------------------------------------------------------
# Appends that are computed later


def _append_later(to: Destination, contents: Mapping[str, Content], group: GroupWrite) -> Any:
    """Return one task that appends as it would be done now, if nobody has done so before."""
    shapes = {v.name: v.old_shape for v in group.appends if v.old_shape is not None}
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
