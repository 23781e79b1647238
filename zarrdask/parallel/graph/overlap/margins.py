"""Margins around the axes of an array, and the elements from which they are filled. Pure."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.formats.indexing.selection import pick_size

#: How a margin is filled: with the elements at the end in reverse order, the last element, the
#: elements of the other end, or one value.
MarginKind = Literal["reflect", "nearest", "periodic", "constant"]


class Assembly(NamedTuple):
    """How a part of an axis with margins is assembled."""

    #: The number of elements of the buffer.
    length: int
    #: Where in the buffer elements of the array go, and which.
    reads: list[tuple[slice, slice]]
    #: Which parts of the buffer are copies of others, and whether in reverse order.
    copies: list[tuple[slice, slice, bool]]
    #: Which parts of the buffer hold the constant.
    fills: list[slice]
    #: The requested elements of the buffer.
    pick: slice


@dataclass(frozen=True)
class Margins:
    """The margins of an axis, whose array is at least as long as each of them."""

    before: int = 0
    after: int = 0
    kind: MarginKind = "constant"
    #: The constant: an array without dimensions.
    value: np.ndarray | None = None

    def assembly(self, size: int, pick: slice) -> Assembly:
        """Return how the slice `pick` of an axis with `size` elements and margins is assembled."""
        start, step, count = pick.start, pick.step or 1, pick_size(pick)
        stop = start + (count - 1) * step + 1 if count else start
        end = self.before + size
        if self.before <= start <= stop <= end or not count:
            own = slice(start - self.before, stop - self.before, step) if count else slice(0, 0, 1)
            return Assembly(count, [(slice(0, count), own)], [], [], slice(None))
        # Whole margins, and the elements next to them that they are made from.
        low, high = start, stop
        if start < self.before:
            low, high = 0, max(high, 2 * self.before)
        if stop > end:
            low, high = min(low, end - self.after), end + self.after
        before = self.before if start < self.before else 0
        first, last = low + before - self.before, min(high, end) - self.before
        core = slice(before, before + last - first)
        result = Assembly(
            high - low,
            [(core, slice(first, last, 1))],
            [],
            [],
            slice(start - low, stop - low, step),
        )
        if before:
            self._add(result, slice(0, before), core, size)
        if stop > end:
            self._add(result, slice(core.stop, core.stop + self.after), core, size)
        return result

    def _add(self, found: Assembly, margin: slice, core: slice, size: int) -> None:
        """Add a margin that is next to the elements `core` of the buffer."""
        length, is_first = margin.stop - margin.start, margin.start < core.start
        if self.kind == "constant":
            found.fills.append(margin)
        elif self.kind == "nearest":
            at = core.start if is_first else core.stop - 1
            found.copies.append((margin, slice(at, at + 1), False))
        elif self.kind == "reflect":
            at = core.start if is_first else core.stop - length
            found.copies.append((margin, slice(at, at + length), True))
        else:
            at = size - length if is_first else 0
            (_, read), *_ = found.reads
            if read.start <= at and at + length <= read.stop:
                at += core.start - read.start
                found.copies.append((margin, slice(at, at + length), False))
            else:
                found.reads.append((margin, slice(at, at + length, 1)))
