"""Consolidate the metadata of a group: one document about all nodes below it."""

from collections.abc import Iterable

from zarrdask.arrays.hierarchy.changes.node_locks import lock_node
from zarrdask.arrays.hierarchy.claim import can_claim
from zarrdask.arrays.hierarchy.members import documents_below
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, ancestors, key_prefix
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import GroupMetadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import prefetch
from zarrdask.storage.locks.unchanged import MAX_ATTEMPTS, ChangedError, change_if_unchanged


def write_consolidated(
    node: StorePath,
    zarr_format: ZarrFormat,
    *,
    group: GroupMetadata | None = None,
    nodes: Iterable[str] | None = None,
) -> None:
    """Write a group's consolidated metadata (conformance A-67, C-78).

    If the store has `compare_and_swap`, the documents are read again if another writer has
    changed the consolidated metadata, or the group in v3, so no changes are lost.

    `group` is new metadata of the group, to be written, too. For a dataset of xarray, `nodes` are
    paths that are probably below the group, to read all of them at once; then members whose names
    v3 reserves are included.
    """
    key = find_format(zarr_format).consolidated_key
    prefix, own = node.prefix, {} if group is None else group.render()
    search = Search(zarr_format)

    def entries() -> consolidated.Entries:
        source = node if nodes is None else _prefetched_below(node, search, nodes)
        below = documents_below(source, search, reserved=nodes is not None)
        if group is not None:
            below.add("", own)
        return below

    def write(target: Store) -> None:
        if target is not node.store:
            target.get(f"{prefix}{key}")  # for the condition of `set`
        try:
            documents = entries().render(zarr_format)
        except ZarrdaskError as error:
            raise error.within(node.location) from error.__cause__
        with target.batch():
            for name, value in (own | documents).items():  # in v3 all is in one document
                if value is None:
                    target.erase(prefix + name)  # attributes that are gone, in v2
                else:
                    target.set(prefix + name, value)
        written.append(documents)

    def is_current() -> bool:
        """Whether no writer has changed a node below after it was read."""
        try:
            return entries().render(zarr_format) == written[-1]
        except ZarrdaskError:
            return False  # Reading again says what is wrong.

    written = list[Documents]()
    # The later of two writers must see the documents of the earlier one, also the group's
    # attributes.
    with lock_node(node, "documents"), node.store.batch():
        for _ in range(MAX_ATTEMPTS):
            change_if_unchanged(node.store, write)
            if not can_claim(node.store) or is_current():
                return
    raise ChangedError(
        f"other writers changed nodes of the group during each of {MAX_ATTEMPTS} attempts to "
        "consolidate their metadata, so it is out of date; call this function again when they "
        "have ended",
        key=node.location,
    )


def _prefetched_below(group: AnyPath, search: Search, paths: Iterable[str]) -> AnyPath:
    """Read the documents of a group and of nodes below it, and list the groups that they are in."""
    store, nodes = group.store, [group.path, *paths]
    names = search.rounds(group.layout)[0]
    around = {above for each in nodes for above in ancestors(each)}
    groups = {group.path, *(each for each in around if f"{each}/".startswith(group.prefix))}
    keys = (key_prefix(each) + name for each in {*groups, *nodes} for name in names)
    return group.via(prefetch(store, keys, listed=map(key_prefix, groups)))
