"""Concatenations as plain values that pickle small, as values shared by members are kept once."""

from collections.abc import Iterable
from typing import Any, TypeVar

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member, boundaries_of
from zarrdask.formats.compliance import strictness
from zarrdask.formats.indexing.selection import Region, whole_region
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.node_layout import DIRECTORIES
from zarrdask.runtime import serialize
from zarrdask.storage.base import Store
from zarrdask.storage.zarr.draft_store import layout_of

T = TypeVar("T")


class _Distinct(list[T]):
    """Values without duplicates, and the number of each."""

    def __init__(self) -> None:
        self._numbers = dict[Any, int]()

    def number(self, value: T, key: Any) -> int:
        """Return the number of a value; equal ones have equal keys."""
        if key not in self._numbers:
            self._numbers[key] = len(self)
            self.append(value)
        return self._numbers[key]


def pack(array: Concatenation) -> tuple[Any, ...]:
    """Return a concatenation as plain values."""
    documents, rows = _Distinct[Any](), list[Any]()
    serialize.prepare(array.metadata.dtype)
    stores = _Distinct[Any]()
    for member in array.members:
        if member is None:
            rows.append(None)
            continue
        store, prefix, metadata, region, axes, missing, *stamp = member
        key = id(metadata)
        number = documents.number(metadata, key)
        where = stores.number(store, store if isinstance(store, str) else id(store))
        bounds = None if region == whole_region(metadata.shape) else _bounds(region)
        if not stamp[1]:
            stamp = stamp[: bool(stamp[0])]
        rows.append((where, prefix, number, bounds, _some(axes, metadata), missing, *stamp))
    # Documents of a draft are parsed as documents of their store.
    sources = {row[2]: row[0] for row in reversed(rows) if row is not None}
    contents = [(each.without_labels().render(), sources[n]) for n, each in enumerate(documents)]
    lengths = [tuple(axis.lengths) for axis in array.axes]
    rest = array.added, array.options, array.is_saved
    return array.metadata.render(), lengths, stores[:], contents, rows, *rest


def unpack(packed: tuple[Any, ...]) -> Concatenation:
    """Return the concatenation that `pack` returned as plain values."""
    own, lengths, stores, contents, rows, *rest = packed
    with strictness(strict=False, quiet=True):
        metadata = _parsed(own)
        members = [_parsed(documents, stores[where]) for documents, where in contents]
    serialize.prepare(metadata.dtype)
    axes = tuple(map(boundaries_of, lengths))
    cells = [_member(row, stores, members) for row in rows]
    return Concatenation(metadata, axes, cells, *rest)


def _parsed(documents: Any, store: Store | str = "") -> ArrayMetadata:
    metadata: Any = detect.parse(
        documents, DIRECTORIES if isinstance(store, str) else layout_of(store)
    )
    return metadata  # type: ignore[no-any-return]


def _member(row: Any, stores: list[Any], metadata: list[ArrayMetadata]) -> Member | None:
    if row is None:
        return None
    where, prefix, number, bounds, axes, missing, *stamp = row
    own = metadata[number]
    region = whole_region(own.shape) if bounds is None else tuple(slice(*each) for each in bounds)
    every = tuple(range(len(own.shape))) if axes is None else axes
    return Member(stores[where], prefix, own, region, every, missing, *stamp)


def _some(axes: tuple[int, ...], metadata: ArrayMetadata) -> tuple[int, ...] | None:
    """Return axes, or None if they are all."""
    return None if axes == tuple(range(len(metadata.shape))) else axes


def _bounds(region: Region) -> Iterable[tuple[int, int, int]]:
    return tuple([(pick.start, pick.stop, pick.step) for pick in region])
