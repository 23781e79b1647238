"""The blocks that tasks have stored: each task records its own, in a value beside the node."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

from zarrdask.errors import UnsupportedError
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.json import DAMAGE
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.listing import listed_objects

#: The first and the last index, plus one, of a block along each axis.
Bounds = tuple[tuple[int, int], ...]


def bounds(block: Region) -> Bounds:
    """Return the bounds of a block."""
    return tuple((int(pick.start), int(pick.stop)) for pick in block)


class BlockRecord(NamedTuple):
    """The record of a block."""

    #: The number of its units that were stored; the others hold only the fill value.
    units: int
    #: When it was recorded, by the clock of the store, in seconds; None if that is not known.
    time: float | None = None


@dataclass(frozen=True)
class BlockLog:
    """The record of the blocks that tasks have stored. It pickles.

    Tasks do not wait for each other: each call of `add` stores a new value below `prefix`.
    """

    store: Store
    prefix: str

    def add(self, blocks: Iterable[tuple[Region, int]]) -> None:
        """Record blocks that are stored, each with the number of its units that were stored."""
        self._add((bounds(block), BlockRecord(units)) for block, units in blocks)

    def merge(self, is_valid: Callable[[Bounds, BlockRecord], bool] | None = None) -> set[Bounds]:
        """Return all blocks that are recorded, and replace the values of the tasks by one value.

        If `is_valid` is given, records for which it is false are left out.
        """
        times, blocks = self._times(), dict[Bounds, BlockRecord]()
        # If a block was stored twice, the last record counts.
        keys = sorted(times, key=lambda key: times[key] or 0)
        for key, value in zip(keys, self.store.get_many(keys, Scratch()), strict=True):
            blocks.update(_parsed(value, times[key]))
        if is_valid is not None:
            blocks = {block: each for block, each in blocks.items() if is_valid(block, each)}
        if len(keys) > 1:
            self._add(sorted(blocks.items()))
            self.store.erase_values(keys)
        return set(blocks)

    def clear(self) -> None:
        """Erase all records."""
        self.store.erase_prefix(self.prefix)

    def _add(self, blocks: Iterable[tuple[Bounds, BlockRecord]]) -> None:
        value = json.dumps(list(blocks), separators=(",", ":"))
        self.store.set(f"{self.prefix}{uuid4().hex}", value.encode())

    def _times(self) -> Mapping[str, float | None]:
        """Return the keys of the values, and when each was stored, if listings say it."""
        try:
            return {each.key: each.modified for each in listed_objects(self.store, self.prefix)}
        except UnsupportedError:
            return dict.fromkeys(self.store.list_prefix(self.prefix))


@dataclass
class RecordedBlocks:
    """The blocks of one array of a write that can be resumed."""

    log: BlockLog
    #: The bounds of the blocks that earlier runs have stored, when the write has begun.
    stored: set[Bounds] = field(default_factory=set)
    #: Whether earlier runs have stored all blocks.
    is_complete: bool = False

    def is_stored(self, block: Region) -> bool:
        """Whether an earlier run has stored a block."""
        return self.is_complete or (bool(self.stored) and bounds(block) in self.stored)


def _parsed(value: object, time: float | None) -> dict[Bounds, BlockRecord]:
    """Return the blocks of a value that was stored at a time.

    There are none if it is damaged, so that they are written again.
    """
    try:
        return {
            tuple((int(start), int(stop)) for start, stop in block): BlockRecord(
                int(units), time if recorded is None else float(recorded)
            )
            for block, (units, recorded) in json.loads(bytes(value))  # type: ignore[call-overload]
        }
    except DAMAGE:
        return {}
