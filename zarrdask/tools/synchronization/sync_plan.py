"""Plan a synchronization: what to copy, to replace and to erase, and in which order."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import ancestors, key_prefix
from zarrdask.errors import NodeExistsError
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.runtime.scratch import Scratch
from zarrdask.tools.synchronization.contents import By, Digests, differing_keys
from zarrdask.tools.synchronization.node_documents import (
    Difference,
    NodeDocuments,
    document_names,
    keys_of_node,
    node_of,
)
from zarrdask.tools.synchronization.object_transfer import read_objects
from zarrdask.tools.verification.object_listing import Listing

#: A claim of more nodes is one of everything in the target.
_MAX_CLAIMED = 1000
#: The key of a chunk or shard below its array; and in a hierarchy of the draft.
_CHUNK_KEY = re.compile(r"c|(c[./])?\d+([./]\d+)*(\.\w+)?")
_DRAFT_KEY = re.compile(r"c|c\d+([./]\d+)*")


@dataclass
class SyncPlan:
    """The steps of a synchronization, in the order of the fields; keys are below the nodes."""

    #: The objects of the source, as they were listed.
    source: Listing
    #: The keys that are added to the target, stored in place of others, erased, and kept.
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    #: The keys of the source that have changed since it was listed: the plan is not consistent.
    changed_meanwhile: list[str] = field(default_factory=list)

    #: The paths of nodes of the target that are erased first, as the source has others there.
    erased_nodes: list[str] = field(default_factory=list)
    #: The paths of arrays that are replaced as a whole, and of arrays that get smaller.
    replaced: list[str] = field(default_factory=list)
    smaller: list[str] = field(default_factory=list)
    #: The keys of chunks (and of all else that is no document) to copy.
    chunks: list[str] = field(default_factory=list)
    #: By array, the keys of the target to erase that are chunks which the source lacks.
    missing_chunks: dict[str, list[str]] = field(default_factory=dict)
    #: The documents to store, in their order; and by node, the documents to erase, which the source
    #: lacks.
    documents: dict[str, bytes] = field(default_factory=dict)
    stale_documents: dict[str, list[str]] = field(default_factory=dict)
    #: The paths of nodes, and the keys, to erase in the end.
    removed_nodes: list[str] = field(default_factory=list)
    removed_keys: list[str] = field(default_factory=list)

    #: The paths of arrays of the target that stay, but change in part.
    arrays: set[str] = field(default_factory=set)
    #: The documents in the target of nodes that change; None for documents that it lacks.
    expected: dict[str, bytes | None] = field(default_factory=dict)
    #: The paths of the nodes that no other writer may create during the run; empty stands for all.
    claimed_members: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether the target is equal to the source already."""
        return not (self.added or self.changed or self.removed or self.documents)

    def below(self, path: str) -> list[str]:
        """Return the keys of the source at and below a node."""
        return [key for key in self.source if key.startswith(key_prefix(path))]

    def documents_of(self, path: str) -> list[str]:
        """Return the keys of the documents to store of a node."""
        return [key for key in keys_of_node(path) if key in self.documents]

    def steps(self) -> list[tuple[str, list[str]]]:
        """Return the nodes whose documents or chunks are stored or erased at the end.

        Each has the keys of the documents to store; documents of smaller arrays are stored already.
        """
        keys = [key for key in self.documents if node_of(key) not in self.smaller]
        steps = [(path, [*group]) for path, group in groupby(keys, node_of)]
        others = {*self.missing_chunks, *self.stale_documents} - {path for path, _ in steps}
        return [(path, []) for path in sorted(others)] + steps

    @property
    def has_consolidated(self) -> bool:
        """Whether the documents to store have consolidated metadata of the root."""
        root = self.documents.get("zarr.json", b"")
        return consolidated.KEY in self.source or consolidated.MEMBER.encode() in root


def plan_sync(
    source: NodePath,
    target: NodePath,
    listings: tuple[Listing, Listing],
    digests: tuple[Digests, Digests],
    by: By,
    *,
    delete: bool,
    dry_run: bool,
) -> SyncPlan:
    """Return the plan that makes the target equal to the source.

    Raises
    ------
    NodeExistsError
        If the target has a group where the source has an array, or an array where it has a group,
        and `delete` is not set; or if the target has a hierarchy of the draft where the source has
        a node.
    """
    ours, theirs = listings
    nodes, nodes_before = _nodes(ours), _nodes(theirs)
    common = [key for key in ours if key in theirs]
    # The size says nothing about a document, nor about chunks that an interrupted run has left.
    weak = [
        k for k in common if by == "sizes" and _is_chunk(k) and _owner(k, nodes_before) in nodes
    ]
    strong = sorted({*common} - {*weak}) if weak else common
    options = source, target, listings, digests
    stronger: By = "versions" if by == "sizes" else by
    differing = differing_keys(*options, strong, stronger, keep_times=not dry_run)
    if weak:
        differing |= differing_keys(*options, weak, by, keep_times=False)
    plan = SyncPlan(ours)
    alone = [key for key in theirs if key not in ours]
    stale = [k for k in alone if not _is_chunk(k) and node_of(k) in nodes]
    _compare_documents(plan, source, target, theirs, differing, stale, delete=delete)
    gone = [key_prefix(path) for path in (*plan.replaced, *plan.erased_nodes)]

    def is_gone(key: str) -> bool:
        return any(key.startswith(prefix) for prefix in gone)

    def is_gone_node(path: str) -> bool:
        return is_gone(f"{path}/" if path else "")

    plan.added = [key for key in ours if key not in theirs]
    plan.changed = [key for key in common if key in differing or is_gone(key)]
    whole = [key_prefix(path) for path in plan.replaced]
    plan.chunks = [
        key
        for key in sorted((*plan.added, *plan.changed))
        if _is_chunk(key) and not any(key.startswith(prefix) for prefix in whole)
    ]
    plan.stale_documents = _by_node(key for key in stale if not is_gone(key))
    rest = [k for k in alone if not is_gone(k) and (_is_chunk(k) or node_of(k) not in nodes)]
    plan.missing_chunks = _missing_chunks(plan, source, nodes, filter(_is_chunk, rest))
    rest = sorted({*rest}.difference(*plan.missing_chunks.values()))
    if delete:
        _remove(plan, rest, nodes_before - nodes)
    else:
        plan.kept = rest
    plan.removed = sorted({*alone} - {*plan.kept})
    owners = {owner for key in plan.chunks if (owner := _owner(key, nodes)) is not None}
    owners |= plan.missing_chunks.keys()
    _check_arrays(plan, source, theirs, owners)
    changed = {*owners, *map(node_of, plan.documents), *plan.stale_documents, *plan.replaced}
    plan.arrays = {
        path for path in {*owners, *plan.arrays} & nodes_before if not is_gone_node(path)
    }
    # A group that stays is not claimed as a whole: others may create nodes in it.
    if (
        nodes_before
        and "" not in (*plan.replaced, *plan.erased_nodes)
        and len(changed) < _MAX_CLAIMED
    ):
        plan.claimed_members = frozenset(changed - {""})
    return plan


def _by_node(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the keys of documents by the paths of their nodes."""
    return {path: [*group] for path, group in groupby(sorted(keys, key=node_of), node_of)}


def _nodes(listing: Iterable[str]) -> set[str]:
    """Return the paths of the nodes that have documents."""
    return {node_of(key) for key in listing if not _is_chunk(key)}


def _is_chunk(key: str) -> bool:
    return key.rpartition("/")[2] not in document_names()


def _owner(key: str, nodes: set[str]) -> str | None:
    """Return the path of the deepest node that a key is below."""
    return next((path for path in reversed(ancestors(key)) if path in nodes), None)


def _compare_documents(
    plan: SyncPlan,
    source: NodePath,
    target: NodePath,
    theirs: Listing,
    differing: set[str],
    stale: Sequence[str],
    *,
    delete: bool,
) -> None:
    """Find what the documents that differ mean for the chunks, and the order of the documents."""
    new = [key for key in plan.source if not _is_chunk(key)]
    touched = {node_of(key) for key in new if key not in theirs or key in differing}
    touched |= {node_of(key) for key in stale}
    arrays = set[str]()
    values, before = _read_documents(plan, source, target, theirs, touched)
    for path in sorted(touched):
        one, other = _parsed(path, values), _parsed(path, before)
        if other.is_entry_point:
            raise NodeExistsError(
                "the target has a hierarchy of the draft of Zarr v3, and the source a node of "
                "another format; convert nodes with zarrdask.copy, or choose another target",
                key=target.join(path).location,
            )
        if one.is_array:
            arrays.add(path)
        if (one.is_array and other.is_group) or (one.is_group and other.is_array):
            if not delete:
                raise NodeExistsError(
                    "an array is stored where the source has a group, or the other way round; "
                    "delete=True removes it",
                    key=target.join(path).location,
                    found="a group" if other.is_group else "an array",
                    expected="a group" if one.is_group else "an array",
                )
            plan.erased_nodes.append(path)
        elif one.is_array and other.is_array:
            difference = one.difference(other)
            if difference is Difference.REPLACED:
                plan.replaced.append(path)
            elif difference is Difference.SMALLER:
                plan.smaller.append(path)
    ranks = {path: 0 if path in arrays else 1 for path in touched}
    changing = (*plan.replaced, *plan.smaller, *plan.erased_nodes)
    # Consolidated metadata above these is removed while they change.
    above = {path for each in changing for path in ancestors(each)} - touched
    more, changed = read_objects(
        source, plan.source, [k for p in above for k in keys_of_node(p) if k in plan.source]
    )
    plan.changed_meanwhile += changed
    values |= more
    keys = [
        key
        for key in values
        if key not in theirs
        or key in differing
        or node_of(key) in above
        or node_of(key) in changing
        if node_of(key) not in plan.replaced
    ]
    plan.documents = {k: values[k] for k in sorted(keys, key=lambda key: _rank(key, ranks))}
    is_erased = {k: any(k.startswith(key_prefix(p)) for p in plan.erased_nodes) for k in keys}
    keys = [*keys, *before]
    plan.expected = {
        key: None if is_erased.get(key) else before.get(key)
        for key in keys
        if key not in theirs or key in before or is_erased.get(key)
    }
    plan.arrays = {path for path in touched if _parsed(path, before).is_array}


def _read_documents(
    plan: SyncPlan, source: NodePath, target: NodePath, theirs: Listing, touched: set[str]
) -> tuple[dict[str, bytes], dict[str, bytes | None]]:
    """Return the documents of some nodes in both copies."""
    keys = [key for path in sorted(touched) for key in keys_of_node(path)]
    values, changed = read_objects(source, plan.source, [k for k in keys if k in plan.source])
    plan.changed_meanwhile += changed
    keys = [key for key in keys if key in theirs]
    read = target.store.get_many([target.prefix + key for key in keys], Scratch())
    pairs = zip(keys, read, strict=True)
    return values, {key: None if value is None else bytes(value) for key, value in pairs}


def _parsed(path: str, values: dict[str, bytes] | dict[str, bytes | None]) -> NodeDocuments:
    return NodeDocuments.parse(
        {k.rpartition("/")[2]: values[k] for k in keys_of_node(path) if k in values}
    )


def _rank(key: str, ranks: dict[str, int]) -> tuple[int, int, bool, str]:
    """Return where a document is in their order: arrays, then groups from below, consolidated."""
    path, _, name = key.rpartition("/")
    rank = 2 if name == consolidated.KEY else ranks.get(path, 1)
    # Attributes of v2 come before the document that makes the node.
    return rank, -len(path.split("/")) if path else 0, name != ".zattrs", key


def _missing_chunks(
    plan: SyncPlan, source: NodePath, nodes: set[str], keys: Iterable[str]
) -> dict[str, list[str]]:
    """Return by array the keys of the target, out of some, of chunks that the source lacks.

    A missing chunk is a value, too: it reads as the fill value.
    """
    chunks = dict[str, list[str]]()
    pattern = _CHUNK_KEY if source.layout.base is None else _DRAFT_KEY
    for key in keys:
        owner = _owner(key, nodes)
        if owner is not None and pattern.fullmatch(key[len(key_prefix(owner)) :]):
            chunks.setdefault(owner, []).append(key)
    documents = [k for path in chunks for k in keys_of_node(path) if k in plan.source]
    values, changed = read_objects(source, plan.source, documents)
    plan.changed_meanwhile += changed
    return {path: own for path, own in chunks.items() if _parsed(path, values).is_array}


def _remove(plan: SyncPlan, keys: Sequence[str], nodes: set[str]) -> None:
    """Plan to remove keys, with whole nodes that the source lacks."""
    in_source = {path for key in plan.source for path in ancestors(key)}
    roots = set[str]()
    for path in sorted(nodes):
        if path not in in_source and not any(each in roots for each in ancestors(path)):
            roots.add(path)
    plan.removed_nodes = sorted(roots)
    prefixes = [key_prefix(path) for path in plan.removed_nodes]
    rest = [key for key in keys if not any(key.startswith(prefix) for prefix in prefixes)]
    plan.removed_keys = sorted(rest, key=_is_chunk)


def _check_arrays(plan: SyncPlan, source: NodePath, theirs: Listing, arrays: set[str]) -> None:
    """Check that the arrays whose chunks change are still those that were listed.

    Their documents that do not differ are noted, as they are expected in the target, too.
    """
    keys = [key for path in sorted(arrays) for key in keys_of_node(path)]
    keys = [key for key in keys if key in plan.source and key not in plan.documents]
    values, changed = read_objects(source, plan.source, keys)
    plan.changed_meanwhile += changed
    plan.expected |= {k: v for k, v in values.items() if k in theirs and k not in plan.expected}
