"""Split a JSON document that consists of thousands of others, without parsing these. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

#: Where some objects begin and end.
Spans: TypeAlias = tuple[list[int], list[int]]
_OPEN, _QUOTE = b'{"'
#: A table for `bytes.translate`: 1 for quotes and the braces of objects, 0 for all other bytes.
_IS_MARK = bytes(byte in b'"{}' for byte in range(256))
#: The maximum number of bytes between the beginning of a member's name and its value.
_MAX_NAME_BYTES = 128


class Members(Mapping[str, bytes]):
    """The members of an object in a document, not parsed, by their names."""

    def __init__(self, data: bytes, names: Iterable[str], spans: Spans) -> None:
        self._data = data
        self._spans = spans
        self._numbers = dict(zip(names, range(len(spans[0])), strict=True))

    def __getitem__(self, name: str) -> bytes:
        number = self._numbers[name]
        starts, ends = self._spans
        return self._data[starts[number] : ends[number]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def split_members(data: bytes, names: tuple[str, ...]) -> tuple[bytes, Members] | None:
    """Return a document without the members of one of its objects, and these members, unparsed.

    `names` lead to the object, whose members must be objects, too. It takes a quarter of the time
    of parsing the document. None means that the document has to be parsed, be it valid or not:
    it is not UTF-8, its braces don't match, or the object or its members were not found.

    >>> rest, members = split_members(b'{"a": {"x": {"b": 1}, "y": {}}, "c": 2}', ("a",))
    >>> rest, dict(members)
    (b'{"a": {}, "c": 2}', {'x': b'{"b": 1}', 'y': b'{}'})
    """
    if b"\0" in data:
        return None
    braces = _braces(data)
    if not braces.match():
        return None
    start, end = 0, len(data)
    for level, name in enumerate(names, 2):
        pattern = re.compile(rb'[{,\s]"%s"\s*:\s*\Z' % re.escape(name.encode()))
        found = [
            span
            for span in zip(*braces.objects(level, start, end), strict=True)
            if pattern.search(data, max(span[0] - _MAX_NAME_BYTES, 0), span[0])
        ]
        if len(found) != 1:
            return None
        start, end = found[0]
    starts, ends = braces.objects(len(names) + 2, start, end)
    # Each member becomes a zero, so that only the names are parsed.
    between = (data[a:b] for a, b in zip([start, *ends], [*starts, end], strict=True))
    try:
        pairs = json.loads(b"0".join(between), object_pairs_hook=tuple)
    except ValueError:
        return None
    members = [name for name, value in pairs if value == 0]
    # Fewer if a name is repeated, or if a value is not an object.
    if not len(starts) == len(pairs) == len(members) == len({*members}):
        return None
    return data[: start + 1] + data[end - 1 :], Members(data, members, (starts, ends))


@dataclass(frozen=True)
class _Braces:
    """The braces of all objects in a document."""

    positions: npt.NDArray[np.intp]
    #: The level of the object that each brace opens or closes, from 1.
    levels: npt.NDArray[np.int32]
    opens: npt.NDArray[np.bool_]

    def match(self) -> bool:
        """Whether there is one object, which has all others in it."""
        outer = np.flatnonzero(self.levels == 1)
        return len(outer) == 2 and outer[1] == len(self.levels) - 1 and np.min(self.levels) == 1

    def objects(self, level: int, start: int, end: int) -> Spans:
        """Return where the objects of one level begin and end, of those between two positions."""
        first, last = np.searchsorted(self.positions, (start, end))
        inside = np.flatnonzero(self.levels[first:last] == level) + first
        is_start = self.opens[inside]
        positions = self.positions[inside]
        return positions[is_start].tolist(), (positions[~is_start] + 1).tolist()


def _braces(data: bytes) -> _Braces:
    """Return the braces in a document that are not in texts."""
    if b"\\" in data:
        # A quote after a backslash does not end a text, unless the backslash is escaped itself.
        data = data.replace(rb"\\", b"__").replace(rb"\"", b"__")
    positions = np.flatnonzero(np.frombuffer(data.translate(_IS_MARK), bool))
    marks = np.frombuffer(data, np.uint8)[positions]
    is_quote = marks == _QUOTE
    # A brace is in a text after an odd number of quotes. Only the parity of the sum counts, so it
    # may overflow.
    is_brace = np.cumsum(is_quote, dtype=np.uint8) % 2 == 0
    is_brace &= ~is_quote
    positions, opens = positions[is_brace], marks[is_brace] == _OPEN
    steps = np.where(opens, np.int32(1), np.int32(-1))
    return _Braces(positions, np.cumsum(steps, dtype=np.int32) + ~opens, opens)
