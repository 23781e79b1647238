"""Check that an array is still stored where a chunk is missing.

A missing chunk reads as the fill value. But if the document of the array is missing as well, the
store was erased, moved or unmounted since the array was opened: then its elements are unknown.
"""

from itertools import accumulate

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.unfinished import Marker
from zarrdask.errors import NodeNotFoundError
from zarrdask.formats.metadata import consolidated_documents as forms
from zarrdask.formats.metadata import detect
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh
from zarrdask.storage.listing import key_stamp
from zarrdask.storage.zarr.draft_store import layout_of

#: The versions of the documents that were found, by `StoredChunks.decoding`; see `key_stamp`. They
#: are not looked for again in remote stores, where each costs a request.
FOUND = dict[str, str]()


def check_still_stored(chunks: StoredChunks) -> None:
    """Check that an array with a missing chunk is still stored.

    Local stores are checked by each call, remote ones until the array is found once in a process
    while no writer of this machine creates it. Nothing is checked if the document of the array was
    not read from the store, as for an array that is being written. If the array is stored, but
    the write that created it was killed, this warns.

    Raises
    ------
    NodeNotFoundError
        If the document of the array is missing, too.
    """
    if not chunks.is_stored or (not chunks.costs.checks and chunks.decoding in FOUND):
        return
    store = fresh(chunks.store)
    version = _document_version(store, chunks)
    if version is None and not _is_consolidated(store, chunks):
        raise NodeNotFoundError(
            "the array was removed after it was opened: a chunk and the metadata document are "
            "missing, so that the elements are unknown; check that the store is still there (was "
            "it moved, erased or unmounted?), and open the array again",
            key=chunks.location,
        )
    # A later write of the array would have written another document.
    if version and version == FOUND.get(chunks.decoding):
        return
    # A writer that runs now may be killed later, and leaves the document as it is.
    if not Marker(store, chunks.prefix).warn(once=True):
        FOUND[chunks.decoding] = version or ""


def _document_version(store: Store, chunks: StoredChunks) -> str | None:
    """Return the version of the document, "" if that is unknown, or None if there is none."""
    own = chunks.metadata.format.node_documents
    # Another writer may have upgraded the array to another format.
    others = [name for name in detect.names(layout_of(store)) if name in detect.node_names()]
    for name in dict.fromkeys((*own, *others)):
        key = chunks.prefix + name
        version = key_stamp(store, key)
        if version or store.get(key) is not None:
            return version
    return None


def _is_consolidated(store: Store, chunks: StoredChunks) -> bool:
    """Whether the consolidated metadata of a group above has the documents of an array.

    Some writers keep no others.
    """
    path = chunks.prefix.rstrip("/")
    groups = ["", *accumulate(path.split("/")[:-1], lambda above, name: f"{above}/{name}")]
    for group in groups if path else ():
        start = f"{group}/" if group else ""
        documents = {name: store.get(start + name) for name in (*detect.all_names(), forms.KEY)}
        held = forms.split_documents(documents)[1]
        if held is not None and path[len(start) :] in held.documents:
            return True
    return False
