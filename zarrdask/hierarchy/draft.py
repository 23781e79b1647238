"""Hierarchies of the v3 draft: which one a path is in, and how one begins.

Nodes of other formats stand for themselves; those of the draft are found from the entry point at
the root of their hierarchy (conformance B-9, B-76).
"""

import re
from collections.abc import Iterable, Sequence

from zarrdask import config
from zarrdask.compliance import report_deviation
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.hierarchy.consolidated import ancestors
from zarrdask.metadata import detect
from zarrdask.metadata.draft.entry import KEY, is_entry, parse_entry, render_entry
from zarrdask.metadata.model import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.v3_draft import ARRAY, DRAFT, GROUP, IMPLICIT, PROTOCOL, DraftStore

_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._-]+")


class EntryPointError(MetadataError):
    """Where a node was expected there is the entry point of a hierarchy of the draft."""

    data: bytes = b""


def is_draft(zarr_format: ZarrFormat) -> bool:
    """Whether a format is a dialect of the draft."""
    return zarr_format in (DRAFT, PROTOCOL)


def check_no_entry(data: bytes | None) -> None:
    """Check that what is to be a node's ``zarr.json`` is no entry point.

    Raises
    ------
    EntryPointError
        If it is.
    """
    if is_entry(data):
        older = b"/protocol/" in (data or b"")
        error = EntryPointError(
            "the root of a hierarchy of the v3 draft, which is opened by itself; nodes are made "
            "in it with its own format only",
            key=KEY,
            expected=f"zarr_format={PROTOCOL if older else DRAFT!r}",
        )
        error.data = data or b""
        raise error


def enter(store: Store, path: str, data: bytes) -> DraftStore:
    """Return a store as a hierarchy of the draft.

    Where the entry point mixes the forms of both dialects, the root's documents decide (X-B16,
    X-B17).

    Parameters
    ----------
    path : str
        Of the hierarchy's root in the store.
    data : bytes
        The entry point.

    Raises
    ------
    MetadataError, UnsupportedError
        If that is wrong, or needs what isn't there.
    """
    entry, base = parse_entry(data), f"{path}/" if path else ""
    view = DraftStore(store, base, entry.zarr_format, entry.suffix, entry.minor)
    if not entry.certain:
        older = DraftStore(store, base, PROTOCOL, entry.suffix, entry.minor)
        if older.has_document(base) or older.has_nodes(base):
            return older
    return view


def first(store: Store, found: Iterable[tuple[str, bytes | None]]) -> DraftStore | None:
    """Return the hierarchy of the first entry point among some ``zarr.json``, by path."""
    for path, data in found:
        if data is not None and is_entry(data):
            return enter(store, path, data)
    return None


def around(store: Store, above: Sequence[str]) -> DraftStore | None:
    """Return the hierarchy of the draft that is rooted at one of some paths, if any is.

    Parameters
    ----------
    above : sequence of str
        The paths above a node, which are asked for at once.
    """
    if isinstance(store, DraftStore) or not above:
        return None
    keys = [f"{path}/{KEY}" if path else KEY for path in above]
    values = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
    return first(store, zip(above, values, strict=True))


def prepare(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool
) -> tuple[DraftStore, bool]:
    """Check that a node can be created in a hierarchy of the draft; nothing is written.

    Returns
    -------
    DraftStore
        The hierarchy.
    bool
        Whether it begins with the node.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false, an array stands above, or the hierarchy or
        the store's root has another format.
    """
    view = store if isinstance(store, DraftStore) else around(store, [*ancestors(path), path])
    if overwrite and not path and view is not store and view is not None:
        # The root of another dialect goes as that of another format does.
        view = view if view.zarr_format == metadata.zarr_format else None
    check_path(path if view is None else below_root(view, path))
    if view is not None:
        _check_format(view, metadata.zarr_format)
        _check_place(view, path, metadata, overwrite=overwrite)
        return view, False
    if _is_taken(store) and (path or not overwrite):
        raise NodeExistsError(
            "a node of another format is here; overwrite=True at the root replaces it",
            key=store.url,
        )
    return DraftStore(store, "", str(metadata.zarr_format)), True


def create(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> DraftStore:
    """Write a new node in a hierarchy of the draft, which begins with it if there is none.

    No groups above are made: they are implied (conformance B-67).

    Raises
    ------
    NodeExistsError
        As `prepare`.
    """
    documents = detect.render(metadata)  # so that what can't be written fails before erasing
    view, begins = prepare(store, path, metadata, overwrite=overwrite)
    if begins:
        if _is_taken(store):
            store.erase_prefix("")
        entry = render_entry(view.zarr_format)
        if not store.create(KEY, entry) and store.get(KEY) != entry:
            raise _exists(view, path)
    prefix = f"{path}/" if path else ""
    view.tidy(prefix)
    if overwrite:
        view.erase_prefix(prefix)
    for name, value in documents.items():
        if value is None:
            continue
        if overwrite:
            view.set(prefix + name, value)
        elif not view.create(prefix + name, value):
            raise _exists(view, path)
    return view


def _exists(view: DraftStore, path: str) -> NodeExistsError:
    return NodeExistsError(
        "there is an array or group here already; overwrite=True replaces it",
        key=f"{view.url}/{path}",
    )


def _is_taken(store: Store) -> bool:
    """Whether a node of another format stands at the root of a store."""
    found = store.get_many(detect.CHILD_NAMES, Scratch())
    return any(value is not None for value in found)


def _check_format(view: DraftStore, zarr_format: ZarrFormat) -> None:
    if view.zarr_format != zarr_format:
        raise NodeExistsError(
            "a hierarchy of another format",
            key=f"{view.url}/{view.base}{KEY}",
            found=zarr_format,
            expected=f"zarr_format={view.zarr_format!r}",
        )


def _check_place(view: DraftStore, path: str, metadata: Metadata, *, overwrite: bool) -> None:
    """Check that nothing is in the way of a new node."""
    prefixes = [f"{parent}/" if parent else "" for parent in ancestors(path)]
    above = [prefix for prefix in prefixes if prefix.startswith(view.base)]
    values = view.get_many([prefix + ARRAY for prefix in above], Scratch())
    for prefix, value in zip(above, values, strict=True):
        if value is not None:
            raise NodeExistsError("an array can't hold other nodes", key=f"{view.url}/{prefix}")
    prefix = f"{path}/" if path else ""
    # A group that was implied so far may get a document.
    implied = isinstance(metadata, ArrayMetadata) and view.has_nodes(prefix)
    if not overwrite and (implied or view.has_document(prefix)):
        raise _exists(view, path)


def below_root(view: DraftStore, path: str) -> str:
    """Return a path as the hierarchy has it, from its own root."""
    return f"{path}/"[len(view.base) :].rstrip("/")


def check_path(path: str) -> None:
    """Check that a node may be created at a path in a hierarchy.

    Raises
    ------
    MetadataError
        If it has a name with other characters than the draft allows (conformance B-4, B-5).
    """
    if path and not all(map(_NAME.fullmatch, path.split("/"))):
        raise MetadataError(
            "not names in the draft of Zarr v3",
            key="path",
            found=path,
            expected="letters and digits of ASCII, '-', '_' and '.'",
        )


def check_found(view: DraftStore, path: str) -> None:
    """Check the path of a node that was found, in strict mode."""
    try:
        check_path(below_root(view, path))
    except MetadataError as error:
        report_deviation("B-4", error.message, key="path", found=path, expected=error.expected)


def keep_parent(view: DraftStore, path: str) -> None:
    """Make the group above a node that was erased explicit, if it is to stay (B-75)."""
    parent = below_root(view, path).rpartition("/")[0]
    prefix = f"{view.base}{parent}/"
    if parent and config.get("draft-keep-groups") and view.get(prefix + GROUP) is None:
        view.set(prefix + GROUP, IMPLICIT)
