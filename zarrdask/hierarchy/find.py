"""Nodes in a store: paths, and the documents that stand at them."""

from collections.abc import Iterable
from typing import Any

from zarrdask.compliance import report_deviation, warn_compliance
from zarrdask.errors import MetadataError, NodeNotFoundError, ZarrdaskError
from zarrdask.hierarchy import diagnose, draft, nested
from zarrdask.hierarchy.consolidated import ancestors
from zarrdask.hierarchy.implicit import implied
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.metadata import consolidated as forms
from zarrdask.metadata import detect, v2
from zarrdask.metadata.detect import ANY, Search
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import Metadata, ZarrFormat
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.consolidated import ConsolidatedMetadata, ConsolidatedStore, plain
from zarrdask.storage.v3_draft import DraftStore


def _check_ascii(path: str) -> None:
    """Check a path of Zarr v2: all other software reads and writes other names, too (A-1)."""
    if not path.isascii():
        report_deviation("A-1", "a path in Zarr v2 is ASCII text", key="path", found=path)


def search_below(url: Any, zarr_format: ZarrFormat | None) -> Search:
    """Return which formats a node may have that is opened by a URL, store or opened node.

    Parameters
    ----------
    url : object
        As the user gives it. Members of an opened group are expected to be of its format.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The only format, if the user asks for one.

    Raises
    ------
    MetadataError
        If there is no such format.
    """
    above = getattr(url, "search", None)
    if zarr_format is None and isinstance(above, Search):
        return above
    return detect.search(zarr_format)


def read_node(store: Store, path: str, search: Search = ANY) -> Metadata | None:
    """Return the node at a path, or None if there is none.

    Raises
    ------
    MetadataError, UnsupportedError
        If its documents are wrong; the error names the path.
    """
    metadata = parse_node(store, path, read_documents(store, [path], search.rounds(store))[0])
    if metadata is None and search.accepts(3):
        metadata = implied(store, key_prefix(path))
    return metadata if metadata is None or search.accepts(metadata.zarr_format) else None


def read_nodes(store: Store, paths: list[str]) -> list[Metadata | None]:
    """Return the nodes at several paths, asked for at once; groups without a document are none.

    Raises
    ------
    MetadataError, UnsupportedError
        As `read_node`.
    """
    found = zip(paths, read_documents(store, paths, ANY.rounds(store)), strict=True)
    return [parse_node(store, path, documents) for path, documents in found]


def read_documents(
    store: Store, paths: list[str], rounds: tuple[tuple[str, ...], ...]
) -> list[Documents]:
    """Return the documents of several nodes.

    Parameters
    ----------
    rounds : tuple of (tuple of str)
        The names of the documents. Those of a round are requested together, for the nodes of
        which no earlier round has found any that makes a node.
    """
    documents: list[dict[str, bytes | None]] = [{} for _ in paths]
    left = list(range(len(paths)))
    for names in rounds:
        keys = [key_prefix(paths[at]) + name for at in left for name in names]
        # Each value is valid until the next is requested: keep them by value.
        values = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
        for number, at in enumerate(left):
            own = values[number * len(names) : (number + 1) * len(names)]
            documents[at].update(zip(names, own, strict=True))
        left = [at for at in left if not detect.is_node(documents[at])]
        if not left:
            break
    return [*documents]


def parse_node(store: Store, path: str, documents: Documents) -> Metadata | None:
    """Return the node that documents describe, or None if there are none."""
    try:
        draft.check_no_entry(documents.get("zarr.json"))
        found = detect.parse(documents, detect.formats_of(store))
        if isinstance(store, DraftStore):
            draft.check_found(store, path)
        elif found is not None and found.zarr_format == 2:
            _check_ascii(path)
            found = nested.as_stored(store, key_prefix(path), documents, found)
    except ZarrdaskError as error:
        raise error.within(node_location(store, path)) from error.__cause__
    except RecursionError as error:
        # `parse_json` limits the depth of documents; this is for callers with little stack left.
        raise MetadataError(
            "the metadata are nested too deeply for what is left of Python's stack",
            key=node_location(store, path),
        ) from error
    others = [] if found is None else detect.ignored_documents(documents, found)
    if found is not None and others:
        warn_compliance(
            f"{node_location(store, path)}: metadata of two formats; Zarr {found.zarr_format} was "
            f"taken, {', '.join(others)} was not"
        )
    return found


def node_exists(store: Store, path: str, search: Search = ANY) -> bool:
    """Whether there is a node at a path, be it valid or not."""
    makes = [name for form in detect.formats_of(store) for name in form.CHILD_NAMES]
    rounds = tuple(tuple(name for name in r if name in makes) for r in search.rounds(store))
    return detect.is_node(read_documents(store, [path], rounds)[0])


def has_document(store: Store, path: str) -> bool:
    """Whether there is a node at a path that has a document: no group that is only implied."""
    if isinstance(store, DraftStore):
        return store.has_document(key_prefix(path))
    return node_exists(store, path)


def is_implicit_group(store: Store, path: str) -> bool:
    """Whether there is a group without a document at a path, if such are looked for (X-C10)."""
    return implied(store, key_prefix(path)) is not None


def find_node(
    store: Store,
    path: str,
    *,
    consolidated: bool | None = False,
    group: bool = True,
    above: bool = False,
    search: Search = ANY,
) -> tuple[Store, Metadata]:
    """Return the node at a path, and the store as the hierarchy that the node is in sees it.

    Parameters
    ----------
    consolidated : bool, optional
        Whether consolidated metadata are used: none, those of the group itself if there are any
        (None), or else those of a group above it; then it is an error if there are none.
    group : bool
        Whether a group is looked for.
    above : bool
        Whether, if `consolidated` is None, consolidated metadata of a group above are used too.
    search : Search
        Which formats the node may have.

    Raises
    ------
    NodeNotFoundError
        If there is none.
    MetadataError, UnsupportedError
        If its documents are wrong; the error names the path.
    """
    if consolidated is False or isinstance(store, DraftStore):
        store = plain(store)
    enters = search.zarr_format is None or search.zarr_format not in (2, 3) or not search.only
    try:
        if consolidated or (group and consolidated is None and not isinstance(store, DraftStore)):
            store, found = _find_consolidated(
                store, path, search, above=above or bool(consolidated), required=bool(consolidated)
            )
        else:
            found = read_node(store, path, search)
        if found is None and enters and (view := draft.around(plain(store), ancestors(path))):
            store, found = view, read_node(view, path, search)
    except draft.EntryPointError as entry:
        if not enters:
            raise
        store = draft.enter(plain(store), path, entry.data)
        found = read_node(store, path, search)
    if found is None or not search.accepts(found.zarr_format):
        of_format = f" of zarr_format={search.zarr_format!r}" if search.only else ""
        raise NodeNotFoundError(
            diagnose.missing(store, path, f"there is no array or group{of_format} here"),
            key=node_location(store, path),
            expected=f"one of {', '.join(_looked_for(store, path, search))}",
        )
    return store, found


def _looked_for(store: Store, path: str, search: Search) -> Iterable[str]:
    """Return the documents of which there is none: by name, or by key in the draft."""
    if not isinstance(store, DraftStore):
        requested = {name for names in search.rounds(store) for name in names}
        return [name for name in detect.NAMES if name in requested]
    return [store.real(key_prefix(path) + name) for name in detect.names(store)]


def _find_consolidated(
    store: Store, path: str, search: Search, *, above: bool, required: bool
) -> tuple[Store, Metadata | None]:
    """Return the node at a path, if there is one, and the store as consolidated metadata show it.

    Parameters
    ----------
    above : bool
        Whether consolidated metadata of a group above the node are used.
    required : bool
        Whether it is an error if there are no consolidated metadata.
    """
    if isinstance(store, ConsolidatedStore) and store.holds(path):
        return store, read_node(store, path, search)
    store = plain(store)
    groups = [path, *reversed(ancestors(path))] if above else [path]
    rounds = tuple(
        (*names, forms.KEY) if set(v2.NAMES) <= set(names) else names
        for names in search.rounds(store)
    )
    asked = read_documents(store, groups, rounds)
    for group, documents in zip(groups, asked, strict=True):
        own, held = _taken(store, group, documents)
        # One that tells of no members says nothing: they may be there all the same.
        view = ConsolidatedStore(store, group, held) if held and any(held.documents) else store
        if group == path and (held is not None or not above):
            metadata = parse_node(store, path, own)
            if metadata is None and search.accepts(3):
                metadata = implied(store, key_prefix(path))
            return view, metadata
        if held is not None:
            found = read_node(view, path, search)
            if found is not None or required:
                return view, found
            break  # they are older than the node
    if not required:
        metadata = parse_node(store, path, asked[0])
        if metadata is None and search.accepts(3):
            metadata = implied(store, key_prefix(path))
        return store, metadata
    raise MetadataError(
        "there are no consolidated metadata here",
        key=node_location(store, path),
        expected=f"{forms.KEY}, or {forms.MEMBER} in zarr.json; consolidate_metadata writes them",
    )


def _taken(
    store: Store, path: str, documents: Documents
) -> tuple[Documents, ConsolidatedMetadata | None]:
    try:
        return forms.split_documents(documents)
    except ZarrdaskError as error:
        raise error.within(node_location(store, path)) from error.__cause__


def version_stamp(store: Store, path: str, search: Search = ANY) -> str:
    """Return what changes when the node's documents are written again, or "" if that costs."""
    prefix = key_prefix(path)
    names = [name for names in search.rounds(store) for name in names]
    return "".join(store.stamp(prefix + name) for name in names)
