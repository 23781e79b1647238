"""Read parts of stored values: many at a time, or one after another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zarrdask import config
from zarrdask.formats.byte_ranges import Buffer, Range, RangeRequest, cut, join_ranges
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.concurrent_requests import request_each

if TYPE_CHECKING:
    from zarrdask.storage.base import Store


def joined_parts(
    store: "Store", ranges: Sequence[tuple[str, int, int | None]]
) -> Iterator[tuple[int, Buffer | None]]:
    """Yield the number of each range (key, start, length), and that part, as requests end.

    Neighbouring ranges of a value are one request, by the setting ``zarrdask.coalesce-gap``.
    """
    joined = [*join_ranges(ranges, config.get("coalesce-gap"))]

    def fetch(request: RangeRequest) -> Buffer | None:
        return store.get_range(request.key, request.start, request.length)

    for request, part in zip(joined, request_each(store, fetch, joined), strict=True):
        for at, offset, size in request.members:
            yield at, None if part is None else cut(part, offset, size)


@dataclass(frozen=True)
class StoredValue:
    """A stored value that is read in parts.

    Attributes
    ----------
    store : Store
    key : str
    scratch : Scratch
        A buffer for the bytes of the parts.
    """

    store: "Store"
    key: str
    scratch: Scratch

    def part(self, start: int, length: int) -> Buffer | None:
        """Return part of the value, or None if it is missing; a negative start is from the end."""
        return self.store.get_range(self.key, start, None if start < 0 else length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        """Yield parts (start, length), in the order of their starts; each until the next one."""
        return self.store.get_ranges(self.key, ranges, self.scratch)
