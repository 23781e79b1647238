"""The nodes below a group: their names, documents and metadata."""

from collections.abc import Callable, Container, Iterator

from zarrdask.arrays.hierarchy.changes.journal import BESIDE
from zarrdask.arrays.hierarchy.find import documents_of, implied_group, node_of, read_documents
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, join_path
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.consolidated_documents import Entries
from zarrdask.formats.metadata.detect import ANY, Search
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Known, Metadata
from zarrdask.storage.cache.prefetched import PrefetchedStore, prefetch
from zarrdask.storage.zarr.consolidated_store import as_consolidated

#: The most groups that are listed before it is known whether they exist.
_MAX_EXPECTED_LISTINGS = 64


def member_documents(
    group: StorePath,
    search: Search = ANY,
    *,
    skip: Container[str] = (),
    reserved: bool = False,
    chosen: GroupFilter | None = None,
) -> Iterator[tuple[str, Documents]]:
    """Yield the name and the documents of each node right below a group, valid or not.

    The store is listed once, and all documents are requested together.

    `skip` has names of nodes that are not read, and `reserved` says whether v3 nodes are included
    whose names v3 reserves, such as xarray's ``__values__``. If groups are `chosen`, nodes whose
    names follow from the patterns are requested without a listing, and others are not read.
    """
    store = group.store
    names = _candidates(group, chosen, skip)
    paths = [join_path(group.path, name) for name in names]
    is_free = reserved or not group.layout.reserves_names
    for name, member in zip(
        names, read_documents(store, paths, search.rounds(group.layout)), strict=True
    ):
        if not is_free and find_format(3).is_reserved(name):
            is_node = detect.is_node(member, name)
        else:
            is_node = detect.is_node(member) or (
                search.accepts(3) and implied_group(group.join(name)) is not None
            )
        if is_node:
            yield name, member


def _candidates(
    group: StorePath, chosen: GroupFilter | None, skip: Container[str] = ()
) -> list[str]:
    """Return the names of what may be nodes right below a group."""
    names = None if chosen is None else chosen.next_names("")
    if names is None:
        _, prefixes = group.store.list_dir(group.prefix)
        names = frozenset(n for n in prefixes if chosen is None or chosen.may_have(n))
    # Names that no node can have are names of directories with another purpose.
    valid = (name for name in names if name.strip(".") and "\\" not in name)
    return sorted(name for name in valid if name not in skip and f"{name}/" != BESIDE)


def expect_chosen(
    group: AnyPath, search: Search, chosen: GroupFilter | None, *, skip: Container[str] = ()
) -> AnyPath:
    """Return a group in a view of its store that reads ahead what patterns lead to.

    The documents and listings that follow from the patterns and the names of the group's members
    are requested in one round trip, instead of one or two for each level.
    """
    is_plain = not group.is_cached and group.layout.documents is None
    if chosen is None or not is_plain or not group.store.capabilities.costs.overlaps:
        return group
    if chosen.next_names("") is None:
        group = group.via(prefetch(group.store, (), listed=[group.prefix]))
    store = group.store
    paths = [*chosen.paths_below(_candidates(group, chosen, skip))]
    listed = [group.join(path).prefix for path, is_listed in paths if is_listed]
    # Not every one of many groups exists.
    if len(listed) > _MAX_EXPECTED_LISTINGS or not store.capabilities.listable:
        listed = []
    names = search.rounds(group.layout)[0]
    keys = [group.join(path).prefix + name for path, _ in paths for name in names]
    return group.via(PrefetchedStore(store, keys, listed))


def member_names(group: StorePath, search: Search = ANY) -> list[str]:
    """Return the names of the nodes right below a group, valid or not."""
    consolidated = as_consolidated(group.store)
    names = None if consolidated is None else consolidated.members(group.path)
    return [name for name, _ in member_documents(group, search)] if names is None else names


def child_nodes(
    group: StorePath,
    search: Search = ANY,
    *,
    skip: Container[str] = (),
    reserved: bool = False,
    chosen: GroupFilter | None = None,
    known: Known | None = None,
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield the name and the metadata of each node right below a group.

    The metadata of an invalid node is replaced by the error. The parameters are as in
    `member_documents`. If groups are `chosen`, arrays are left out unless this group is chosen.
    Arrays with the same documents share the metadata in `known`, to which it is added, and those
    that differ in their attributes share the rest: trees have thousands of such arrays.
    """
    has_arrays = chosen is None or chosen.accepts("")
    left = None if has_arrays else chosen
    members = member_documents(group, search, skip=skip, reserved=reserved, chosen=left)
    for name, documents in members:
        try:
            metadata = _metadata_of(group, name, documents, search, known)
        except ZarrdaskError as error:
            yield name, error
        else:
            is_group = isinstance(metadata, GroupMetadata)
            if chosen is not None and not (chosen.may_have(name) if is_group else has_arrays):
                continue
            if metadata is not None:
                yield name, metadata


def _metadata_of(
    group: StorePath, name: str, documents: Documents, search: Search, known: Known | None
) -> Metadata | None:
    """Return the metadata of a node right below a group, which may be known by its documents."""
    if known is None:
        return node_of(group.join(name), documents, search)
    key = tuple(documents.items())
    shared = known.get(key)
    if shared is not None:
        return shared
    metadata = node_of(group.join(name), documents, search, known)
    if isinstance(metadata, ArrayMetadata) and _may_be_shared(metadata):
        known[key] = metadata
    return metadata


def _may_be_shared(metadata: ArrayMetadata) -> bool:
    """Whether metadata depends on the documents only, and no part of it can be changed.

    xarray takes the values of attributes as they are, and users may change their lists.
    """
    values = (*metadata.attributes.values(), *metadata.extra.values())
    is_flat = not any(isinstance(value, dict | list) for value in values)
    return is_flat and not (metadata.format.has_conventions or metadata.is_repaired)


def walk_nodes(
    root: StorePath,
    *,
    search: Search = ANY,
    strict: bool | None = None,
    descend: Callable[[str], bool] | None = None,
    depth: int | None = None,
    chosen: GroupFilter | None = None,
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield the path and the metadata of every node below a group, each group before its members.

    The metadata of an invalid node is replaced by the error. Each group is listed once, when
    the walk reaches it. The paths are relative to the group. Unless the search is for one format
    only, members are expected to have the format of their group.

    `strict` says whether metadata that breaks a rule raises an error; by default the setting does.
    `descend` is called with the relative path of each group, after that group was yielded: if it
    returns False, nothing below the group is visited. `depth` is the number of levels; None is all.
    If groups are `chosen`, only they are visited, with their arrays, and the groups above them.
    """

    def members(group: str, expected: Search) -> list[tuple[str, Metadata | ZarrdaskError]]:
        with strictness(strict):
            below = None if chosen is None else chosen.below(group)
            nodes = list(child_nodes(root.join(group), expected, chosen=below))
        return [(join_path(group, name), node) for name, node in reversed(nodes)]

    root = expect_chosen(root, search, chosen) if depth is None else root
    pending = members("", search) if depth is None or depth > 0 else []
    while pending:
        below, node = pending.pop()
        yield below, node
        is_left_out = depth is not None and below.count("/") + 1 >= depth
        if not isinstance(node, GroupMetadata) or is_left_out:
            continue
        if descend is None or descend(below):
            pending += members(below, search if search.only else Search(node.zarr_format))


def documents_below(root: StorePath, search: Search = ANY, *, reserved: bool = False) -> Entries:
    """Return the documents of a group and of all nodes below it, as consolidated metadata.

    The result has the parsed documents of each node, by name, by its path from the group ("" is
    the group). The parameters are the same as for `member_documents`.
    """
    entries = Entries()
    entries.add("", documents_of(root, search))
    groups = [""]
    for group in groups:  # grows while it is iterated
        for name, documents in member_documents(root.join(group), search, reserved=reserved):
            below = join_path(group, name)
            entries.add(below, documents)
            if entries.is_group(below):
                groups.append(below)
    return entries
