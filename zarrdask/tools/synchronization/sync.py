"""``sync``: make one copy of an array or a hierarchy equal to another one."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.errors import StoreError, one_of
from zarrdask.parallel.rewrite.node_plan import check_apart, find_origin, locate_target
from zarrdask.storage.resolve import options_of_each
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.tools.synchronization.contents import By
from zarrdask.tools.synchronization.sync_execution import ChangedTargetError, execute, list_settled
from zarrdask.tools.synchronization.sync_plan import SyncPlan, plan_sync
from zarrdask.tools.synchronization.sync_report import SyncReport
from zarrdask.tools.verification.kept_manifest import keep_manifest
from zarrdask.tools.verification.object_listing import list_node, listed_digests

#: How often the source is listed, if it changes while it is copied.
_MAX_ROUNDS = 4


@checks_booleans
def sync(
    source: Any,
    target: Any,
    *,
    delete: bool = False,
    by: By = "versions",
    dry_run: bool = False,
    manifest: bool | Literal["both"] = False,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
) -> SyncReport:
    """Make a copy of an array or a hierarchy equal to its source, by moving what differs.

    Chunks and shards are copied unchanged, then the documents of arrays, then of groups, and
    consolidated metadata last. If the call is interrupted, readers of the target see each array
    with metadata and chunks that belong together, and the same call resumes. An array whose codecs,
    chunks, data type or format differ is replaced, as ``overwrite=True`` does. To convert arrays,
    use `zarrdask.copy`.

    Parameters
    ----------
    source : Array, Group, str, os.PathLike, MutableMapping or Store
        The array or the group.
    target : str, os.PathLike, MutableMapping, Store or Group
        Its copy; it need not exist.
    delete : bool, default False
        Whether nodes and other files that the source lacks are removed from the target. By default
        they are kept, and the report lists them. Chunks that an array of the source lacks are
        removed in any case: they read as the fill value.
    by : {"versions", "digests", "sizes"}, default "versions"
        How objects of equal sizes are compared. "versions": by the versions in listings, that is
        the MD5 digest in S3's ETags, and the time of local files, which copies keep; where that
        does not suffice, by their bytes. "digests": by digests or bytes only. "sizes": chunks with
        equal sizes are assumed to be equal.
    dry_run : bool, default False
        Compare both and return the report, but change nothing.
    manifest : bool or "both", default False
        Whether a manifest is stored in the target, or in the source, too. Digests of copied objects
        are computed during the copy; others are taken from a stored manifest or an ETag. Later
        calls use manifests that are stored in the source and the target: objects that have not
        changed since are not read. ``zarrdask.verify(target, manifest=True)`` checks the target by
        its manifest.
    storage_options : dict, optional
        Options of fsspec for the source and the target. A local path takes none, and is exempt.
    source_options, target_options : dict, optional
        Options of fsspec for one of the two, instead of `storage_options`.

    Returns
    -------
    SyncReport
        The added, changed and removed objects, and the bytes that were copied. It prints.

    Raises
    ------
    NodeNotFoundError
        If there is no node at the source.
    NodeExistsError
        If the target lies in the source or around it; or if it has an array where the source
        has a group, or a group where that has an array, and `delete` is False; or if one of them is
        in a hierarchy of the draft of Zarr v3, and the other one in none, or in one of another
        dialect; or if another writer creates nodes there now.
    UnsupportedError
        If a store can't be listed.
    StoreError
        If a store fails, or the source keeps changing while it is copied.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=6, dtype="i4", chunks=2)
    >>> z[...] = 7
    >>> store = {}
    >>> len(zarrdask.sync(z, store).added)
    4
    >>> z[0] = 1
    >>> zarrdask.sync(z, store).changed
    ('c/0',)
    """
    one_of(by, "by", ("versions", "digests", "sizes"))
    one_of(manifest, "manifest", (False, True, "both"))
    of_source, of_target = options_of_each(
        storage_options, (source, source_options), (target, target_options)
    )
    origin = find_origin(source, of_source).node.current
    destination = locate_target(target, None, of_target)
    check_apart(origin, destination, replaces=True)
    if not dry_run:
        destination.store.check_writable()
    if origin.layout.base is not None:
        destination = destination.in_hierarchy_like(origin, create=not dry_run)
    report, all_changed = None, set[str]()
    with nullcontext() if dry_run else destination.lock("rewrite"):
        for _ in range(_MAX_ROUNDS):
            listings = (
                list_node(origin),
                list_node(destination) if dry_run else list_settled(destination),
            )
            known = listed_digests(origin, listings[0]), listed_digests(destination, listings[1])
            digests = known[0].digests, known[1].digests
            plan = plan_sync(
                origin, destination, listings, digests, by, delete=delete, dry_run=dry_run
            )
            copied = WrittenObjects(destination.store.capabilities.digest_algorithm)
            changed, size, node = plan.changed_meanwhile, 0, origin
            if not (dry_run or changed or plan.is_empty):
                try:
                    size, changed = execute(plan, origin, destination, copied if manifest else None)
                except ChangedTargetError as error:
                    changed, node = error.keys, destination
            elif (
                not dry_run
                and plan.is_empty
                and (listings[1].own or destination.layout.base is not None)
            ):
                destination.discard_dead_claim()
            report = _joined(report, _report(plan, origin, destination, size, dry_run=dry_run))
            if manifest and not dry_run and not changed:
                keys = {*plan.source, *plan.kept}
                keep_manifest(destination, known[1], listings[1], copied, keys)
                if manifest == "both":
                    known[0].digests.update(copied.digests())
                    keep_manifest(origin, known[0], listings[0], {}, plan.source)
            if dry_run or not changed:
                return replace(report, changed_meanwhile=tuple(sorted(all_changed)))
            all_changed |= {*changed}
    raise StoreError(
        f"the {'source' if node is origin else 'target'} keeps changing while it is synchronized; "
        "repeat that when its writers have finished",
        key=f"{node.location}/{changed[-1]}",
    )


def _report(
    plan: SyncPlan, origin: NodePath, destination: NodePath, size: int, *, dry_run: bool
) -> SyncReport:
    if dry_run:
        size = sum(plan.source[key].size for key in (*plan.added, *plan.changed))
    return SyncReport(
        origin.location,
        destination.location,
        added=tuple(plan.added),
        changed=tuple(plan.changed),
        removed=tuple(plan.removed),
        kept=tuple(plan.kept),
        replaced=tuple(plan.replaced),
        bytes=size,
        dry_run=dry_run,
    )


def _joined(before: SyncReport | None, report: SyncReport) -> SyncReport:
    """Return the report of several rounds: a key that an earlier round added was not changed."""
    if before is None:
        return report
    added = {*before.added, *report.added}
    return replace(
        report,
        added=tuple(sorted(added)),
        changed=tuple(sorted({*before.changed, *report.changed} - added)),
        removed=tuple(sorted({*before.removed, *report.removed})),
        replaced=tuple(sorted({*before.replaced, *report.replaced})),
        bytes=before.bytes + report.bytes,
    )
