"""Stored arrays as xarray indexes them: lazily, and read by all threads."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from zarrdask import config
from zarrdask.arrays.chunks.read import request_shape
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.indexing.projection import Points, Request
from zarrdask.formats.indexing.selection import Pick, pick_size
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.threads import thread_pool
from zarrdask.xarray.version import check_version, opened_version
from zarrdask.xarray.xarray_private import text_dtype

#: Points are read one by one if the smallest block that holds them has this many times as many
#: elements; a smaller block is read as a whole, and the points are taken from it.
_SPARSE = 4


class LazyArray(BackendArray):
    """A stored array that is read when xarray needs its values.

    It pickles to a few hundred bytes.

    Parameters
    ----------
    stored : Array
        The array.
    values : ndarray, optional
        All of its values, if they are known already. They stay in this process.
    skip_missing : bool
        Whether elements without a stored chunk are the fill value without a request. The chunks are
        listed once: by the first process that reads or pickles this.
    version : str, optional
        The version of the array that `stored` describes; by default the present one.
    is_stored : ndarray of bool, optional
        Which chunks (or shards) are stored, if they have been listed already.
    """

    __slots__ = ("_array", "_is_stored", "_values", "dtype", "shape", "skip_missing", "version")

    def __init__(
        self,
        stored: Array,
        values: np.ndarray | None = None,
        *,
        skip_missing: bool = False,
        version: str | None = None,
        is_stored: np.ndarray | None = None,
    ) -> None:
        # Not `array`: libraries that find this name evaluate it. dask-array looks for `_array`,
        # with `chunks` and `shards`, to align its blocks.
        self._array = stored
        self._values = values
        self.skip_missing = skip_missing
        self._is_stored = is_stored
        if version is None:
            version = opened_version(chunks_of(stored)) if values is None else ""
        self.version = version
        self.shape = stored.shape
        self.dtype = _dtype_of(stored.metadata)

    @property
    def stored(self) -> Array:
        """The stored array."""
        return self._array

    @property
    def has_values(self) -> bool:
        """Whether its values are known, so that nothing has to be read."""
        return self._values is not None

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return self._read(key, _threads())

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read in a thread, so that many variables of a dataset are read at the same time."""
        # asyncio's own pool has few threads: variables of one chunk would wait for each other.
        pool = thread_pool(config.get("requests"))
        return await asyncio.get_running_loop().run_in_executor(pool, self._read, key, None)

    def _read(self, key: indexing.ExplicitIndexer, threads: int | None) -> Any:
        if self._values is not None:
            # At most one axis: all kinds of indices mean the same.
            return np.array(self._values[key.tuple], self.dtype)
        return as_variable(self._read_stored(key, threads), self.dtype)

    def _read_stored(self, key: indexing.ExplicitIndexer, threads: int | None) -> Any:
        reader = _Reader(self._array, threads, self._stored_map())
        check_version(reader._stored, self.version)
        if isinstance(key, indexing.VectorizedIndexer):
            points = _as_points(key.tuple, self.shape)
            if points is not None:
                return reader.vindex[points]
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, reader.oindex.__getitem__
        )

    def _stored_map(self) -> np.ndarray | None:
        """Return which chunks are stored; None if missing chunks are not skipped."""
        if self.skip_missing and self._is_stored is None:
            self._is_stored = self._array.stored_map()
        return self._is_stored

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_chunks, (chunks_of(self._array), self.version, self._stored_map())


def _from_chunks(chunks: Any, version: str, is_stored: np.ndarray | None) -> Any:
    if not isinstance(chunks, StoredChunks):
        return chunks  # Any use raises why they can't be opened here.
    array = Array(NodePath.of(chunks), chunks.metadata, missing=chunks.missing)
    skip_missing = is_stored is not None
    return LazyArray(array, skip_missing=skip_missing, version=version, is_stored=is_stored)


class _Thread(threading.local):
    """How a thread reads."""

    def __init__(self) -> None:
        #: Whether reads are recorded, instead of done.
        self.recorded = False
        #: The values of the next read, if they are known.
        self.values: np.ndarray | None = None


_THREAD = _Thread()


class _Requested(BaseException):
    """Raised to return the array and the request of a recorded read; xarray does not catch it."""

    def __init__(self, chunks: StoredChunks, request: Request) -> None:
        super().__init__()
        self.chunks = chunks
        self.request = request


def requested_by(load: Callable[[], object]) -> tuple[StoredChunks, Request] | None:
    """Return the first read of a `LazyArray` by a call, instead of doing it.

    If the call reads none, it is completed, and the result is None.
    """
    _THREAD.recorded = True
    try:
        load()
    except _Requested as read:
        return read.chunks, read.request
    finally:
        _THREAD.recorded = False
    return None


@contextmanager
def serving(values: np.ndarray) -> Iterator[None]:
    """Let the next read of a `LazyArray` in this thread return values that were read before."""
    _THREAD.values = values
    try:
        yield
    finally:
        _THREAD.values = None


class _Reader(Array):
    """An array that is read by a number of threads, except for what is known to be missing."""

    def __init__(self, array: Array, threads: int | None, is_stored: np.ndarray | None) -> None:
        super().__init__(array.node_path, array.metadata, missing=array.missing)
        self._threads = threads
        self._is_stored = is_stored

    def _read(self, request: Request) -> np.ndarray:
        if self._is_stored is not None and not isinstance(request, Points):
            axes = zip(self.metadata.grid.axes, request, strict=True)
            numbers = [_chunk_numbers(axis, pick) for axis, pick in axes]
            if not self._is_stored[np.ix_(*numbers)].any():
                missing = np.empty(tuple(map(pick_size, request)), self.metadata.dtype)
                put_fill(missing, ..., self.metadata.fill)
                return missing
        if _THREAD.recorded:
            raise _Requested(self._stored, request)
        values, _THREAD.values = _THREAD.values, None
        if values is not None and values.shape == request_shape(request):
            return values
        return super()._read(request)


def _chunk_numbers(axis: Axis, pick: Pick) -> Any:
    """Return the numbers of the chunks, or shards, that a pick overlaps along an axis."""
    return axis.numbers(pick) if isinstance(pick, slice) else np.unique(axis.number(pick))


def _dtype_of(metadata: ArrayMetadata) -> np.dtype[Any]:
    """Return the dtype that xarray sees: the one of its engine zarr, also for texts."""
    if metadata.dtype.kind != "O":
        return metadata.dtype
    codecs = metadata.codecs if metadata.shard is None else metadata.shard.codec.codecs
    is_text = any(codec.name.removeprefix("numcodecs.") == "vlen-utf8" for codec in codecs)
    return text_dtype() if is_text else metadata.dtype


def as_variable(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return stored elements as a variable has them: objects that are texts as NumPy's."""
    return np.asarray(values).astype(dtype) if dtype.kind == "T" else values


def _threads() -> int | None:
    """Return by how many threads to read here: by all (None) where nothing else is parallel.

    In a thread of Dask's or of any other pool, and in a worker process, the caller is the
    parallelism.
    """
    main = threading.current_thread() is threading.main_thread()
    return None if main and multiprocessing.parent_process() is None else 1


def _as_points(
    key: tuple[slice | np.ndarray, ...], shape: tuple[int, ...]
) -> tuple[np.ndarray, ...] | None:
    """Return the coordinates of the points that a vectorized key takes, in the result's shape.

    None if the smallest block that holds the points is not much larger than they are: then it is
    cheaper to read that block.
    """
    arrays = [part for part in key if isinstance(part, np.ndarray)]
    vector = np.broadcast_shapes(*(part.shape for part in arrays))
    slices = [
        np.arange(n)[part] for part, n in zip(key, shape, strict=True) if isinstance(part, slice)
    ]
    count = prod(vector) * prod(map(len, slices))
    block = prod(len(np.unique(part)) for part in arrays) * prod(map(len, slices))
    if block < _SPARSE * count:
        return None
    # NumPy's rule for this kind of index: axes of arrays first, then axes of slices.
    coordinates, axis = [], len(vector)
    ndim = len(vector) + len(slices)
    for part, n in zip(key, shape, strict=True):
        if isinstance(part, np.ndarray):
            full = part.reshape((1,) * (len(vector) - part.ndim) + part.shape)
            coordinates.append(full.reshape(full.shape + (1,) * len(slices)))
        else:
            positions = np.arange(n)[part]
            coordinates.append(positions.reshape((-1,) + (1,) * (ndim - axis - 1)))
            axis += 1
    return tuple(np.broadcast_arrays(*coordinates))
