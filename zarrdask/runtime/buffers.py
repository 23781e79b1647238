"""Memory for blocks: freed buffers are reused, as new pages of memory cost time.

The system clears each page of newly allocated memory when it is first used, which takes about as
long as decoding into it. So memory of blocks that are no longer used is kept for the next ones, up
to a limit.
"""

import threading
from collections import deque
from math import prod
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.errors import CodecError
from zarrdask.runtime.decoded_chunks import CHUNKS
from zarrdask.runtime.scratch import Scratch

#: Bytes. The allocator of the system itself reuses smaller pieces of memory, and larger ones only
#: sometimes.
_MIN_KEPT_BYTES = 2**21
#: The memory of blocks that are no longer used.
KEPT: deque[np.ndarray] = deque()

#: The largest memory, in bytes, that a thread keeps for one chunk after another.
_MAX_THREAD_BYTES = 2**25


class _Thread(threading.local):
    """The memory of a thread, which is still in the cache of the CPU when it is used again."""

    def __init__(self) -> None:
        #: For encoded bytes.
        self.scratch = Scratch()
        #: See `of_thread`.
        self.memory = np.empty(0, np.uint8)


THREAD = _Thread()


class Lease:
    """A piece of memory that is released when no array uses it any more."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        _keep(self.memory)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array like `numpy.empty`; a large one may use memory that was used before."""
    size = prod(shape) * dtype.itemsize
    if dtype.hasobject or not _MIN_KEPT_BYTES <= size <= config.get("keep-memory"):
        return np.empty(shape, dtype)
    memory = _take(size)
    if memory is None:
        memory = np.empty(size, np.uint8)
    return np.asarray(Lease(memory)).view(dtype).reshape(shape)


def chunk(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array like `numpy.empty`, for a chunk whose shape is from a document.

    Raises
    ------
    CodecError
        If the chunk does not fit into memory, as may happen with a damaged document.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:
        raise CodecError(
            "the chunk does not fit into memory", found=f"{shape} of {dtype}"
        ) from error


def of_thread(size: int) -> np.ndarray:
    """Return memory of this thread for decoded bytes, which are valid until it asks again.

    Raises
    ------
    CodecError
        As in `chunk`.
    """
    if size > _MAX_THREAD_BYTES:
        return chunk((size,), np.dtype(np.uint8))
    if len(THREAD.memory) < size:
        THREAD.memory = np.empty(size, np.uint8)
    return THREAD.memory[:size]


def _take(size: int) -> np.ndarray | None:
    """Return a kept piece of exactly this size, or None."""
    for _ in range(len(KEPT)):
        try:
            memory = KEPT.popleft()
        except IndexError:  # another thread took the last piece
            return None
        if memory.nbytes == size:
            return memory
        KEPT.append(memory)
    return None


def _keep(memory: np.ndarray) -> None:
    KEPT.appendleft(memory)
    # The cache of decoded chunks counts, so that a process does not keep more with it.
    limit = config.get("keep-memory") - CHUNKS.nbytes
    while sum(piece.nbytes for piece in tuple(KEPT)) > limit:
        try:
            KEPT.pop()
        except IndexError:
            return
