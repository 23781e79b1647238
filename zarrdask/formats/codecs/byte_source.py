"""Stored values that can be read in parts: codecs use them instead of a store."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from zarrdask.errors import TruncatedError
from zarrdask.formats.byte_ranges import Range, Value
from zarrdask.formats.codecs.codec import Buffer


@dataclass(frozen=True)
class HeldValue:
    """A value in memory."""

    data: Buffer

    @property
    def size(self) -> int:
        """The size in bytes."""
        return memoryview(self.data).nbytes

    def part(self, start: int, length: int) -> Buffer | None:
        view = memoryview(self.data)
        start = max(len(view) + start, 0) if start < 0 else start
        return view[start : start + length]

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        return (self.part(start, length) for start, length in ranges)


@dataclass(frozen=True)
class PartOfValue:
    """A part of a value, such as a shard within a shard."""

    value: Value
    offset: int
    size: int

    def part(self, start: int, length: int) -> Buffer | None:
        start = max(self.size + start, 0) if start < 0 else start
        return self.value.part(self.offset + start, min(length, max(self.size - start, 0)))

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        within = ((s, max(min(n, self.size - s), 0)) for s, n in ranges)
        return self.value.parts([(self.offset + start, length) for start, length in within])


def exact(
    values: Iterator[Buffer | None], ranges: Sequence[Range], names: Sequence[Any]
) -> Iterator[Buffer]:
    """Yield the parts of a value, given their ranges, after a check of their lengths.

    `names` are the names of the chunks in these parts, for errors.
    """
    for data, (start, size), name in zip(values, ranges, names, strict=True):
        if data is None or len(data) != size:
            raise TruncatedError(
                "the index of the shard points outside it",
                key=f"inner chunk {name}: bytes {start} to {start + size}",
                found=f"{0 if data is None else len(data)} bytes",
                expected=f"{size} bytes",
            )
        yield data


#: Ranges of a stored value, each with its bytes, sorted.
Located = Sequence[tuple[Range, Buffer]]


class StoredParts(Protocol):
    """Locates the stored bytes of parts of a value, so that parts can be decoded alone."""

    @property
    def stored(self) -> int:
        """The size of the stored value in bytes."""

    @property
    def head(self) -> int:
        """The number of the first bytes, which say where the others are."""

    @property
    def block(self) -> int:
        """The size of the blocks that are decoded as a whole, in decoded bytes."""

    def locate(self, ranges: Sequence[Range]) -> Sequence[Range] | None:
        """Return the stored ranges that hold ranges of the decoded bytes; None if all are needed.

        Both are sorted.
        """

    def is_small(self, ranges: Sequence[Range]) -> bool:
        """Whether ranges of the decoded bytes take less time than all of them."""

    def decode(self, ranges: Sequence[Range], located: Located) -> Buffer:
        """Return ranges of the decoded bytes, one after another.

        `located` are the stored ranges that `locate` returned, or others that contain them.
        """


def cut(located: Located, begin: int, end: int) -> memoryview:
    """Return the bytes of a stored range that lies within one of some others."""
    number = bisect_right(located, begin, key=_start) - 1 if len(located) > 1 else 0
    (start, _), data = located[number]
    return memoryview(data)[begin - start : end - start]


def _start(located: tuple[Range, Buffer]) -> int:
    return located[0][0]


@dataclass(frozen=True)
class PlainParts:
    """Bytes that are stored as they are, after some others.

    Attributes
    ----------
    offset : int
        The number of the bytes before.
    stored : int
        The size of the stored value in bytes.
    """

    offset: int
    stored: int
    block: ClassVar[int] = 1

    @property
    def head(self) -> int:
        return self.offset

    def locate(self, ranges: Sequence[Range]) -> Sequence[Range]:
        return [(self.offset + start, length) for start, length in ranges]

    def is_small(self, ranges: Sequence[Range]) -> bool:
        return True

    def decode(self, ranges: Sequence[Range], located: Located) -> Buffer:
        at = self.offset
        cuts = [cut(located, at + start, at + start + length) for start, length in ranges]
        return cuts[0] if len(cuts) == 1 else b"".join(cuts)
