"""Ranges of several values -> requests: ranges of a value that lie close are one request."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolz import groupby

from zarrdask.storage.byte_ranges import Range, coalesce

#: Ranges are joined up to this many bytes: a longer request would hold up those after it.
JOIN_LIMIT = 2**24


class RangeRequest(NamedTuple):
    """One request for a range of a value: `length` bytes from `start` on, or all if that is None.

    A negative start counts from the end. `members` has, for each range that the request serves, its
    position in the call, its offset in the answer and its length.
    """

    key: str
    start: int
    length: int | None
    members: Sequence[tuple[int, int, int | None]]


def join_ranges(ranges: Sequence[tuple[str, int, int | None]], gap: int) -> Iterator[RangeRequest]:
    """Yield the requests for ranges (key, start, length) of values, in any order.

    Two ranges of a value are one request if at most `gap` bytes lie between them.

    Examples
    --------
    >>> for request in join_ranges([("a", 4, 2), ("b", -4, None), ("a", 0, 2)], gap=8):
    ...     print(request.key, request.start, request.length, request.members)
    a 0 6 [(2, 0, 2), (0, 4, 2)]
    b -4 None [(1, 0, None)]
    """
    for key, places in groupby(lambda at: ranges[at][0], range(len(ranges))).items():
        bounded = list[tuple[Range, int]]()
        for at in places:
            _, start, length = ranges[at]
            if start >= 0 and length is not None:
                bounded.append(((start, length), at))
            else:
                yield RangeRequest(key, start, length, [(at, 0, length)])
        bounded.sort()
        members = iter(bounded)
        for (start, length), parts in coalesce([each for each, _ in bounded], gap, JOIN_LIMIT):
            cuts = [(next(members)[1], offset, size) for offset, size in parts]
            yield RangeRequest(key, start, length, cuts)
