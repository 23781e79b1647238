"""Carry out the plan of a synchronization, while other writers may change the target.

A claim excludes other synchronizations, and writers that create the same nodes. Writers of existing
arrays are not kept waiting while chunks are copied. Instead, before documents are stored, it is
checked that the target still has those for which the plan was made. If another writer has changed
them, the plan is of no use any more, and a new one is made.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from zarrdask import config
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import key_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.tools.synchronization.array_replacement import replace_array
from zarrdask.tools.synchronization.node_documents import are_equal_documents, keys_of_node
from zarrdask.tools.synchronization.object_transfer import (
    copy_objects,
    erase_objects,
    store_document,
)
from zarrdask.tools.synchronization.sync_plan import SyncPlan
from zarrdask.tools.verification.object_listing import Listing, list_node


class ChangedTargetError(Exception):
    """Another writer has changed documents of the target: their keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = [*keys]
        super().__init__(*self.keys)


def list_settled(target: NodePath) -> Listing:
    """List the target of a synchronization, once appends to its arrays have ended."""
    listing = list_node(target)
    lease = target.at("").lease_key()
    appended = [key.removesuffix(lease).rstrip("/") for key in listing.own if key.endswith(lease)]
    for path in sorted(appended):
        with target.join(path).exclusive("shape"):
            pass  # A lease that a killed writer has left is erased, too.
    return list_node(target) if appended else listing


def execute(
    plan: SyncPlan, source: NodePath, target: NodePath, copied: WrittenObjects | None = None
) -> tuple[int, list[str]]:
    """Carry out a plan; return the bytes, and the keys of the source that changed during it.

    If there are any, the plan is of no use any more; no document that follows them was stored.
    Copied objects are added to `copied`.

    Raises
    ------
    ChangedTargetError
        If another writer has changed documents of the target: the plan is of no use any more.
    NodeExistsError
        If another writer creates one of the nodes now, or synchronizes from another machine.
    """
    erased = (*plan.removed_keys, *(key for keys in plan.missing_chunks.values() for key in keys))
    target.store.check_writable(erasing=[target.prefix + key for key in erased])
    config.check()
    with target.claimed(plan.claimed_members) as claim:
        total, changed = _replace_nodes(plan, source, target, claim.renew, copied)
        if changed:
            return total, changed
        for path in plan.smaller:
            with target.join(path).changing(whole=False, is_array=True):
                total += _finish_node(plan, target, path, plan.documents_of(path), [], copied)
        size, changed = copy_objects(source, target, plan.source, plan.chunks, copied)
        total += size
        if changed:
            return total, changed
        steps = plan.steps()
        _check_settled(plan, target, sorted(plan.arrays - {path for path, _ in steps}))
        if steps or plan.removed_nodes:
            keep = target.path if plan.has_consolidated else None
            with target.changing(whole=True, keep=keep):
                for path, keys in steps:
                    missing = plan.missing_chunks.pop(path, [])
                    total += _finish_node(plan, target, path, keys, missing, copied)
                for path in plan.removed_nodes:
                    target.join(path).remove_keys()
        erase_objects(target, plan.removed_keys)
    return total, []


def _replace_nodes(
    plan: SyncPlan,
    source: NodePath,
    target: NodePath,
    erased: Callable[[], None],
    copied: WrittenObjects | None,
) -> tuple[int, list[str]]:
    """Erase nodes that the source has others for, and replace arrays, as `execute`.

    `erased` is called when the claim may have been erased with a node.
    """
    for path in plan.erased_nodes:
        target.join(path).erase()
        erased()
    total = 0
    for path in plan.replaced:
        listing = Listing(
            (k.removeprefix(key_prefix(path)), plan.source[k]) for k in plan.below(path)
        )
        below = None if copied is None else WrittenObjects(copied.algorithm)
        nodes = source.join(path), target.join(path)
        size, changed = replace_array(*nodes, listing, erased, below)
        total += size
        if changed:
            return total, [key_prefix(path) + key for key in changed]
        if copied is not None and below is not None:
            copied.add_below(key_prefix(path), below)
    return total, []


def _finish_node(
    plan: SyncPlan,
    target: NodePath,
    path: str,
    keys: Sequence[str],
    missing: Sequence[str],
    copied: WrittenObjects | None,
) -> int:
    """Erase chunks of a node that the source lacks, and store its documents; return their bytes.

    The documents of the target have not changed since the plan was made, and are locked.
    """
    node, stale = target.join(path), plan.stale_documents.get(path, [])

    def change(node: NodePath) -> None:
        root = target.via(node.store)
        _check_documents(plan, root, [path])
        erase_objects(target, missing)
        for key in keys:
            store_document(root, key, plan.documents[key], copied)
        for key in stale:
            root.store.erase(root.prefix + key)

    with node.exclusive("shape") if path in plan.arrays else nullcontext():
        node.change_documents(change)
    plan.expected.update({key: plan.documents[key] for key in keys if key in plan.expected})
    plan.expected.update(dict.fromkeys(stale))
    return sum(len(plan.documents[key]) for key in keys)


def _check_settled(plan: SyncPlan, target: NodePath, paths: Sequence[str]) -> None:
    """Check the documents of arrays whose chunks were stored, after appends that have begun."""
    store, nodes = target.store, [target.join(path) for path in paths]
    has = store.capabilities
    if has.compare_and_swap and has.shared:
        leases = store.get_many([node.lease_key() for node in nodes], Scratch())
        nodes = [node for node, held in zip(nodes, leases, strict=True) if held is not None]
    for node in nodes:
        with node.exclusive("shape"):
            pass
    _check_documents(plan, target, paths)


def _check_documents(plan: SyncPlan, target: NodePath, paths: Sequence[str]) -> None:
    """Check that nodes of the target have the documents for which the plan was made."""
    keys = [key for path in paths for key in keys_of_node(path) if key in plan.expected]
    if target.layout.base is not None:
        # A group that is only implied has a document that is stored nowhere.
        keys = [key for key in keys if plan.expected[key] is not None]
    values = target.store.get_many([target.prefix + key for key in keys], Scratch())
    changed = [
        key
        for key, value in zip(keys, values, strict=True)
        if not are_equal_documents(plan.expected[key], None if value is None else bytes(value))
    ]
    if changed:
        raise ChangedTargetError(changed)
