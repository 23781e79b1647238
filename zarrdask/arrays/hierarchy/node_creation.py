"""Create nodes: check that it is possible, then write the documents in a safe order."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from types import MappingProxyType
from typing import Literal, TypeVar

from zarrdask import config
from zarrdask.arrays.chunks.stored_keys import erase_leftovers
from zarrdask.arrays.hierarchy import draft
from zarrdask.arrays.hierarchy.changes.change import changing
from zarrdask.arrays.hierarchy.changes.journal import erase_beside, is_begun, record_key
from zarrdask.arrays.hierarchy.changes.marker import put_marked
from zarrdask.arrays.hierarchy.changes.removal import disown_unfinished, remove_keys
from zarrdask.arrays.hierarchy.claim import (
    await_claims,
    can_claim,
    check_unclaimed,
    claim_keys,
    claimed,
    claimed_error,
    discard_dead_claim,
    live_claim,
)
from zarrdask.arrays.hierarchy.diagnose import (
    DOCUMENTS_ABOVE,
    below_array_error,
    check_around,
)
from zarrdask.arrays.hierarchy.find import node_exists, node_of, read_documents
from zarrdask.arrays.hierarchy.format_above import check_visible_in
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, ancestors, exists_error
from zarrdask.errors import NodeExistsError
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh, prefetch
from zarrdask.storage.concurrent_requests import request_on_each

T = TypeVar("T")
#: Which nodes a new one may replace: none, those with the same documents, or any.
Replace = Literal["never", "same", "always"]


def is_in_draft(node: StorePath, metadata: Metadata) -> bool:
    """Whether a new node belongs to a hierarchy of the v3 draft."""
    return node.layout.base is not None or metadata.format.has_entry_point


def check_creation(node: AnyPath, metadata: Metadata, *, overwrite: bool) -> AnyPath:
    """Check that `create_node` can create a node, without writing anything; return its result."""
    metadata.render()
    if is_in_draft(node, metadata):
        return node.via(draft.prepare(node, metadata, overwrite=overwrite)[0])
    _check(node, metadata, overwrite=overwrite)
    return node


def create_node(
    node: AnyPath,
    metadata: Metadata,
    *,
    overwrite: bool,
    is_recorded: bool = False,
    is_claimed: bool = False,
    documents: Documents | None = None,
    marker: bytes | None = None,
) -> AnyPath:
    """Write a new node, and the groups above it that don't exist (conformance A-48, C-6).

    With `overwrite`, an existing node is removed first, with everything below it. Leftovers of an
    interrupted rewrite are removed, too, unless `is_recorded`: then the record belongs to the
    caller, who removes it when the nodes below are complete. With `is_claimed`, the caller holds
    the claim of the node; otherwise other writers of an array are excluded here. `documents` are
    the rendered metadata, by default without consolidated metadata. `marker` is stored beside them
    until the chunks are stored. The result is the node in the store as its hierarchy sees it,
    without values that were read beforehand.
    """
    seen, node = node, node.fresh
    rendered = metadata.render()  # before anything is erased: rendering may fail
    documents = rendered if documents is None else documents
    exists, missing_groups = overwrite, list[AnyPath]()
    is_rival = not is_claimed and isinstance(metadata, ArrayMetadata) and can_claim(node.store)
    is_absent = not is_in_draft(node, metadata) and node.is_absent
    names = _consolidated_names(metadata)
    again: Callable[[Store], Store] = fresh
    with node.store.batch(), ExitStack() as held:
        view = prefetched(seen, metadata)
        if is_rival and _needs_claim(view, is_absent=is_absent):
            claim = held.enter_context(claimed(node, read=partial(prefetched, metadata=metadata)))
            view, is_rival = claim.seen, False
        if is_rival and not is_in_draft(node, metadata):
            # Whether others began to create it, too, or consolidated metadata, is read together.
            again = cache(partial(_read_again, node, names))
        if is_in_draft(node, metadata):
            node = view = node.via(draft.begin(node, metadata, overwrite=overwrite))
        else:
            missing_groups, exists = _check(view, metadata, overwrite=overwrite)
        names = consolidated.NAMES if exists else names
        with changing(view, whole=True, is_array=is_absent, names=names, again=again) as real:
            for group in missing_groups:
                _put_group(real.at(group.path), metadata)
            if not is_absent:
                real.tidy()
            # Only nodes are erased: a directory with other files is left alone.
            if exists:
                config.check()  # An error later would leave neither the old node nor the new.
                remove_keys(real)
            elif not (is_recorded or is_absent) and ((begun := is_begun(real)) or overwrite):
                if isinstance(metadata, ArrayMetadata):
                    erase_leftovers(real.chunks(metadata))
                if begun:
                    erase_beside(real)
            put = partial(put_documents if exists else put_new_documents, real, documents)
            with _replacing(real, documents, marker) if overwrite else nullcontext():
                put_marked(real, put, marker, is_absent=is_absent)
            has_rivals = is_rival and await_claims(real.via(again(real.store)))
            if isinstance(metadata, ArrayMetadata) and has_rivals:
                erase_leftovers(real.fresh.chunks(metadata))
    if isinstance(metadata, ArrayMetadata):
        # The first write compares them with what is stored then: it need not parse that.
        vars(metadata)["documents"] = rendered
    return node


@contextmanager
def _replacing(node: StorePath, documents: Documents, marker: bytes | None) -> Iterator[None]:
    """If another writer has created a node since it was looked for, replace it."""
    try:
        yield
    except NodeExistsError:
        remove_keys(node)
        put_marked(node, partial(put_documents, node, documents), marker)


def _consolidated_names(metadata: Metadata) -> tuple[str, ...]:
    """Return the names of the documents in which groups above may list the members."""
    if config.get("mixed-formats"):
        return consolidated.NAMES
    return metadata.format.consolidated_documents


def _read_again(node: StorePath, names: tuple[str, ...], store: Store) -> Store:
    """Read the claims that are about a new node, and the consolidated metadata above it."""
    above = [group.prefix + name for group in node.parents for name in names]
    return prefetch(fresh(store), [*claim_keys(node), *above])


def _needs_claim(node: StorePath, *, is_absent: bool) -> bool:
    """Check that no other writer creates an array; return whether a claim is necessary.

    It is if something that was left here is going to be erased, and if this writer may have stored
    a refused document itself, as the store repeats requests.
    """
    has_claim = check_unclaimed(node, is_absent=is_absent)
    return has_claim or node.store.capabilities.repeats or (not is_absent and is_begun(node))


def prefetched(node: AnyPath, metadata: Metadata | None, *, listed: bool = False) -> AnyPath:
    """Read the documents that creating a node needs, in one round trip; `fresh` undoes it.

    The result is the node in a store that serves them from memory; it is the node itself if the
    store has no latency, if the documents were read before, or in the draft. Without `metadata`,
    the format follows from the groups above, which are read. With `listed`, the node's directory is
    listed, too, as for the creation of its members.
    """
    node.store.check_writable()
    if node.layout.base is not None or (metadata is not None and is_in_draft(node, metadata)):
        return node.fresh
    prefixes, above = [node.prefix] if listed else [], () if node.path else DOCUMENTS_ABOVE
    return node.via(
        prefetch(node.store, _keys_to_create(node, metadata), listed=prefixes, above=above)
    )


def _keys_to_create(node: StorePath, metadata: Metadata | None) -> Iterator[str]:
    """Yield the keys of the values that creating a node reads."""
    more = () if metadata is None else _consolidated_names(metadata)
    names = dict.fromkeys((*detect.entry_names(), *more))
    for each in (*node.parents, node):
        yield from (each.prefix + name for name in names)
    yield from claim_keys(node)
    yield record_key(node)


def _check(node: AnyPath, metadata: Metadata, *, overwrite: bool) -> tuple[list[AnyPath], bool]:
    """Return the paths above a node where there is no group, and whether the node exists."""
    metadata.format.check_path(node.path)
    base = node.current
    paths = ancestors(node.path)
    own_path = [] if base.is_absent else [node.path]
    documents = read_documents(base.store, paths + own_path, (detect.entry_names(),))
    above, own = documents[: len(paths)], documents[-1] if own_path else {}
    missing_groups = _missing_groups(base, above)
    if len(missing_groups) == len(above):
        check_around(node.store)
    exists = detect.is_node(own)
    if exists and not overwrite:
        discard_dead_claim(node)
        raise exists_error(base)
    if not exists:
        base.check_directories()
    check_visible_in(node, metadata, base.parents, above)
    if exists:
        base.store.check_writable(erasing=[node.prefix])
    return missing_groups, exists


def _missing_groups(node: AnyPath, above: list[Documents] | None = None) -> list[AnyPath]:
    """Return the paths above a node where there is no group; if there is an array, raise an error.

    `above` are the documents there, if they have been read.
    """
    store, path = node
    missing = []
    if above is None:
        names = detect.names(node.layout)
        above = read_documents(store, ancestors(path), (names,)) if path else []
    for parent, documents in zip(node.parents, above, strict=True):
        metadata = node_of(parent, documents, None)
        if isinstance(metadata, ArrayMetadata):
            raise below_array_error(parent.location)
        if metadata is None:
            missing.append(parent)
    return missing


def create_parents(node: StorePath, metadata: Metadata) -> None:
    """Write the groups above a node that are missing, in the format of the node."""
    missing = _missing_groups(node.current)
    if missing:
        with changing(node.at(missing[0].path), whole=True) as real:
            for parent in missing:
                _put_group(real.at(parent.path), metadata)


def _put_group(group: StorePath, below: Metadata) -> None:
    """Write a group above a new node, unless another writer did so concurrently."""
    try:
        put_new_documents(group, GroupMetadata(below.zarr_format).render())
    except NodeExistsError:
        _missing_groups(group.join("member"))  # an error if that node is an array


def put_documents(node: StorePath, documents: Documents) -> None:
    """Write a node's documents, the one that makes it a node last."""
    for name, value in _in_order(documents):
        node.store.set(node.prefix + name, value)


def put_new_documents(node: StorePath, documents: Documents) -> None:
    """Write the documents of a node that does not exist; only one of several writers succeeds."""
    store, prefix, late = node.store, node.prefix, []
    for name, value in _in_order(documents):
        if store.create(prefix + name, value):
            continue
        if name in detect.node_names():
            raise exists_error(node)
        # It was left by an erased node, or is from a concurrent writer, which may still be the
        # first.
        late.append((name, value))
    for name, value in late:
        store.set(prefix + name, value)


def _in_order(documents: Documents) -> list[tuple[str, bytes]]:
    names = sorted(documents, key=detect.node_names().__contains__)
    return [(name, value) for name in names if (value := documents[name]) is not None]


def create_members(
    group: StorePath,
    members: Mapping[str, Metadata],
    *,
    has_chunks: bool = False,
    is_again: bool = True,
    keep: str | None = None,
    marker: bytes | None = None,
) -> None:
    """Write new nodes below a group that exists: the documents of all at the same time.

    `members` has the nodes by their paths from the group. Names that v3 reserves are accepted:
    xarray stores nameless variables under such names. With `has_chunks`, the chunks are there
    already, and with `is_again` this may have been done before; otherwise chunks that are found are
    left from former arrays, and erased. `keep` is as in `changing`, and `marker` is stored beside
    the documents of each array until its chunks are stored.

    If there is a node already at one of the paths, nothing is written if that is known beforehand,
    and what another writer created concurrently stays.
    """
    if not members:
        return
    documents = {name: metadata.render() for name, metadata in members.items()}
    if not has_chunks:
        clear_members(group, members)
    with changing(group, whole=False, keep=keep) as real:
        arrays = [name for name, each in members.items() if isinstance(each, ArrayMetadata)]
        markers = {} if marker is None else dict.fromkeys(arrays, marker)
        put_members(real, documents, again=has_chunks and is_again, markers=markers)


def put_members(
    group: StorePath,
    members: Mapping[str, Documents],
    *,
    again: bool,
    markers: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write the documents of new nodes below a group, of all nodes at the same time.

    With `again`, this may have been done before. `markers` are stored beside the documents.
    """
    nodes = [
        (group.join(name), documents, markers.get(name)) for name, documents in members.items()
    ]
    request_on_each(group.store, lambda item: _put_member(*item, again=again), nodes)


def put_first_members(group: StorePath, members: Mapping[str, Documents]) -> None:
    """Write the documents of nodes below a group that does not exist yet: all in one round trip.

    The order of a node's documents does not matter, as the group can't be found yet. This may have
    been done before.
    """
    items = [
        (path, group.join(path).prefix + name, name, value)
        for path, documents in members.items()
        for name, value in _in_order(documents)
    ]
    store = group.store
    created = request_on_each(store, lambda item: store.create(item[1], item[3]), items)
    refused = [item for item, is_created in zip(items, created, strict=True) if not is_created]
    for path, _, name, _ in refused:
        if name in detect.node_names() and not _is_stored(group.join(path), members[path]):
            raise exists_error(group.join(path))
    for _, key, name, value in refused:
        if name not in detect.node_names():
            store.set(key, value)  # what is there was left by an erased node


def check_members(
    group: AnyPath, members: Mapping[str, Metadata], replace: Replace = "never"
) -> list[tuple[AnyPath, Metadata]]:
    """Check that there are no nodes at some paths in a group; return those with anything below.

    Nodes that may be replaced are accepted, and nodes that another writer creates now are not. The
    group is listed once: what it does not have requires no other request.
    """
    if group.store.capabilities.listable and members:
        below = set(group.store.list_dir(group.prefix)[1])
        members = {name: m for name, m in members.items() if name.partition("/")[0] in below}
    nodes = [(group.join(name), metadata) for name, metadata in members.items()]

    def check(item: tuple[AnyPath, Metadata]) -> None:
        if can_claim(group.store) and live_claim(item[0]):
            raise claimed_error(item[0])
        _check_free(*item, replace=replace)

    request_on_each(group.store, check, nodes)
    return nodes


def clear_members(
    group: StorePath, members: Mapping[str, Metadata], replace: Replace = "never"
) -> None:
    """Check that there are no nodes at some paths in a group, and erase what former ones left.

    Nodes that may be replaced are erased, too; groups lose only their documents.
    """
    nodes = check_members(group, members, replace)
    request_on_each(group.store, lambda item: _clear(*item, is_replaced=replace != "never"), nodes)


def _check_free(node: StorePath, metadata: Metadata, *, replace: Replace) -> None:
    if is_in_draft(node, metadata):
        draft.prepare(node, metadata, overwrite=False)
    elif replace != "always" and node_exists(node):
        is_same = replace == "same" and _is_stored(node, metadata.render())
        if not is_same:
            raise exists_error(node)


def _is_stored(node: StorePath, documents: Documents) -> bool:
    """Whether a node has some documents, as they are."""
    get, prefix = node.store.get, node.prefix
    return all(get(prefix + name) == value for name, value in documents.items())


def _clear(node: StorePath, metadata: Metadata, *, is_replaced: bool) -> None:
    store, prefix = node.store, node.prefix
    node.tidy()
    if is_replaced:
        disown_unfinished(node)
        # Documents are erased first: if this is cut short, the rest is not a node.
        store.erase_values([prefix + name for name in detect.names(node.layout)])
    if isinstance(metadata, ArrayMetadata):
        erase_leftovers(node.chunks(metadata))
    if is_begun(node):
        erase_beside(node)


def _put_member(
    node: StorePath, documents: Documents, marker: bytes | None, *, again: bool
) -> None:
    try:
        put_marked(node, partial(put_new_documents, node, documents), marker)
    except NodeExistsError:
        if not (again and _is_stored(node, documents)):
            raise
