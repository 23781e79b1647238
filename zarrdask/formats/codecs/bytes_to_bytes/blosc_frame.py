"""The blocks of a Blosc 1 frame, some of which can be decoded without the others."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from struct import Struct, pack
from typing import Any

import numpy as np

from zarrdask.formats.byte_ranges import Buffer, Range, Value
from zarrdask.formats.codecs.byte_source import Located, PlainParts
from zarrdask.runtime import buffers

#: version, version of the inner format, flags, typesize, decoded size, block size, encoded size
HEADER = Struct("<BBBBIII")
#: The flag of a frame whose bytes are not compressed.
COPIED = 2
#: The flag of a frame whose blocks are not split into a stream for each byte of an element.
_WHOLE = 16
#: The number of bytes of a frame that are read first: the header and the table of most frames.
HEAD_BYTES = 2**12

#: The largest part of the decoded bytes that takes less time than all of them.
_MOST = 0.75

#: The decoder of frames: of their bytes, of a size, into memory.
Decode = Callable[[Buffer, int, Any], Buffer]


def block_bytes(head: Buffer) -> int:
    """Return the decoded size of a block by the header of a frame; 0 if it is cut off."""
    return int(HEADER.unpack_from(head)[5]) if len(head) >= HEADER.size else 0


def read_blocks(value: Value, whole: int, decode: Decode) -> "PlainParts | FrameBlocks | None":
    """Return what says where the blocks of a frame are, from its first bytes.

    It is None if there is only one block, or if the frame is damaged: then reading all of it gives
    the error. `whole` is the size of all decoded bytes.
    """
    head = value.part(0, HEAD_BYTES)
    if head is None or len(head) < HEADER.size:
        return None
    *kind, size, block, stored = HEADER.unpack_from(head)
    if size != whole or not 0 < block < size:
        return None
    if kind[2] & COPIED:
        return PlainParts(HEADER.size, HEADER.size + size) if stored == HEADER.size + size else None
    count = -(-size // block)
    table = HEADER.size + 4 * count
    if table > stored or 4 * count > size // 2:
        return None
    if table > len(head):
        head = value.part(0, table)
        if head is None or len(head) < table:
            return None
    starts = np.frombuffer(head, "<u4", count, HEADER.size)
    if int(starts.min()) < table or int(starts.max()) >= stored:
        return None
    return FrameBlocks(tuple(kind), size, block, stored, starts, decode)


@dataclass(frozen=True, eq=False)
class FrameBlocks:
    """The blocks of a frame.

    Attributes
    ----------
    kind : tuple of int
        The first four bytes of the header.
    whole, block : int
        The decoded size of the frame, and of each block but the last, in bytes.
    stored : int
        The size of the frame in bytes.
    starts : ndarray
        Where each block starts in the frame. Several threads may have stored them in any order.
    decode_frame : callable
        The decoder of frames.
    """

    kind: tuple[int, ...]
    whole: int
    block: int
    stored: int
    starts: np.ndarray
    decode_frame: Decode

    def locate(self, ranges: Sequence[Range]) -> list[Range] | None:
        """Return the ranges of the frame that hold some decoded bytes; None if these are most."""
        runs = self._runs(ranges)
        if sum(map(self._size, runs)) > _MOST * self.whole:
            return None
        located = list[Range]()
        for begin, end in sorted(self._bounds(runs)):
            if located and sum(located[-1]) == begin:
                located[-1] = (located[-1][0], end - located[-1][0])
            else:
                located.append((begin, end - begin))
        return located

    def decode(self, ranges: Sequence[Range], located: Located) -> Buffer:
        """Return the decoded bytes of ranges, one after another, given what `locate` returned.

        They are valid until this thread decodes the next chunk.
        """
        runs = self._runs(ranges)
        sizes = [*map(self._size, runs)]
        memory = buffers.of_thread(sum(sizes))
        firsts = [begin for (begin, _), _ in located]
        blocks = iter(self._bounds(runs))
        decoded, at = list[memoryview](), 0
        for run, size in zip(runs, sizes, strict=True):
            stored = []
            for begin, end in islice(blocks, len(run)):
                (start, _), data = located[bisect_right(firsts, begin) - 1]
                stored.append(memoryview(data)[begin - start : end - start])
            frame = self._frame(run, size, stored)
            decoded.append(memoryview(self.decode_frame(frame, size, memory[at : at + size])))
            at += size
        numbers = [run.start * self.block for run in runs]
        cuts = []
        for start, length in ranges:
            number = bisect_right(numbers, start) - 1
            offset = start - numbers[number]
            cuts.append(decoded[number][offset : offset + length])
        return cuts[0] if len(cuts) == 1 else b"".join(cuts)

    def _runs(self, ranges: Sequence[Range]) -> list[range]:
        """Return the numbers of the blocks that hold ranges; of several runs, each is one range."""
        runs = list[range]()
        for start, length in ranges:
            begin, end = start // self.block, (start + length - 1) // self.block + 1
            if runs and begin <= runs[-1].stop:
                runs[-1] = range(runs[-1].start, end)
            else:
                runs.append(range(begin, end))
        return runs

    def _size(self, run: range) -> int:
        """Return the decoded size of a run of blocks."""
        return min(run.stop * self.block, self.whole) - run.start * self.block

    def _bounds(self, runs: Sequence[range]) -> Iterator[tuple[int, int]]:
        """Yield where each block of some runs begins and ends in the frame."""
        begins = np.concatenate([self.starts[run.start : run.stop] for run in runs])
        in_order = np.append(np.sort(self.starts), np.uint32(self.stored))
        ends = in_order[np.searchsorted(in_order, begins, "right")]
        return zip(begins.tolist(), ends.tolist(), strict=True)

    def _frame(self, run: range, size: int, blocks: Sequence[Buffer]) -> bytes:
        """Return a frame that consists of a run of blocks only, given the bytes of each."""
        flags, first = self.kind[2], HEADER.size + 4 * len(run)
        if size < self.block:
            # The last block is shorter and never split, but here it is the only one.
            flags |= _WHOLE
        starts = [*accumulate(map(len, blocks), initial=first)]
        kind = (*self.kind[:2], flags, self.kind[3])
        header = HEADER.pack(*kind, size, min(self.block, size), starts.pop())
        return b"".join((header, pack(f"<{len(run)}i", *starts), *blocks))
