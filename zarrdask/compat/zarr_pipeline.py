"""The codec pipeline of zarrdask for zarr-python, which reads and writes chunks by our code.

One line switches it on, for arrays that are opened afterwards::

    zarr.config.set({"codec_pipeline.path": "zarrdask.compat.zarr_pipeline.Pipeline"})
"""

from asyncio import to_thread
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from math import prod
from time import perf_counter
from typing import Any, Self

import numpy as np
import zarr  # noqa: F401
from zarr.core.array import create_codec_pipeline
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline
from zarr.storage import StorePath

from zarrdask.arrays.chunks.read import read_units
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import Beyond, write_units
from zarrdask.compat.zarr_batch import Batch, Item, as_batch
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.codecs.shard_order import ShardOrder, shard_order
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.adapters.zarr_python import ZarrPythonStore, adapt_store
from zarrdask.storage.base import Store
from zarrdask.storage.zarr import detect

#: The packages whose codecs zarrdask has, too. A class of another package may do something else.
_PACKAGES = {"zarr", "numcodecs"}
#: The orders of the chunks in a shard, by the names that zarr-python has for them.
_ORDERS: dict[str, ShardOrder] = {"morton": "morton", "lexicographic": "c", "colexicographic": "f"}


#: The largest chunk in bytes that is read in the event loop, which all threads share.
_SHORT_BYTES = 2**18
#: Reads in the event loop that take more seconds than this, so many times in a row, end them.
_SLOW_SECONDS, _SLOW_TIMES = 2e-3, 3


class _Speed:
    """Whether a chunk is read in less time than a thread takes to start."""

    def __init__(self) -> None:
        self._slow = 0

    def is_short(self, chunks: StoredChunks, nbytes: int) -> bool:
        """Whether to read a part of `nbytes` of one chunk or shard in the event loop."""
        if self._slow >= _SLOW_TIMES or nbytes > _SHORT_BYTES or chunks.is_remote:
            return False
        lengths = chunks.metadata.read_grid.chunk_shape
        return prod(lengths) * chunks.metadata.dtype.itemsize <= _SHORT_BYTES

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure a read. A file system may be slow, as those of networks are."""
        start = perf_counter()
        yield
        if self._slow < _SLOW_TIMES:
            self._slow = self._slow + 1 if perf_counter() - start > _SLOW_SECONDS else 0


@dataclass(frozen=True)
class Pipeline(BatchedCodecPipeline):  # type: ignore[misc]
    """Reads and writes the chunks of an array of zarr-python by zarrdask, as far as it knows them.

    Anything else is read and written by the codecs of zarr-python: codecs and data types that
    zarrdask does not have, classes that replace a codec, other stores, arrays on a GPU.

    Attributes
    ----------
    array : zarr.core.metadata.ArrayMetadata, optional
        The metadata of the array; None in the pipeline of the chunks in a shard.
    store : zarr.abc.store.Store, optional
        The store of the array.
    """

    array: Any = field(default=None, compare=False, repr=False)
    store: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Any) -> Self:
        pipeline = create_codec_pipeline(array_metadata)
        own = {name: getattr(pipeline, name) for name in BatchedCodecPipeline.__annotations__}
        return cls(**own, array=array_metadata, store=store)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    async def read(
        self, batch_info: Iterable[Item], out: Any, drop_axes: tuple[int, ...] = ()
    ) -> Any:
        items = list(batch_info)
        batch = self._batch(items, out, drop_axes)
        if batch is None or not getattr(items[0][1].config, "read_missing_chunks", True):
            return await super().read(items, out, drop_axes)
        chunks, values = self._at(batch), batch.view(out.as_ndarray_like())
        read = partial(read_units, chunks, batch.projection, out=values, show=False)
        if len(items) == 1 and self._speed.is_short(chunks, values.nbytes):
            with self._speed.measured():
                read(threads=1)
        else:
            await to_thread(read, threads=None)
        # zarr-python asks for more only if missing chunks are errors.
        return ({"status": "present"},) * len(items)

    async def write(
        self, batch_info: Iterable[Item], value: Any, drop_axes: tuple[int, ...] = ()
    ) -> None:
        items = list(batch_info)
        batch = self._batch(items, value, drop_axes)
        chunks = None if batch is None else self._at(batch)
        values = None
        if batch is not None and chunks is not None:
            dtype = chunks.metadata.dtype
            values = batch.source(value.as_ndarray_like().astype(dtype, copy=False))
        # A store that is read-only has an error of its own.
        if batch is None or chunks is None or values is None or self.store.read_only:
            await super().write(items, value, drop_axes)
            return
        beyond: Beyond = "fill" if batch.is_complete else "keep"
        empty = items[0][1].config.write_empty_chunks
        write = partial(write_units, chunks, batch.projection, values, empty=empty, beyond=beyond)
        await to_thread(write, threads=None, show=False)

    def _batch(self, items: list[Item], values: Any, drop_axes: tuple[int, ...]) -> Batch | None:
        """Return what zarrdask is to read or write, or None if that is left to zarr-python."""
        if not items or drop_axes or self._chunks is None or type(values) is not cpu.NDBuffer:
            return None
        chunks, array, spec = self._chunks, values.as_ndarray_like(), items[0][1]
        metadata = chunks.metadata
        if (
            type(array) is not np.ndarray
            or array.dtype.newbyteorder("=") != metadata.dtype.newbyteorder("=")
            or spec.prototype != cpu.buffer_prototype
            or any(type(item[0]) is not StorePath for item in items[:1])
            or items[0][0].store is not self.store
        ):
            return None
        batch = as_batch(items, metadata.keys, len(metadata.shape))
        return (
            batch
            if batch is None or _has_shapes(metadata, items, batch.projection.indices)
            else None
        )

    def _at(self, batch: Batch) -> StoredChunks:
        """Return the chunks of the array, which is where the keys of a batch are."""
        chunks: Any = self._chunks
        if chunks.prefix != batch.prefix:
            chunks = replace(chunks, prefix=batch.prefix)
            self.__dict__["_chunks"] = chunks
        return chunks  # type: ignore[no-any-return]

    @cached_property
    def _speed(self) -> "_Speed":
        return _Speed()

    @cached_property
    def _chunks(self) -> StoredChunks | None:
        """The chunks of the array, with the prefix of the last batch; None if not supported."""
        if self.array is None or not all(map(_is_known, self)):
            return None
        store = adapt_store(self.store)
        if store is None or isinstance(store, ZarrPythonStore):
            return None
        try:
            metadata = self._parse(store)
        except ZarrdaskError:
            return None
        return StoredChunks(store, "", metadata) if _is_same(metadata, self.array) else None

    def _parse(self, store: Store) -> Any:
        """Return the metadata of the array as zarrdask reads them."""
        buffers = self.array.to_buffer_dict(default_buffer_prototype())
        documents = {name: buffer.to_bytes() for name, buffer in buffers.items()}
        order = getattr(self.array_bytes_codec, "subchunk_write_order", "")
        # zarr-python warns of what is wrong with the documents.
        with strictness(strict=False, quiet=True), shard_order(_ORDERS.get(order)):
            return detect.parse(documents, store)


def _is_known(codec: Any) -> bool:
    """Whether a codec is one of zarr-python's own, or of numcodecs."""
    kind, inner = type(codec), list[Any]()
    if kind.__name__ == "ShardingCodec":
        inner += [*codec.codecs, *codec.index_codecs]
    elif kind.__name__ == "V2Codec":
        inner += [*(codec.filters or ()), *filter(None, [codec.compressor])]
    return kind.__module__.partition(".")[0] in _PACKAGES and all(map(_is_known, inner))


def _is_same(metadata: Any, array: Any) -> bool:
    """Whether zarrdask and zarr-python read an array to the same values."""
    dtype = array.dtype.to_native_dtype()
    if not isinstance(metadata, ArrayMetadata) or metadata.dtype != dtype or dtype.kind in "OT":
        return False
    fill = array.dtype.default_scalar() if array.fill_value is None else array.fill_value
    values = [np.asarray(value, dtype).tobytes() for value in (metadata.fill, fill)]
    return values[0] == values[1]


def _has_shapes(metadata: ArrayMetadata, items: list[Item], indices: list[Index]) -> bool:
    """Whether the chunks have the shapes that the metadata say: an array may have been resized."""
    grid = metadata.grid
    if grid.is_regular:
        return bool(items[0][1].shape == metadata.chunk_shape)
    return all(
        all(n < count for n, count in zip(index, grid.counts, strict=True))
        and item[1].shape == grid.shape_of(index)
        for item, index in zip(items, indices, strict=True)
    )


register_pipeline(Pipeline)
