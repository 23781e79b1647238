"""Stored values that are read in parts: what codecs are given instead of a store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zarrdask.codecs.base import Buffer
from zarrdask.errors import TruncatedError

Range = tuple[int, int]


class Value(Protocol):
    """A stored value that is read in parts: what the codec is given instead of a store."""

    def part(self, start: int, length: int) -> Buffer | None:
        """Return some bytes (a negative start counts from the end), or None if nothing is there."""

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        """Yield the parts (start, length), given by rising start; each before the next is asked."""


@dataclass(frozen=True)
class HeldValue:
    """A value that is in memory."""

    data: Buffer

    def part(self, start: int, length: int) -> Buffer | None:
        view = memoryview(self.data)
        start = max(len(view) + start, 0) if start < 0 else start
        return view[start : start + length]

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        return (self.part(start, length) for start, length in ranges)


@dataclass(frozen=True)
class PartOfValue:
    """A shard within a shard."""

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
    """Yield the parts (start, length) of a value, each as long as it should be.

    Parameters
    ----------
    names : sequence
        What the chunk in each part is called in an error.

    Raises
    ------
    TruncatedError
        If the value ends before.
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
