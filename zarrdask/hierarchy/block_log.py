"""The blocks that tasks have stored: each task records its own, in a value beside the node."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import uuid4

from zarrdask.indexing.selection import Region
from zarrdask.storage.base import Scratch, Store

#: The first and the last index, plus one, of a block along each axis.
Bounds = tuple[tuple[int, int], ...]


def bounds(block: Region) -> Bounds:
    """Return the bounds of a block."""
    return tuple((int(pick.start), int(pick.stop)) for pick in block)


@dataclass(frozen=True)
class BlockLog:
    """The place where tasks record which blocks they have stored. It pickles.

    Tasks do not wait for each other: each call of `add` stores a new value below `prefix`.
    """

    store: Store
    prefix: str

    def add(self, blocks: Iterable[Bounds]) -> None:
        """Record blocks that are stored."""
        value = json.dumps(list(blocks), separators=(",", ":"))
        self.store.set(f"{self.prefix}{uuid4().hex}", value.encode())

    def merge(self) -> set[Bounds]:
        """Return all blocks that are recorded, and replace the values of the tasks by one value."""
        keys, blocks = list(self.store.list_prefix(self.prefix)), set[Bounds]()
        for value in self.store.get_many(keys, Scratch()):
            blocks.update(_parsed(value))
        if len(keys) > 1:
            self.add(sorted(blocks))
            self.store.erase_values(keys)
        return blocks

    def clear(self) -> None:
        """Erase all records."""
        self.store.erase_prefix(self.prefix)


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


def _parsed(value: object) -> set[Bounds]:
    """Return the blocks of a value; none if it is damaged, so that they are written again."""
    try:
        blocks = json.loads(bytes(value))  # type: ignore[call-overload]
        return {tuple((int(start), int(stop)) for start, stop in block) for block in blocks}
    except (ValueError, TypeError):
        return set()
