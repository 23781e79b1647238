"""Memory for blocks: what was used before is used again, because fresh pages cost time.

The system hands out large pieces of memory empty: each page is cleared when it is first touched,
which takes about as long as decoding into it. So blocks that are no longer used are kept, up to a
bound, for the next ones.
"""

from collections import deque
from math import prod
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.errors import CodecError

# Smaller pieces are reused by malloc itself.
_LEAST = 2**22
_free: deque[np.ndarray] = deque()


class Lease:
    """Holds a piece of memory for as long as an array, or a view of it, uses it."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        _give_back(self.memory)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array like `numpy.empty`; large ones may be in memory that was used before."""
    size = prod(shape) * dtype.itemsize
    if dtype.hasobject or not _LEAST <= size <= config.get("keep-memory"):
        return np.empty(shape, dtype)
    memory = _take(size)
    if memory is None:
        memory = np.empty(size, np.uint8)
    return np.asarray(Lease(memory)).view(dtype).reshape(shape)


def chunk(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array like `numpy.empty`, for a chunk of the shape that its metadata gives.

    Raises
    ------
    CodecError
        If that does not fit into memory: a damaged document may say anything.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:
        raise CodecError(
            "a chunk that does not fit into memory", found=f"{shape} of {dtype}"
        ) from error


def _take(size: int) -> np.ndarray | None:
    """Return a kept piece of just this size; what does not fit goes to the end of the queue."""
    for _ in range(len(_free)):
        try:
            memory = _free.popleft()
        except IndexError:  # another thread took the last
            return None
        if memory.nbytes == size:
            return memory
        _free.append(memory)
    return None


def _give_back(memory: np.ndarray) -> None:
    _free.appendleft(memory)
    bound = config.get("keep-memory")
    while sum(piece.nbytes for piece in tuple(_free)) > bound:
        try:
            _free.pop()
        except IndexError:
            return
