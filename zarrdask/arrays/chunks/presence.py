"""Check that an array is still stored where a chunk is missing.

A missing chunk reads as the fill value. But if the document of the array is missing as well, the
store was erased, moved or unmounted since the array was opened: then its elements are unknown.
"""

from itertools import accumulate

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.errors import NodeNotFoundError
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh
from zarrdask.storage.listing import key_stamp
from zarrdask.storage.zarr import consolidated_documents as forms
from zarrdask.storage.zarr import detect

#: The remote arrays whose documents were found, by `StoredChunks.decoding`: each costs a request.
_FOUND = set[str]()


def check_still_stored(chunks: StoredChunks) -> None:
    """Check that an array with a missing chunk is still stored.

    Local stores are checked by each call, remote ones until the array is found once in a process.
    Nothing is checked if the document of the array was not read from the store, as that of an
    array that is being written.

    Raises
    ------
    NodeNotFoundError
        If the document of the array is missing, too.
    """
    if not chunks.is_stored or (chunks.is_remote and chunks.decoding in _FOUND):
        return
    store = fresh(chunks.store)
    if not (_has_document(store, chunks) or _is_consolidated(store, chunks.prefix)):
        raise NodeNotFoundError(
            "the array was removed after it was opened: a chunk and the metadata document are "
            "missing, so that the elements are unknown; check that the store is still there (was "
            "it moved, erased or unmounted?), and open the array again",
            key=chunks.location,
        )
    if chunks.is_remote:
        _FOUND.add(chunks.decoding)


def _has_document(store: Store, chunks: StoredChunks) -> bool:
    own = chunks.metadata.format.node_documents
    # Another writer may have upgraded the array to another format.
    others = [name for name in detect.names(store) if name in detect.node_names()]
    return any(_exists(store, chunks.prefix + name) for name in dict.fromkeys((*own, *others)))


def _exists(store: Store, key: str) -> bool:
    return bool(key_stamp(store, key)) or store.get(key) is not None


def _is_consolidated(store: Store, prefix: str) -> bool:
    """Whether the consolidated metadata of a group above has the documents of an array.

    Some writers keep no others.
    """
    path = prefix.rstrip("/")
    groups = ["", *accumulate(path.split("/")[:-1], lambda above, name: f"{above}/{name}")]
    for group in groups if path else ():
        start = f"{group}/" if group else ""
        documents = {name: store.get(start + name) for name in (*detect.all_names(), forms.KEY)}
        held = forms.split_documents(documents)[1]
        if held is not None and held.documents.get(path[len(start) :]):
            return True
    return False
