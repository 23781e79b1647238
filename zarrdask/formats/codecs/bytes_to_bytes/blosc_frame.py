"""The blocks of a Blosc 1 frame, which can be decoded one by one."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from zarrdask.formats.byte_ranges import Buffer, Range, Value
from zarrdask.formats.codecs.byte_source import Located, PlainParts, cut

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

#: The decoder of frames, given their bytes and their decoded size.
Decode = Callable[[Buffer, int], Buffer]


def read_blocks(value: Value, whole: int, decode: Decode) -> "PlainParts | FrameBlocks | None":
    """Return the locations of the blocks of a frame, from its first bytes.

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
    starts = unpack_from(f"<{count}I", head, HEADER.size)
    # Several threads may have stored the blocks in any order.
    in_order = sorted(starts)
    if in_order[0] < table or in_order[-1] >= stored:
        return None
    bounds = list(pairwise((*in_order, stored)))
    is_ordered = [*starts] == in_order
    if not is_ordered:
        ends = dict(bounds)
        bounds = [(at, ends[at]) for at in starts]
    return FrameBlocks(tuple(kind), size, block, stored, bounds, is_ordered, decode)


class FrameBlocks(NamedTuple):
    """The blocks of a frame.

    Attributes
    ----------
    kind : tuple of int
        The first four bytes of the header.
    whole, block : int
        The decoded size of the frame, and of each block but the last, in bytes.
    stored : int
        The size of the frame in bytes.
    bounds : list of (int, int)
        Where each block begins and ends in the frame.
    is_ordered : bool
        Whether the blocks are stored one after another.
    decode_frame : callable
        The decoder of frames.
    """

    kind: tuple[int, ...]
    whole: int
    block: int
    stored: int
    bounds: list[tuple[int, int]]
    is_ordered: bool
    decode_frame: Decode

    @property
    def head(self) -> int:
        """The size of the header and the table."""
        return HEADER.size + 4 * len(self.bounds)

    def locate(self, ranges: Sequence[Range]) -> list[Range] | None:
        """Return the ranges of the frame that hold some decoded bytes; None if these are most."""
        if not self.is_small(ranges):
            return None
        located = list[Range]()
        for begin, end in sorted(chain.from_iterable(map(self._bounds, self._runs(ranges)))):
            if located and sum(located[-1]) == begin:
                located[-1] = (located[-1][0], end - located[-1][0])
            else:
                located.append((begin, end - begin))
        return located

    def is_small(self, ranges: Sequence[Range]) -> bool:
        """Whether the blocks that hold ranges take less time than all blocks."""
        return sum(map(self._size, self._runs(ranges))) <= _MOST * self.whole

    def decode(self, ranges: Sequence[Range], located: Located) -> Buffer:
        """Return the decoded bytes of ranges, one after another; see `StoredParts`."""
        runs = self._runs(ranges)
        decoded = [memoryview(self._decode_run(run, located)) for run in runs]
        if len(ranges) == 1:
            offset = ranges[0][0] - runs[0].start * self.block
            return decoded[0][offset : offset + ranges[0][1]]
        numbers = [run.start * self.block for run in runs]
        cuts = []
        for start, length in ranges:
            number = bisect_right(numbers, start) - 1
            offset = start - numbers[number]
            cuts.append(decoded[number][offset : offset + length])
        return b"".join(cuts)

    def _runs(self, ranges: Sequence[Range]) -> list[range]:
        """Return the numbers of the blocks that hold ranges; each run is one range."""
        if len(ranges) == 1:
            start, length = ranges[0]
            return [range(start // self.block, (start + length - 1) // self.block + 1)]
        runs = list[range]()
        for start, length in ranges:
            begin, end = start // self.block, (start + length - 1) // self.block + 1
            if runs and begin <= runs[-1].stop:
                runs[-1] = range(runs[-1].start, end)
            else:
                runs.append(range(begin, end))
        return runs

    def _bounds(self, run: range) -> list[tuple[int, int]]:
        """Return where each block of a run begins and ends in the frame."""
        return self.bounds[run.start : run.stop]

    def _size(self, run: range) -> int:
        """Return the decoded size of a run of blocks."""
        return min(run.stop * self.block, self.whole) - run.start * self.block

    def _decode_run(self, run: range, located: Located) -> Buffer:
        """Decode a run of blocks: a frame that consists of these blocks only."""
        flags, size, bounds = self.kind[2], self._size(run), self._bounds(run)
        if size < self.block:
            # The last block is shorter and never split, but here it is the only one.
            flags |= _WHOLE
        table = HEADER.size + 4 * len(run)
        if self.is_ordered:
            first, last = bounds[0][0], bounds[-1][1]
            starts, end = [begin - first + table for begin, _ in bounds], last - first + table
            blocks = [cut(located, first, last)]
        else:
            *starts, end = accumulate((end - begin for begin, end in bounds), initial=table)
            blocks = [cut(located, begin, end) for begin, end in bounds]
        kind = (*self.kind[:2], flags, self.kind[3])
        header = HEADER.pack(*kind, size, min(self.block, size), end)
        frame = b"".join((header, pack(f"<{len(run)}I", *starts), *blocks))
        return self.decode_frame(frame, size)
