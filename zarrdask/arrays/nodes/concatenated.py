"""Arrays that consist of the elements of other stored arrays."""

from typing import Any

from zarrdask.arrays.chunks.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.concatenation import Concatenation
from zarrdask.arrays.nodes.array import Array
from zarrdask.display.words import counted
from zarrdask.errors import printable


class ConcatenatedArray(Array):
    """An array that consists of the elements of other stored arrays; it can only be read.

    It is returned by `concat` and `stack`.
    """

    _kind = "concatenation"

    def __reduce__(self) -> tuple[Any, ...]:
        _, arguments = super().__reduce__()
        return ConcatenatedArray, arguments

    @property
    def concatenation(self) -> Concatenation:
        """The members, as a grid of cells."""
        store: ConcatenatedStore = self.store  # type: ignore[assignment]
        return store.arrays[self.path]

    @property
    def nmembers(self) -> int:
        """The number of members; missing ones are not counted."""
        return sum(1 for _ in self.concatenation.present())

    def __repr__(self) -> str:
        text = super().__repr__().removesuffix(">")
        return printable(f"{text}, {counted(self.nmembers, 'member')}>")
