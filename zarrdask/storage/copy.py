"""Values that go from one store to another as they are: by the kernel, where both are local."""

import os
from collections.abc import Sequence
from errno import EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP, EPERM, EXDEV
from functools import partial

from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.system import pread, pwrite
from zarrdask.storage.v3_draft import DraftStore

#: Why the kernel may be unable to copy between two files: then the bytes pass through here.
_UNABLE = frozenset({EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP, EPERM, EXDEV})
_BLOCK = 2**22


def copy_values(source: Store, target: Store, keys: Sequence[tuple[str, str]]) -> list[int]:
    """Copy values from one store to another.

    Parameters
    ----------
    keys : sequence of (str, str)
        The key there, and the key here.

    Returns
    -------
    list of int
        The sizes of those that were there.

    Raises
    ------
    StoreError
        If a store fails.
    """
    sizes = []
    if keys and local_value(source, keys[0][0]) and local_value(target, keys[0][1]):
        for there, here in keys:
            found, place = local_value(source, there), local_value(target, here)
            if found is not None and place is not None:
                sizes += _by_kernel(found, place)
        return sizes
    values = source.get_many([key for key, _ in keys], Scratch())
    for value, (_, key) in zip(values, keys, strict=True):
        if value is not None:
            target.set(key, value)
            sizes.append(len(value))
    return sizes


def local_value(store: Store, key: str) -> tuple[LocalStore, str] | None:
    """Return the directory that a store is and the file's key there, if a value is one file."""
    if isinstance(store, DraftStore):
        if key.rpartition("/")[2] == "c":
            return None  # the chunk of an array without axes may be in two places
        key, store = store.real(key), store.inner
    return (store, key) if type(store) is LocalStore else None


def _by_kernel(source: tuple[LocalStore, str], target: tuple[LocalStore, str]) -> list[int]:
    """Copy a file, and return its size, if it is there."""
    with source[0].opened(source[1]) as (fd, size):
        if fd < 0:
            return []
        target[0].replace(target[1], partial(_copy, fd, size))
        return [size]


def _copy(source: int, size: int, target: int) -> None:
    """Copy a file's bytes; file systems that can share them do that."""
    done = 0
    try:
        # macOS and Windows lack this call.
        while done < size and hasattr(os, "copy_file_range"):
            found = os.copy_file_range(source, target, size - done)
            if not found:
                break
            done += found
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    while data := pread(source, _BLOCK, done):
        done += pwrite(target, data, done)
