"""The steps of a write: plan all of it, then make the change, or return what makes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from dask import delayed

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode
from zarrdask.arrays.hierarchy.changes.transaction import Change, transaction
from zarrdask.errors import NodeExistsError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.parallel.execution.client import scheduler_in_task
from zarrdask.parallel.graph.writing.manifests import update_manifests
from zarrdask.parallel.graph.writing.target import WriteTarget
from zarrdask.parallel.graph.writing.write_job import compute, deferred
from zarrdask.storage.locks.lock_files import lock_place
from zarrdask.xarray.values import write_in_memory
from zarrdask.xarray.writing.dataset_changes import (
    ChangedDataset,
    ReplacedDataset,
    claim_later,
    creates_nodes,
)
from zarrdask.xarray.writing.destination import Destination
from zarrdask.xarray.writing.manifests import begin_manifests, manifest_updates
from zarrdask.xarray.writing.plan import GroupWrite, VariableWrite
from zarrdask.xarray.writing.request import Content
from zarrdask.xarray.writing.resume import (
    WritePlan,
    find_complete,
    find_written,
    plan_write,
    resumed,
)


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
        The shapes that stored arrays must have; an error is raised if another writer changed them.
    compute_options : mapping, optional
        Options of `dask.compute`.
    """
    to = replace(to)  # what an earlier call has seen may have changed
    to.check()
    plan = find_complete(to, contents) if to.options.resume else None
    if plan is None:
        stored = {path: to.stored(path) for path in contents}
        stored[""] = to.recovered(stored[""], contents[""].dataset)
        to.check_shapes(stored[""], expected or {})
        try:
            plan = plan_write(to, contents, stored)
        except NodeExistsError:
            plan = find_written(to, contents) if to.options.resume else None
            if plan is None:
                raise
    if not to.options.compute and (to.options.append_dim is not None or to.options.resume):
        return _write_later(to, contents, plan.writes[0])
    if plan.replaces and plan.stage is None:
        to.check_not_read(variable for variable, _ in plan.targets)
    change = _change(to, plan)
    changes = [*(target.change for _, target in plan.targets if target.change is not None), change]
    targets = plan.targets
    if plan.is_complete:
        changes = []
    elif to.options.resume:
        targets, changes = resumed(plan, changes, to.options.resume)
    # Documents that come first are complete at once: others may write regions before the result.
    is_early = isinstance(change, ChangedDataset) and not change.late
    targets = [(v, _noted(v, each, to, is_early=is_early)) for v, each in targets]
    claim = change.later if isinstance(change, ChangedDataset) else None
    if claim is not None:
        targets = [(v, _claimed(v, each, claim)) for v, each in targets]
    digests = to.options.manifests
    with transaction(changes, commits=to.options.compute):
        jobs = write_in_memory(targets, later=not to.options.compute, digests=digests)
        are_staged = plan.stage is not None
        updates = manifest_updates(to.node, targets, jobs, are_staged=are_staged) if digests else []
        if not to.options.compute:
            if is_early:
                change.commit()
                updates = begin_manifests(updates)
            return deferred(jobs, [] if is_early else [change.commit], updates)
        compute(jobs, show=to.options.progress, **(compute_options or {}))
    update_manifests(updates)
    return None


def _noted(
    variable: VariableWrite, target: WriteTarget, to: Destination, *, is_early: bool
) -> WriteTarget:
    """Return a target with a marker and digests, as far as it needs them."""
    if not variable.is_dask:
        return target.digested() if to.options.manifests else target
    is_later = is_early and variable.is_new and not to.options.compute
    return target.marked() if is_later else target


def _claimed(variable: VariableWrite, target: WriteTarget, claim: LaterClaim) -> WriteTarget:
    """Return a target with the claim that its tasks hold, if they create an array later."""
    if not (variable.is_dask and variable.is_new):
        return target
    path = variable.array.path.removeprefix(claim.node.path).lstrip("/")
    return replace(target, claim=claim.about(path))


def _change(to: Destination, plan: WritePlan) -> Change:
    """Return the change of the dataset.

    The values are in the graph: they need not be sent a second time.
    """
    writes, stage, replaces = plan.writes, plan.stage, plan.replaces
    root = to.root if _consolidates(to, writes) else None
    bare = [write.without_values() for write in writes]
    if stage is not None:
        replaced = ReplacedNode(to.node, writes[0].metadata, stage)
        return ReplacedDataset(replaced, to.node, bare, root)
    late, overwrites = _commits_last(to, writes), to.options.mode == "w"
    seen = to.seen if creates_nodes(bare) else to.node
    is_immediate = to.options.compute
    claims = [] if to.claim is None else [to.claim]
    variables = [variable for write in writes for variable in write.variables]
    later = None
    if late and not is_immediate and any(each.is_dask and each.is_new for each in variables):
        later = claim_later(to.node, bare)
    return ChangedDataset(
        to.node, seen, bare, root, late, overwrites, replaces, is_immediate, later, claims
    )


def _commits_last(to: Destination, writes: Sequence[GroupWrite]) -> bool:
    """Whether new groups and arrays get their documents after their values."""
    if to.options.commit is not None or to.options.resume:
        return to.options.commit == "last" or bool(to.options.resume)
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
# Appends, and writes that are resumed, which are computed later


def _write_later(to: Destination, contents: Mapping[str, Content], group: GroupWrite) -> Any:
    """Return one task that makes this write later, if no shape has changed by then."""
    shapes = {v.name: v.append.old_shape for v in group.appends if v.append is not None}
    to = replace(to, options=replace(to.options, compute=True))
    task = partial(_write_in_task, to, contents, shapes, lock_place(), Casting.chosen())
    later = delayed(task, pure=False, traverse=False)
    verb = "to-zarr" if to.options.append_dim is None else "append-zarr"
    return later(dask_key_name=f"{verb}-{uuid4().hex}")


def _write_in_task(
    to: Destination,
    contents: Mapping[str, Content],
    expected: Mapping[str, Shape],
    locked_at: str,
    casting: Casting,
) -> None:
    """Write: a task, which does all of it under the locks.

    If it appends, the stored arrays must have the shapes that they had when the append was asked
    for: so it is done once, and no other append is lost.
    """
    alone = to.alone(contents[""].dataset, locked_at)
    with casting.requested(), alone as own, scheduler_in_task() as options:
        write(own, contents, expected=expected, compute_options=options)
