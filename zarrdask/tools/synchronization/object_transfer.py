"""Copy stored objects that have not changed since they were listed."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from toolz import partition_all

from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.threads import on_each
from zarrdask.storage.local.file_times import TimedFile
from zarrdask.storage.locks.whole_objects import WholeObjects
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.storage.transfer import copy_descriptor, store_values
from zarrdask.tools.synchronization.contents import is_local
from zarrdask.tools.verification.object_listing import Listing, is_version, md5_of

#: The number of keys whose values are requested together.
_KEYS_PER_CALL = 256


class _ChangedFileError(Exception):
    """A file has changed while it was copied."""


def copy_objects(
    source: StorePath,
    target: StorePath,
    listing: Listing,
    keys: Sequence[str],
    copied: WrittenObjects | None = None,
) -> tuple[int, list[str]]:
    """Copy objects to another node; return the bytes, and the keys of objects that have changed.

    The versions and digests of those in the target are added to `copied`.
    """
    objects = WholeObjects(target.store, target.prefix)
    if is_local(source) and is_local(target):
        copy = partial(_copy_file, source, target, listing, copied)
        sizes = on_each(partial(objects.change, copy), keys, None)
        changed = [key for key, size in zip(keys, sizes, strict=True) if size is None]
        return sum(size or 0 for size in sizes), changed
    total, changed = 0, list[str]()
    for part in partition_all(_KEYS_PER_CALL, keys):
        versions = objects.versions(part)
        values = _read(source, listing, list(part), changed)
        total += _store_values(target, listing, values, copied)
        for key in objects.outdated(versions):
            with objects.hold(key):
                _store_values(target, listing, _read(source, listing, [key], changed), copied)
    return total, changed


def _store_values(
    target: StorePath,
    listing: Listing,
    values: Iterable[tuple[str, Buffer]],
    copied: WrittenObjects | None,
) -> int:
    """Store values, and return their bytes."""
    if copied is None or not is_local(target):
        values = values if copied is None else _noted(values, listing, copied)
        return sum(store_values(target.store, ((target.prefix + k, v) for k, v in values)))
    total = 0
    for key, value in values:
        stamp = _store_file(target, key, value)
        copied.add_value(key, value, stamp, md5_of(listing[key]))
        total += len(value)
    return total


def _noted(
    values: Iterable[tuple[str, Buffer]], listing: Listing, copied: WrittenObjects
) -> Iterator[tuple[str, Buffer]]:
    for key, value in values:
        copied.add_value(key, value, md5=md5_of(listing[key]))
        yield key, value


def erase_objects(target: StorePath, keys: Sequence[str]) -> None:
    """Erase objects of a node."""
    objects = WholeObjects(target.store, target.prefix)
    versions = objects.versions(keys)
    target.store.erase_values([target.prefix + key for key in keys])
    for key in objects.outdated(versions):
        with objects.hold(key):
            target.store.erase(target.prefix + key)


def read_objects(
    source: StorePath, listing: Listing, keys: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the values of objects, and the keys that have changed since they were listed."""
    changed = list[str]()
    values = {key: bytes(value) for key, value in _read(source, listing, keys, changed)}
    return values, changed


def store_document(
    target: StorePath, key: str, value: bytes, copied: WrittenObjects | None = None
) -> None:
    """Store a document; the time of its file does not identify a version."""
    stamp = None
    if is_local(target):
        stamp = _store_file(target, key, value)
    else:
        target.store.set(target.prefix + key, value)
    if copied is not None:
        copied.add_value(key, value, stamp)


def _store_file(target: StorePath, key: str, value: Buffer) -> str:
    """Store a value as a file that has a time of its own, and return the stamp of this version."""
    stamps = list[str]()

    def write(file: int) -> None:
        stamps.append(TimedFile(file).write(value))

    target.store.replace(target.prefix + key, write)  # type: ignore[attr-defined]
    return stamps[-1]


def _read(
    source: StorePath, listing: Listing, keys: Sequence[str], changed: list[str]
) -> Iterator[tuple[str, Buffer]]:
    """Yield the values that are those that were listed; append the other keys to `changed`."""
    values = source.store.get_many([source.prefix + key for key in keys], Scratch())
    for key, value in zip(keys, values, strict=True):
        entry = listing[key]
        if value is None or not is_version(value, entry) or _has_another_stamp(source, key, entry):
            changed.append(key)
        else:
            yield key, value


def _has_another_stamp(source: StorePath, key: str, entry: StoredObject) -> bool:
    if not is_local(source):
        return False
    now = source.store.stat(source.prefix + key)
    return now is None or now.stamp != entry.tag


def _copy_file(
    source: StorePath, target: StorePath, listing: Listing, copied: WrittenObjects | None, key: str
) -> int | None:
    """Copy a file with its time, and return its size; None if it has changed since the listing."""
    with source.store.opened(source.prefix + key) as (fd, size):  # type: ignore[attr-defined]
        original = TimedFile(fd)
        if fd < 0 or original.stamp != listing[key].tag or size != listing[key].size:
            return None

        def write(file: int) -> None:
            hashed = None if copied is None else copied.hashing()
            copy_descriptor(fd, size, file, hashed)
            if original.stamp != listing[key].tag:
                raise _ChangedFileError
            written = TimedFile(file)
            written.keep_time(original)
            if copied is not None:
                copied.add_file(key, size, written.stamp, hashed)

        try:
            target.store.replace(target.prefix + key, write)  # type: ignore[attr-defined]
        except _ChangedFileError:
            return None
        return int(size)
