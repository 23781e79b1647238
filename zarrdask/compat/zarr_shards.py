"""A whole inner chunk of a local shard, read in few steps.

`dask.array.from_zarr` requests the inner chunks of a shard one by one, so the index of the shard
is cached with the version of the file.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.codecs.decode import scatter
from zarrdask.formats.indexing.projection import Projection
from zarrdask.runtime import buffers

#: The number of shards whose indexes are cached, and the largest size of such an index in bytes.
_MAX_INDEXES, _MAX_INDEX_BYTES = 32, 2**18


class InnerChunks:
    """The inner chunks of the local shards of an array.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    """

    def __init__(self, chunks: StoredChunks) -> None:
        self._chunks = chunks
        shard = chunks.metadata.shard
        self._shard: Any = shard if _is_simple(chunks) else None
        #: The versions and the indexes of shards, by their keys.
        self._indexes = OrderedDict[str, tuple[Any, Any]]()

    def read(self, projection: Projection, out: np.ndarray, otherwise: Callable[[], None]) -> None:
        """Read one inner chunk that is requested as a whole.

        For other requests, and missing or damaged chunks, `otherwise` is called.
        """
        if not self._read(projection, out):
            otherwise()

    def _read(self, projection: Projection, out: np.ndarray) -> bool:
        """Read the chunk, and return whether that was possible."""
        chunks = self._chunks
        at = None if self._shard is None or chunks.cache_size else self._inner_index(projection)
        if at is None:
            return False
        key = chunks.key(projection.indices[0])
        try:
            with (
                chunks.measured("read"),
                chunks.units.reading(key, buffers.THREAD.scratch) as value,
            ):
                index = self._index(key, value)
                place = None if index is None else index.range_of(at)
                if place is None:
                    return False
                (data,) = value.parts([place])
                if data is None or len(data) != place[1]:
                    return False
                scatter(self._shard.chunks, [at], [None], projection.outsides, [data], out=out)
        except ZarrdaskError:
            return False
        return True

    def _inner_index(self, projection: Projection) -> tuple[int, ...] | None:
        """Return the index of the inner chunk that is requested as a whole, or None."""
        if len(projection.indices) != 1 or not isinstance(projection.insides[0], tuple):
            return None
        at = list[int]()
        for pick, length in zip(projection.insides[0], self._shard.codec.chunk_shape, strict=True):
            if not isinstance(pick, slice) or pick.step != 1:
                return None
            number, rest = divmod(pick.start, length)
            if rest or pick.stop - pick.start != length:
                return None
            at.append(number)
        return tuple(at)

    def _index(self, key: str, value: Any) -> Any:
        """Return the index of an open shard, or None if there is no shard."""
        # None for a file so new that a change might go unnoticed, and for other stores.
        version = getattr(value, "tag", None)
        if version is None:
            return self._shard.read_index(value)
        cached_version, index = self._indexes.get(key, (None, None))
        if cached_version != version:
            index = self._shard.read_index(value)
            self._indexes[key] = version, index
            while len(self._indexes) > _MAX_INDEXES:
                self._indexes.popitem(last=False)
        return index


def _is_simple(chunks: StoredChunks) -> bool:
    """Whether the shards are local files of one shape, with an index of moderate size."""
    shard = chunks.metadata.shard
    return (
        shard is not None
        and shard.index_size <= _MAX_INDEX_BYTES
        and chunks.metadata.grid.is_regular
        and chunks.metadata.pipeline.axes is None
        and not isinstance(shard.chunks.serializer, type(shard))
        and not chunks.is_remote
    )
