"""Copy values from one store to another unchanged: by the kernel, if both stores are local."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.file_calls import NO_COPY, pread, pwrite
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.zarr.draft_store import DraftStore

#: Bytes that this process copies at a time.
_BLOCK_BYTES = 2**22


def copy_values(source: Store, target: Store, keys: Sequence[tuple[str, str]]) -> list[int]:
    """Copy the values of pairs of keys from one store to another; return their sizes in bytes.

    Missing values are left out.
    """
    sizes = []
    if keys and local_value(source, keys[0][0]) and local_value(target, keys[0][1]):
        for source_key, target_key in keys:
            source_file = local_value(source, source_key)
            target_file = local_value(target, target_key)
            if source_file is not None and target_file is not None:
                sizes += _by_kernel(source_file, target_file)
        return sizes
    values = source.get_many([key for key, _ in keys], Scratch())
    pairs = zip((key for _, key in keys), values, strict=True)
    return store_values(target, ((key, value) for key, value in pairs if value is not None))


def store_values(store: Store, values: Iterable[tuple[str, Buffer]]) -> list[int]:
    """Store values by key, and return their sizes."""
    sizes = list[int]()

    def noted() -> Iterator[tuple[str, Buffer]]:
        for key, value in values:
            sizes.append(len(value))
            yield key, value

    store.set_many(noted())
    return sizes


def local_value(store: Store, key: str) -> tuple[LocalStore, str] | None:
    """Return the local store and the key there of a value that is one file, else None."""
    if isinstance(store, DraftStore):
        if key.rpartition("/")[2] == "c":
            return None  # the chunk of an array without axes may be at one of two keys
        key, store = store.layout.real(key), store.inner
    return (store, key) if type(store) is LocalStore else None


def _by_kernel(source: tuple[LocalStore, str], target: tuple[LocalStore, str]) -> list[int]:
    """Copy a file, and return its size in a list, which is empty if there is no file."""
    with source[0].opened(source[1]) as (fd, size):
        if fd < 0:
            return []
        target[0].replace(target[1], partial(copy_descriptor, fd, size))
        return [size]


def copy_file(source: str, target: int) -> None:
    """Copy the bytes of a file to an empty one, given its descriptor."""
    with open(source, "rb") as read:
        copy_descriptor(read.fileno(), os.fstat(read.fileno()).st_size, target)


def copy_descriptor(source: int, size: int, target: int, hashed: Any = None) -> None:
    """Copy the bytes of a file; some file systems share them instead.

    `hashed`, if given, is an object of hashlib that is updated by them.
    """
    done = 0
    try:
        # macOS and Windows lack this call.
        while hashed is None and done < size and hasattr(os, "copy_file_range"):
            count = os.copy_file_range(source, target, size - done)
            if not count:
                break
            done += count
    except OSError as error:
        if error.errno not in NO_COPY:
            raise
    while data := pread(source, _BLOCK_BYTES, done):
        written = pwrite(target, data, done)
        if hashed is not None:
            hashed.update(data[:written])
        done += written
