"""The chunks of an array of zarr-python, read and written by zarrdask for a codec pipeline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.read import read_units
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import Beyond, write_units
from zarrdask.compat.zarr_batch import Batch, Item, as_batch
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.codecs.shard_order import ShardOrder, shard_order
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.adapters.zarr_python import own_store

#: The packages whose codecs zarrdask has, too. A class of another package may do something else.
_PACKAGES = {"zarr", "numcodecs"}
#: The orders of the chunks in a shard, by the names that zarr-python has for them.
_ORDERS: dict[str, ShardOrder] = {"morton": "morton", "lexicographic": "c", "colexicographic": "f"}

#: The largest chunk in bytes that is read in the event loop, which all threads share.
_SHORT_BYTES = 2**18
#: A read of a small chunk that takes more seconds than this is slow: file systems may be.
_SLOW_SECONDS = 2e-3
#: A slow read adds two to a count, a fast one takes one away. From this count on, threads read.
_SLOW_COUNT = 6


@dataclass(frozen=True)
class Read:
    """A read that is planned: call it."""

    work: Callable[[], None]
    #: Whether it takes less time than a thread takes to start.
    is_short: bool

    def __call__(self) -> None:
        """Read."""
        self.work()


class ZarrChunks:
    """The chunks of an array of zarr-python.

    Parameters
    ----------
    chunks : StoredChunks
        The chunks; their prefix is found from the locations that a batch has.
    """

    def __init__(self, chunks: StoredChunks) -> None:
        self._chunks = chunks
        #: Large while more than a third of the reads of small chunks are slow.
        self._slow = 0

    def reader(
        self, items: Sequence[Item], out: np.ndarray, drop_axes: tuple[int, ...]
    ) -> Read | None:
        """Return the reader of a batch, or None if zarr-python reads it."""
        batch = self._batch(items, out, drop_axes)
        if batch is None:
            return None
        chunks = self._at(batch)
        read = partial(read_units, chunks, batch.projection, out=batch.view(out), show=False)
        if len(items) > 1 or out.nbytes > _SHORT_BYTES or not self._is_small:
            return Read(partial(read, threads=None), is_short=False)
        measured = partial(self._measure, partial(read, threads=1))
        return Read(measured, is_short=self._slow < _SLOW_COUNT)

    def writer(
        self, items: Sequence[Item], values: np.ndarray, drop_axes: tuple[int, ...]
    ) -> Callable[[], int] | None:
        """Return the writer of a batch, or None if zarr-python writes it."""
        batch = self._batch(items, values, drop_axes)
        if batch is None:
            return None
        chunks = self._at(batch)
        source = batch.source(values.astype(chunks.metadata.dtype, copy=False))
        if source is None:
            return None
        empty = items[0][1].config.write_empty_chunks
        beyond: Beyond = "fill" if batch.is_complete else "keep"
        where = chunks, batch.projection, source
        return partial(write_units, *where, empty=empty, beyond=beyond, threads=None, show=False)

    def _batch(
        self, items: Sequence[Item], values: np.ndarray, drop_axes: tuple[int, ...]
    ) -> Batch | None:
        metadata = self._chunks.metadata
        if drop_axes or values.dtype.newbyteorder("=") != metadata.dtype.newbyteorder("="):
            return None
        batch = as_batch(items, metadata.keys, len(metadata.shape))
        if batch is None or not _has_shapes(metadata, items, batch.projection.indices):
            return None
        return batch

    def _at(self, batch: Batch) -> StoredChunks:
        """Return the chunks at the prefix of a batch."""
        chunks = self._chunks
        if chunks.prefix != batch.prefix:
            chunks = self._chunks = replace(chunks, prefix=batch.prefix)
        return chunks

    @cached_property
    def _is_small(self) -> bool:
        """Whether a chunk is read in less time than a thread takes to start."""
        metadata = self._chunks.metadata
        size = prod(metadata.read_grid.chunk_shape) * metadata.dtype.itemsize
        return max(size, self._chunks.costs.request) <= _SHORT_BYTES

    def _measure(self, read: Callable[[], None]) -> None:
        start = perf_counter()
        read()
        change = 2 if perf_counter() - start > _SLOW_SECONDS else -1
        self._slow = min(max(self._slow + change, 0), 2 * _SLOW_COUNT)


def find_chunks(
    store: Any, documents: Mapping[str, bytes], *, codecs: Sequence[Any], fill: np.ndarray
) -> ZarrChunks | None:
    """Return the chunks of an array of zarr-python; None if zarrdask might read something else.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store of the array.
    documents : mapping of str to bytes
        The metadata documents of the array.
    codecs : sequence of zarr.abc.codec.Codec
        The codecs of the array.
    fill : ndarray
        The value of missing chunks, with the data type of the array, as zarr-python reads both.
    """
    ours = own_store(store)
    if ours is None or not all(map(_is_known, codecs)):
        return None
    orders = [getattr(codec, "subchunk_write_order", None) for codec in codecs]
    order = next((_ORDERS.get(name) for name in orders if name), None)
    try:
        # zarr-python warns of what is wrong with the documents.
        with strictness(strict=False, quiet=True), shard_order(order):
            metadata = detect.parse(documents)
    except ZarrdaskError:
        return None
    if not isinstance(metadata, ArrayMetadata) or not _is_same(metadata, fill):
        return None
    return ZarrChunks(StoredChunks(ours, "", metadata))


def _is_known(codec: Any) -> bool:
    """Whether a codec is one of zarr-python's own, or of numcodecs."""
    kind, inner = type(codec), list[Any]()
    if kind.__name__ == "ShardingCodec":
        inner += [*codec.codecs, *codec.index_codecs]
    elif kind.__name__ == "V2Codec":
        inner += [*(codec.filters or ()), *filter(None, [codec.compressor])]
    return kind.__module__.partition(".")[0] in _PACKAGES and all(map(_is_known, inner))


def _is_same(metadata: ArrayMetadata, fill: np.ndarray) -> bool:
    """Whether elements and missing chunks have the same values as in zarr-python."""
    # Texts and objects are the same if they are equal, not if their bytes are.
    if metadata.dtype != fill.dtype or fill.dtype.kind in "OT":
        return False
    return np.asarray(metadata.fill, fill.dtype).tobytes() == fill.tobytes()


def _has_shapes(metadata: ArrayMetadata, items: Sequence[Item], indices: list[Index]) -> bool:
    """Whether the chunks have the shapes that the metadata say: an array may have been resized."""
    grid = metadata.grid
    if grid.is_regular:
        return bool(items[0][1].shape == metadata.chunk_shape)
    return all(
        all(n < count for n, count in zip(index, grid.counts, strict=True))
        and item[1].shape == grid.shape_of(index)
        for item, index in zip(items, indices, strict=True)
    )
