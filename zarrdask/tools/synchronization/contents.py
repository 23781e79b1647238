"""Find the objects that differ in two copies, reading as little as possible."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from toolz import partition_all

from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.threads import on_each
from zarrdask.storage.local.file_times import TimedFile
from zarrdask.storage.local.local_store import as_local
from zarrdask.tools.verification.object_listing import (
    Listing,
    compared,
    has_digest,
    have_equal_digests,
)

By = Literal["versions", "digests", "sizes"]
#: Digests of objects by key.
Digests = dict[str, str]

#: The number of keys whose values are requested together.
_KEYS_PER_CALL = 256


def differing_keys(
    source: StorePath,
    target: StorePath,
    listings: tuple[Listing, Listing],
    digests: tuple[Digests, Digests],
    keys: list[str],
    by: By,
    *,
    keep_times: bool,
) -> set[str]:
    """Return the keys, out of those that both copies have, whose values differ.

    `digests` are those that need no reading. With `keep_times`, local files that were read and
    found equal get equal times.
    """
    of_source, of_target = listings
    are_local = is_local(source) and is_local(target)
    different, unknown = set[str](), list[str]()
    for key in keys:
        one, other = of_source[key], of_target[key]
        equal = _are_equal(one, other, by, are_local=are_local)
        if equal is None:
            equal = compared(digests[0].get(key), digests[1].get(key))
        if equal is None:
            unknown.append(key)
        elif not equal:
            different.add(key)
    digested = [key for key in unknown if key in digests[0] or key in digests[1]]
    for part in partition_all(_KEYS_PER_CALL, digested):
        different |= {*_other_values(source, target, digests, list(part))}
    unknown = sorted({*unknown} - {*digested})
    if are_local:
        compare = partial(_have_equal_files, source, target, by, keep_times=keep_times)
        equals = on_each(compare, unknown, None)
        return different | {k for k, equal in zip(unknown, equals, strict=True) if not equal}
    for part in partition_all(_KEYS_PER_CALL, unknown):
        different |= {*_different_values(source, target, list(part))}
    return different


def is_local(node: StorePath) -> bool:
    """Whether the values are files of a local directory."""
    return as_local(node.store) is not None


def _are_equal(one: StoredObject, other: StoredObject, by: By, *, are_local: bool) -> bool | None:
    """Whether listings show that two values are equal, or that they differ; None if neither."""
    if one.size != other.size:
        return False
    if by == "sizes":
        return True
    if are_local:
        # A file that was copied has the time of its source.
        return True if by == "versions" and one.modified == other.modified else None
    return have_equal_digests(one, other)


def _have_equal_files(
    source: StorePath, target: StorePath, by: By, key: str, *, keep_times: bool
) -> bool:
    """Compare two files by their bytes; equal ones get equal times, if they may."""
    with (
        source.store.opened(source.prefix + key) as (fd, size),  # type: ignore[attr-defined]
        target.store.opened(target.prefix + key) as (other_fd, _),  # type: ignore[attr-defined]
    ):
        if min(fd, other_fd) < 0:
            return False
        one, other = TimedFile(fd), TimedFile(other_fd)
        before = one.stamp
        if not one.has_bytes_of(other, size):
            return False
        if keep_times and by == "versions" and one.stamp == before:
            other.keep_time(one)
        return True


def _other_values(
    source: StorePath, target: StorePath, digests: tuple[Digests, Digests], keys: list[str]
) -> Iterator[str]:
    """Yield the keys of the values that differ; only the side is read whose digest is not known.

    The digests of equal values are known then.
    """
    for has_target in (True, False):
        node = source if has_target else target
        unknown, known = digests if has_target else digests[::-1]
        some = [key for key in keys if (key in digests[1]) == has_target]
        values = node.store.get_many([node.prefix + key for key in some], Scratch())
        for key, value in zip(some, values, strict=True):
            if value is None or not has_digest(value, known[key]):
                yield key
            else:
                unknown[key] = known[key]


def _different_values(source: StorePath, target: StorePath, keys: list[str]) -> Iterator[str]:
    """Yield the keys of the values that differ, by their bytes."""
    pairs = (
        node.store.get_many([node.prefix + key for key in keys], Scratch())
        for node in (source, target)
    )
    for key, one, two in zip(keys, *pairs, strict=True):
        if one is None or two is None or one != two:
            yield key
