"""Write parts of values; the base class of stores that read and write parts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from zarrdask.errors import SelectionError
from zarrdask.formats.byte_ranges import Buffer, KeyRange, Range
from zarrdask.formats.store_keys import check_key
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store, is_listable
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.refusals import not_supported

#: (key, start, bytes): a part of a value to write.
KeyValue = tuple[str, int, Buffer]


def set_partial_values(store: Store, key_start_values: Iterable[KeyValue]) -> None:
    """Store parts of values (conformance B-82).

    By default, each value is read, changed and written as a whole. A value grows as necessary; a
    gap is filled with zeros.

    Parameters
    ----------
    store : Store
        The store. If it has a method of this name, that is called.
    key_start_values : iterable of (key, start, bytes)
        A key may occur several times, but its parts must not overlap.

    Raises
    ------
    MetadataError
        If a key is invalid. Nothing is written then.
    SelectionError
        If parts overlap, or a start is negative. Nothing is written then.
    """
    own = getattr(store, "set_partial_values", None)
    if own is not None:
        own(key_start_values)
        return
    for key, parts in _parts_by_key(key_start_values).items():
        value = bytearray(store.get(key) or b"")
        for start, part in parts:
            value.extend(bytes(max(start + len(part) - len(value), 0)))
            value[start : start + len(part)] = part
        store.set(key, value)


def _parts_by_key(key_start_values: Iterable[KeyValue]) -> dict[str, list[tuple[int, Buffer]]]:
    """Return the parts to write to each value, as (start, bytes), in the order of their starts.

    Raises
    ------
    MetadataError
        If a key is invalid.
    SelectionError
        If parts of a value overlap, or a start is negative (conformance B-82).
    """
    values: dict[str, list[tuple[int, Buffer]]] = defaultdict(list)
    for key, start, value in key_start_values:
        values[check_key(key)].append((start, memoryview(value).cast("B")))
    for key, parts in values.items():
        parts.sort(key=lambda part: (part[0], len(part[1])))
        overlap = any(at + len(part) > then for (at, part), (then, _) in pairwise(parts))
        if overlap or parts[0][0] < 0:
            raise SelectionError(
                "the parts of a value to write overlap, or one starts before the value",
                key=key,
                found=[(start, len(part)) for start, part in parts],
                expected="pairs (start, length) that do not overlap, with starts from 0",
            )
    return values


class StoreWithPartialAccess(Store):
    """A store that reads and writes parts of values (conformance B-87).

    A subclass implements `get_partial_values` if it can be read, and `set_partial_values` and
    `erase_values` if it can be written. A whole value is a part that begins at 0, so `set` erases
    the old value first; in between, readers see no value.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(cls.capabilities, Capabilities):
            derived = cls.__mro__[: -len(Store.__mro__) - 1]
            names = {name for kind in derived for name in vars(kind)}
            cls.capabilities = cls._declared.provided(
                readable="get_partial_values" in names,
                writable={"set_partial_values", "erase_values"} <= names,
                listable=is_listable(cls),
            )

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        raise not_supported(self.url, "read")

    def set_partial_values(self, key_start_values: Iterable[KeyValue]) -> None:
        raise not_supported(self.url, "written")

    def erase_values(self, keys: Iterable[str]) -> None:
        raise not_supported(self.url, "written")

    def get(self, key: str) -> bytes | None:
        value = self.get_range(key, 0)
        return None if value is None else bytes(value)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        return iter(self.get_partial_values([(key, (0, None)) for key in keys]))

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self.get_partial_values([(key, (start, length))])[0]

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return iter(self.get_partial_values([(key, each) for each in ranges]))

    def set(self, key: str, value: Buffer) -> None:
        self.erase_values([check_key(key)])
        self.set_partial_values([(key, 0, value)])

    def erase(self, key: str) -> None:
        self.erase_values([key])
