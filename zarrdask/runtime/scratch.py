"""A buffer that is reused for each encoded value that is read."""

import numpy as np

#: The size in bytes above which memory is not kept: a huge value is read only once.
_MAX_KEPT_BYTES = 2**25
#: Bytes. The system copies from a page of a file to memory at 16 bytes after the beginning of a
#: page, where allocators put large arrays, at a third of the speed: loads wait for stores to
#: addresses that are the same modulo 4 KiB.
_ALIGNMENT = 2**12


class Scratch:
    """A reusable buffer for encoded bytes, so that reads need no allocation.

    A value that a store reads into it is valid until the next one is read.
    """

    __slots__ = ("view",)

    def __init__(self) -> None:
        self.view = _aligned(2**16)

    def reserve(self, size: int) -> memoryview:
        """Return the buffer, of at least `size` bytes; growing it loses its content."""
        if size > _MAX_KEPT_BYTES:
            return _aligned(size)
        if len(self.view) < size:
            self.view = _aligned(size + size // 4)
        return self.view


def _aligned(size: int) -> memoryview:
    """Return memory, which is not cleared, that begins at a multiple of the alignment."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT
    return memory[start : start + size].data
