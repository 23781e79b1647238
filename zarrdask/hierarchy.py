"""Nodes in a store: paths, and the documents that stand at them."""

from collections.abc import Iterable, Iterator
from typing import Any

from zarrdask import drafts, hints, nested
from zarrdask.consolidation import ancestors, changing
from zarrdask.errors import LinkError, MetadataError, NodeNotFoundError, ZarrdaskError
from zarrdask.formats import consolidated as forms
from zarrdask.formats import detect, v2
from zarrdask.formats.base import Documents
from zarrdask.formats.detect import ANY, Search
from zarrdask.implicit import implied
from zarrdask.metadata import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.consolidated import ConsolidatedStore, Held, plain
from zarrdask.storage.draft import DraftStore
from zarrdask.storage.resolve import resolve
from zarrdask.storage.retry import retrying
from zarrdask.tolerance import note, tolerate


def normalise(path: str | None) -> str:
    """Return a path in normal form: names joined by "/", none at either end.

    Raises
    ------
    MetadataError
        If it is no text, or a name is made of periods only, or has a NUL (conformance A-44, A-45,
        C-29).

    Examples
    --------
    >>> normalise("//foo//bar/")
    'foo/bar'
    """
    if not isinstance(path, str | None) or any("\ud800" <= c <= "\udfff" for c in path or ""):
        raise MetadataError("not a path", key="path", found=path, expected="Unicode text")
    names = [name for name in (path or "").replace("\\", "/").split("/") if name]
    for name in names:
        if not name.strip(".") or "\0" in name:
            raise MetadataError(
                "a name may not be periods only, nor have a NUL", key="path", found=path
            )
    return "/".join(names)


def locate(
    url: Any, component: str | None, storage_options: dict[str, Any] | None
) -> tuple[Store, str]:
    """Return the store and path that a user means: by URL, store, mapping, or an opened node."""
    above = getattr(url, "store", None)
    if isinstance(above, Store) and not isinstance(url, Store):
        return above, join(url.path, component or "")
    return retrying(resolve(url, storage_options)), normalise(component)


def strict_below(url: Any, strict: bool | None) -> bool | None:  # noqa: FBT001
    """Return whether what is opened by a node has to be strict: as there, if nobody says."""
    above = getattr(url, "strict", None)
    return above if strict is None and isinstance(above, bool) else strict


def check_name(path: str, zarr_format: ZarrFormat) -> None:
    """Check that a node may be created at a path.

    Raises
    ------
    MetadataError
        If one of its names is reserved (conformance C-29); in strict mode, if it is not ASCII in
        v2.
    """
    if zarr_format == 2:
        _check_ascii(path)
    reserved = (*detect.NAMES, forms.KEY)
    for name in path.split("/"):
        if name in reserved or (zarr_format == 3 and _is_reserved(name)):
            raise MetadataError("this name is reserved", key="path", found=name)


def _check_ascii(path: str) -> None:
    """Check a path of Zarr v2: all other software reads and writes other names, too (A-1)."""
    if not path.isascii():
        tolerate("A-1", "a path in Zarr v2 is ASCII text", key="path", found=path)


def prefix_of(path: str) -> str:
    """Return the prefix of a node's keys: "" for the root, else the path and "/"."""
    return f"{path}/" if path else ""


def location(store: Store, path: str) -> str:
    """Return where a node is, for people."""
    return f"{store.url}/{path}".rstrip("/")


def join(path: str, name: str) -> str:
    """Return the path of a node below another, in normal form."""
    below = normalise(name)
    return f"{path}/{below}" if path and below else path or below


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


def read(store: Store, path: str, search: Search = ANY) -> Metadata | None:
    """Return the node at a path, or None if there is none.

    Raises
    ------
    MetadataError, UnsupportedError
        If its documents are wrong; the error names the path.
    """
    metadata = _parse(store, path, _documents(store, [path], search.rounds(store))[0])
    if metadata is None and search.accepts(3):
        metadata = implied(store, prefix_of(path))
    return metadata if metadata is None or search.accepts(metadata.zarr_format) else None


def read_each(store: Store, paths: list[str]) -> list[Metadata | None]:
    """Return the nodes at several paths, asked for at once; groups without a document are none.

    Raises
    ------
    MetadataError, UnsupportedError
        As `read`.
    """
    found = zip(paths, _documents(store, paths, ANY.rounds(store)), strict=True)
    return [_parse(store, path, documents) for path, documents in found]


def _documents(
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
        keys = [prefix_of(paths[at]) + name for at in left for name in names]
        # Each value is valid until the next is requested: keep them by value.
        values = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
        for number, at in enumerate(left):
            own = values[number * len(names) : (number + 1) * len(names)]
            documents[at].update(zip(names, own, strict=True))
        left = [at for at in left if not detect.is_node(documents[at])]
        if not left:
            break
    return [*documents]


def _parse(store: Store, path: str, documents: Documents) -> Metadata | None:
    try:
        drafts.check_no_entry(documents.get("zarr.json"))
        found = detect.parse(documents, detect.formats_of(store))
        if isinstance(store, DraftStore):
            drafts.check_found(store, path)
        elif found is not None and found.zarr_format == 2:
            _check_ascii(path)
            found = nested.as_stored(store, prefix_of(path), documents, found)
    except ZarrdaskError as error:
        raise error.within(location(store, path)) from error.__cause__
    except RecursionError as error:
        # `parse_json` limits the depth of documents; this is for callers with little stack left.
        raise MetadataError(
            "the metadata are nested too deeply for what is left of Python's stack",
            key=location(store, path),
        ) from error
    others = [] if found is None else detect.passed_over(documents, found)
    if found is not None and others:
        note(
            f"{location(store, path)}: metadata of two formats; Zarr {found.zarr_format} was "
            f"taken, {', '.join(others)} was not"
        )
    return found


def exists(store: Store, path: str, search: Search = ANY) -> bool:
    """Whether there is a node at a path, be it valid or not."""
    makes = [name for form in detect.formats_of(store) for name in form.CHILD_NAMES]
    rounds = tuple(tuple(name for name in r if name in makes) for r in search.rounds(store))
    return detect.is_node(_documents(store, [path], rounds)[0])


def has_document(store: Store, path: str) -> bool:
    """Whether there is a node at a path that has a document: no group that is only implied."""
    if isinstance(store, DraftStore):
        return store.has_document(prefix_of(path))
    return exists(store, path)


def is_implied(store: Store, path: str) -> bool:
    """Whether there is a group without a document at a path, if such are looked for (X-C10)."""
    return implied(store, prefix_of(path)) is not None


def find(
    store: Store,
    path: str,
    *,
    consolidated: bool | None = False,
    group: bool = True,
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
            store, found = _find_consolidated(store, path, search, above=bool(consolidated))
        else:
            found = read(store, path, search)
        if found is None and enters and (view := drafts.around(plain(store), ancestors(path))):
            store, found = view, read(view, path, search)
    except drafts.EntryPointError as entry:
        if not enters:
            raise
        store = drafts.enter(plain(store), path, entry.data)
        found = read(store, path, search)
    if found is None or not search.accepts(found.zarr_format):
        of_format = f" of zarr_format={search.zarr_format!r}" if search.only else ""
        raise NodeNotFoundError(
            hints.missing(store, path, f"there is no array or group{of_format} here"),
            key=location(store, path),
            expected=f"one of {', '.join(_looked_for(store, path, search))}",
        )
    return store, found


def _looked_for(store: Store, path: str, search: Search) -> Iterable[str]:
    """Return the documents of which there is none: by name, or by key in the draft."""
    if not isinstance(store, DraftStore):
        requested = {name for names in search.rounds(store) for name in names}
        return [name for name in detect.NAMES if name in requested]
    return [store.real(prefix_of(path) + name) for name in detect.names(store)]


def _find_consolidated(
    store: Store, path: str, search: Search, *, above: bool
) -> tuple[Store, Metadata | None]:
    """Return the node at a path, if there is one, and the store as consolidated metadata show it.

    Parameters
    ----------
    above : bool
        Whether there must be some, of the node or of a group above it.
    """
    if isinstance(store, ConsolidatedStore) and store.holds(path):
        return store, read(store, path, search)
    store = plain(store)
    groups = [path, *reversed(ancestors(path))] if above else [path]
    rounds = tuple(
        (*names, forms.KEY) if set(v2.NAMES) <= set(names) else names
        for names in search.rounds(store)
    )
    asked = _documents(store, groups, rounds)
    for group, documents in zip(groups, asked, strict=True):
        own, held = _taken(store, group, documents)
        # One that tells of no members says nothing: they may be there all the same.
        view = ConsolidatedStore(store, group, held) if held and any(held.documents) else store
        if group == path and (held is not None or not above):
            metadata = _parse(store, path, own)
            if metadata is None and search.accepts(3):
                metadata = implied(store, prefix_of(path))
            return view, metadata
        if held is not None:
            return view, read(view, path, search)
    raise MetadataError(
        "there are no consolidated metadata here",
        key=location(store, path),
        expected=f"{forms.KEY}, or {forms.MEMBER} in zarr.json; consolidate_metadata writes them",
    )


def _taken(store: Store, path: str, documents: Documents) -> tuple[Documents, Held | None]:
    try:
        return forms.take(documents)
    except ZarrdaskError as error:
        raise error.within(location(store, path)) from error.__cause__


def stamp(store: Store, path: str, search: Search = ANY) -> str:
    """Return what changes when the node's documents are written again, or "" if that costs."""
    prefix = prefix_of(path)
    names = [name for names in search.rounds(store) for name in names]
    return "".join(store.stamp(prefix + name) for name in names)


def write(store: Store, path: str, metadata: Metadata, *, before: Metadata | None = None) -> None:
    """Write a node's documents, and erase those that it should not have.

    Parameters
    ----------
    before : Metadata, optional
        What is there: documents that stay the same are not touched, with whatever another writer
        put in them.
    """
    prefix = prefix_of(path)
    documents = detect.render(metadata)
    if before is not None:
        old = detect.render(before)
        documents = {n: value for n, value in documents.items() if old.get(n) != value}
    if not documents:
        return
    is_array = isinstance(metadata, ArrayMetadata)
    with changing(store, path, whole=False, is_array=is_array) as real:
        for name, value in documents.items():
            if value is None:
                real.erase(prefix + name)
            else:
                real.set(prefix + name, value)


def erase(store: Store, path: str) -> None:
    """Remove a node and everything below it; of a node that is a symbolic link, the link."""
    store.check_erasable([prefix_of(path)])
    with changing(store, path, whole=True) as real:
        remove(real, path)
        if isinstance(real, DraftStore):
            drafts.keep_parent(real, path)


def remove(store: Store, path: str) -> None:
    """Remove a node, whatever consolidated metadata tell of it."""
    prefix = prefix_of(path)
    if store.listable:
        # Documents go first: what is left is no node.
        try:
            for name in detect.names(store):
                store.erase(prefix + name)
        except LinkError:
            pass  # The node is a link, which is removed at once; what it points to stays.
    store.erase_prefix(prefix)


def _members(store: Store, path: str, search: Search = ANY) -> list[tuple[str, Documents]]:
    _, below = store.list_dir(prefix_of(path))
    names = list(filter(_is_name, below))
    documents = _documents(store, [join(path, name) for name in names], search.rounds(store))
    return [
        (name, found)
        for name, found in zip(names, documents, strict=True)
        if _is_member(store, name, found)
        or (search.accepts(3) and _is_implied_member(store, path, name))
    ]


def _is_implied_member(store: Store, path: str, name: str) -> bool:
    if isinstance(store, DraftStore) or _is_reserved(name):
        return False
    return is_implied(store, join(path, name))


def _is_member(store: Store, name: str, documents: Documents) -> bool:
    keys = [key for form in detect.formats_of(store) for key in form.CHILD_NAMES]
    if _is_reserved(name) and not isinstance(store, DraftStore):
        keys = [*v2.CHILD_NAMES]
    return any(documents.get(key) is not None for key in keys)


def _is_reserved(name: str) -> bool:
    """Whether v3 keeps a name for others than nodes (conformance C-29)."""
    return name.startswith("__")


def _is_name(name: str) -> bool:
    """Whether something in a store can be a node: it may be a directory of another purpose."""
    return bool(name.strip(".")) and "\\" not in name


def entries(store: Store, path: str) -> forms.Entries:
    """Return the documents of a group and of every node below it, by path from the group.

    Raises
    ------
    MetadataError
        If one is not JSON.
    UnsupportedError
        If the store can't be listed.
    """
    start = len(prefix_of(path))
    found = {"": forms.parsed("", _documents(store, [path], ANY.rounds(store))[0])}
    groups = [path]
    while groups:
        group = groups.pop(0)
        for name, documents in _members(store, group):
            node = join(group, name)
            below = node[start:]
            found[below] = forms.parsed(below, documents)
            if forms.is_group(found[below]):
                groups.append(node)
    return found


def member_names(store: Store, path: str, search: Search = ANY) -> list[str]:
    """Return the names of the nodes right below a group, be they valid or not.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    held = store.members(path) if isinstance(store, ConsolidatedStore) else None
    return [name for name, _ in _members(store, path, search)] if held is None else held


def children(
    store: Store, path: str, search: Search = ANY
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield the nodes right below a group, by name; for one that is not valid, the error.

    The store is listed once, and each document is read once.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    for name, documents in _members(store, path, search):
        below = join(path, name)
        try:
            metadata = _parse(store, below, documents)
            if metadata is None and search.accepts(3):
                metadata = implied(store, prefix_of(below))
        except ZarrdaskError as error:
            yield name, error
            continue
        if metadata is not None:
            yield name, metadata
