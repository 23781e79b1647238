"""The message for a path without a node, with advice for the usual mistakes."""

import os
from collections.abc import Iterator
from contextlib import suppress

from zarrdask.arrays.hierarchy.changes.journal import unfinished
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.stores_below import (
    MAX_LISTED,
    MAX_NAMES,
    ROOTS,
    advice_for_bucket,
    advice_for_directory,
)
from zarrdask.display.words import nearest
from zarrdask.errors import MetadataError, NodeExistsError, StoreError, ZarrdaskError
from zarrdask.formats.metadata.draft.entry import KEY, EntryPoint
from zarrdask.formats.metadata.json import parse_json
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.listing import key_stamp, stores_above
from zarrdask.storage.refusals import s3_url

#: How many directories up nodes are searched for where each costs a request.
_MAX_LEVELS = 4
#: Modes, which other software takes as the second argument.
_MODES = ("r", "r+", "a", "w", "w-")
#: The documents that are looked for in the directories above a store.
DOCUMENTS_ABOVE = (KEY, ".zarray")
#: The first bytes of files whose chunks references can present as Zarr, and the names of formats.
_OTHER_FORMATS = {
    b"\x89HDF\r\n\x1a\n": "NetCDF or HDF5",
    b"CDF": "NetCDF",
    b"GRIB": "GRIB",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
}
#: The directories of a draft hierarchy.
_DRAFT_DIRECTORIES = ("meta", "data")


def missing_node(node: StorePath, text: str) -> str:
    """Return the message for a path that was passed to a function, as `why_missing` does.

    A mode is the second argument in other software, and a path here.
    """
    advice = why_missing(node, text)
    url = s3_url(node.store.url)
    if url is not None:
        return f"{advice}; this is a URL of S3: pass {url}"
    if node.path in _MODES:
        return f"{advice}; if {node.path!r} is meant as the mode, pass mode={node.path!r} by name"
    return advice


def why_missing(node: StorePath, text: str = "there is no array or group here") -> str:
    """Return the message for a path without a node, with a hint if the mistake is a usual one.

    `text` is the message without a hint.
    """
    store, path = node
    if _is_unlisted(node):
        return (
            f"{text}, by the consolidated metadata of its group, which is out of date: call "
            "consolidate_metadata, or open the group with consolidated=False"
        )
    write = _unfinished_write(node)
    if write is not None:
        return f"{text}, but {write}"
    array = _array_above(node)
    if array is not None:
        return f"{text}: it is inside an array, {array}, which can't hold other nodes"
    for url, v3_document, v2_document in _documents_above(store, _MAX_LEVELS):
        if EntryPoint.is_in(v3_document):
            component = _component(f"{store.url[len(url) :]}/{path}".strip("/"))
            return (
                f"{text}: it is inside a hierarchy of the v3 draft; open that at its root, "
                f"{url}" + (f", with component={component!r}" if component else "")
            )
        if v2_document is not None or _is_array(v3_document):
            return f"{text}: it is inside an array, {url}"
    if store.capabilities.directories and node.layout.has_directories:
        directory = f"{store.identity.directory}/{path}".rstrip("/")
        if os.path.isdir(directory):
            return text + advice_for_directory(directory)
        if os.path.exists(directory):
            return f"{text}: {_file_advice(directory)}"
        text = f"{text}: there is no such directory"
    return _with_names(node, text + advice_for_bucket(node))


def _with_names(node: StorePath, text: str) -> str:
    """Return a message with the names that there are in the directory of a node."""
    name, names = _names_beside(node)
    near = nearest(name, names)
    if near is not None:
        return f"{text}; the nearest name is {near!r}"
    if node.path and 0 < len(names) <= MAX_LISTED:
        start = "names there are" if len(names) > 1 else "only name there is"
        return f"{text}; the {start} {', '.join(map(repr, names))}"
    return text


def _is_unlisted(node: StorePath) -> bool:
    """Whether there is a document of the node which consolidated metadata does not have."""
    if not node.is_cached:
        return False
    keys = [node.prefix + name for name in ROOTS]
    try:
        values = node.current.store.get_many(keys, Scratch())
        return any(value is not None for value in values)
    except ZarrdaskError:
        return False


def _unfinished_write(node: StorePath) -> str | None:
    """Return how an interrupted write of a node, or of one right below it, is resumed."""
    try:
        goes_on = unfinished(node)
        if goes_on is not None:
            return f"an unfinished write: {goes_on}"
        # A dataset is recorded by one of its arrays.
        if node.store.capabilities.is_listed_fast:
            for name in node.store.list_dir(node.prefix)[1][:MAX_NAMES]:
                goes_on = unfinished(node.join(name))
                if goes_on is not None:
                    return f"an unfinished write at {name!r}: {goes_on}"
    except ZarrdaskError:
        pass  # this is advice only
    return None


def _array_above(node: StorePath) -> str | None:
    """Return the location of an array among the paths above a node; None if there is none.

    In a remote store only the path right above is looked at, unless that is the root.
    """
    store, path = node
    parts = path.split("/")[:-1]
    parents = ["/".join(parts[:length]) for length in range(len(parts), -1, -1)] if path else []
    for parent in parents if store.capabilities.costs.checks else parents[: min(len(parts), 1)]:
        prefix = f"{parent}/" if parent else ""
        try:
            documents = store.get_many([prefix + name for name in DOCUMENTS_ABOVE], Scratch())
            v3_document, v2_document = (None if v is None else bytes(v) for v in documents)
        except ZarrdaskError:
            return None
        if v2_document is not None or _is_array(v3_document):
            return StorePath(store, parent).location
    return None


def _file_advice(path: str) -> str:
    """Return the advice for a file where a node is expected, by its first bytes."""
    head = b""
    if os.path.isfile(path):  # to open a FIFO would block
        with suppress(OSError), open(path, "rb") as file:
            head = file.read(8)
    for start, kind in _OTHER_FORMATS.items():
        if head.startswith(start):
            return (
                f"this is a {kind} file; to read its chunks as Zarr, make references with "
                "kerchunk or VirtualiZarr and open reference:// with them"
            )
    return "this is a file; pass the directory of the array or the group"


def check_around(store: Store) -> None:
    """Check that the directory of a store is not inside an array's, where no nodes can be."""
    StorePath(store, "").check_directories()
    array = array_around(store)
    if array is not None:
        raise below_array_error(array)


def below_array_error(location: str) -> NodeExistsError:
    """Return the error for a node that would be below the array at a location."""
    return NodeExistsError(
        "this is an array, which can't hold other nodes; create the node in a group", key=location
    )


def array_around(store: Store) -> str | None:
    """Return the location of an array whose directory a store is in; None if there is none.

    In a remote store, only the directory right above is read.
    """
    for url, v3_document, v2_document in _documents_above(store, 1):
        if v2_document is not None or _is_array(v3_document):
            return url
        if v3_document is not None:
            return None
    return None


def _is_array(document: bytes | None) -> bool:
    """Whether a ``zarr.json`` describes an array."""
    try:
        return document is not None and parse_json(document, KEY).get("node_type") == "array"
    except MetadataError:
        return False


def _names_beside(node: StorePath) -> tuple[str, list[str]]:
    """Return the name of a node and the other names in its directory.

    Only local directories and dicts are searched, as other stores may take requests.
    """
    store, path = node
    if not store.capabilities.is_listed_fast:
        return path, []
    above, _, name = path.rpartition("/")
    prefix = f"{above}/" if above else ""
    if not path:
        parent = next(stores_above(store, 0), None)
        if parent is None:
            return path, []
        store, name = parent, os.path.basename(store.url)
    try:
        _, names = store.list_dir(prefix)
    except ZarrdaskError:
        return name, []
    return name, sorted(n for n in names if n != name)


def _documents_above(store: Store, levels: int) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Yield the location of each directory above a store, its ``zarr.json`` and its ``.zarray``."""
    for above in stores_above(store, levels):
        try:
            # On a local disk, looking whether a document is there takes a fraction of reading it.
            may_exist = (key_stamp(above, key) for key in DOCUMENTS_ABOVE)
            if not above.capabilities.directories or any(may_exist):
                values = above.get_many(DOCUMENTS_ABOVE, Scratch())
                v3_document, v2_document = (None if v is None else bytes(v) for v in values)
                yield above.url, v3_document, v2_document
        except StoreError:
            return  # access to the store does not imply access to the directories around it


def _component(path: str) -> str:
    """Return the path of the node that a path in the ``meta`` or ``data`` directory belongs to."""
    directory, _, rest = path.partition("/")
    if directory not in _DRAFT_DIRECTORIES:
        return path
    name, _, below = rest.partition("/")
    return below if name == "root" else rest
