"""Parts of stored values: where they are, and how they are joined and cut."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from zarrdask.errors import SelectionError
from zarrdask.storage.keys import check_key

Buffer = bytes | bytearray | memoryview
#: Start and length.
Range = tuple[int, int]
#: A key, and what is wanted of its value: where it starts (from the end, if negative), and how
#: long it is, or None for all that follows.
KeyRange = tuple[str, tuple[int, int | None]]
#: A key, and what to put into its value, and where.
KeyValue = tuple[str, int, Buffer]


def by_key(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return where each key stands in a list."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        found[key].append(at)
    return found


def parts_by_key(key_start_values: Iterable[KeyValue]) -> dict[str, list[tuple[int, Buffer]]]:
    """Return the parts to be stored of each value, by rising start.

    Raises
    ------
    MetadataError
        If one is no key.
    SelectionError
        If parts of a value overlap, or start before it (conformance B-82).
    """
    found: dict[str, list[tuple[int, Buffer]]] = defaultdict(list)
    for key, start, value in key_start_values:
        found[check_key(key)].append((start, memoryview(value).cast("B")))
    for key, parts in found.items():
        parts.sort(key=lambda part: (part[0], len(part[1])))
        overlap = any(at + len(part) > then for (at, part), (then, _) in pairwise(parts))
        if overlap or parts[0][0] < 0:
            raise SelectionError(
                "parts to be stored must not overlap, nor start before the value",
                key=key,
                found=[(start, len(part)) for start, part in parts],
                expected="(start, length) pairs apart from each other, from 0",
            )
    return found


def cut(value: Buffer, start: int, length: int | None) -> memoryview:
    """Return part of a value without copying it."""
    view = memoryview(value)
    if start < 0:
        start = max(len(view) + start, 0)
    return view[start : None if length is None else start + length]


def coalesce(ranges: Sequence[Range], gap: int, limit: int) -> list[tuple[Range, list[Range]]]:
    """Join ranges that are at most `gap` bytes apart, up to `limit` bytes together.

    Parameters
    ----------
    ranges : sequence of (start, length)
        By rising start; they may overlap.

    Returns
    -------
    list of ((start, length), list of (offset in the joined range, length))

    Examples
    --------
    >>> coalesce([(0, 4), (6, 2), (90, 5)], gap=2, limit=100)
    [((0, 8), [(0, 4), (6, 2)]), ((90, 5), [(0, 5)])]
    """
    joined: list[tuple[Range, list[Range]]] = []
    first, end, members = 0, 0, []  # type: tuple[int, int, list[Range]]
    for start, length in ranges:
        stop = start + length
        if members and (start - end > gap or max(stop, end) - first > limit):
            joined.append(((first, end - first), members))
            members = []
        if not members:
            first, end = start, stop
        members.append((start - first, length))
        end = max(end, stop)
    if members:
        joined.append(((first, end - first), members))
    return joined
