"""A codec pipeline for zarr-python that reads and writes chunks by zarrdask.

One line switches it on, for arrays that are opened afterwards::

    zarr.config.set({"codec_pipeline.path": "zarrdask.compat.zarr_pipeline.Pipeline"})

zarr-python imports the pipelines of all installed packages, so this module imports little.
"""

from asyncio import to_thread
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import zarr  # noqa: F401
from zarr.core.array import create_codec_pipeline
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline
from zarr.storage import StorePath

if TYPE_CHECKING:
    from zarrdask.compat.zarr_batch import Item
    from zarrdask.compat.zarr_chunks import ZarrChunks


@dataclass(frozen=True)
class Pipeline(BatchedCodecPipeline):  # type: ignore[misc]
    """Reads and writes the chunks of an array of zarr-python by zarrdask, where it supports them.

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
        codecs = create_codec_pipeline(array_metadata)
        own = {each.name: getattr(codecs, each.name) for each in fields(BatchedCodecPipeline)}
        return cls(**own, array=array_metadata, store=store)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    async def read(
        self, batch_info: "Iterable[Item]", out: Any, drop_axes: tuple[int, ...] = ()
    ) -> Any:
        items = list(batch_info)
        read = None
        # zarr-python reports the chunks that are missing, where these raise errors.
        if self._is_known(items, out) and getattr(items[0][1].config, "read_missing_chunks", True):
            read = self._chunks.reader(items, out.as_ndarray_like(), drop_axes)
        if read is None:
            return await super().read(items, out, drop_axes)
        if read.is_short:
            read()
        else:
            await to_thread(read)
        return ({"status": "present"},) * len(items)

    async def write(
        self, batch_info: "Iterable[Item]", value: Any, drop_axes: tuple[int, ...] = ()
    ) -> None:
        items = list(batch_info)
        write = None
        # A store that is read-only has an error of its own.
        if self._is_known(items, value) and not self.store.read_only:
            write = self._chunks.writer(items, value.as_ndarray_like(), drop_axes)
        if write is None:
            await super().write(items, value, drop_axes)
        else:
            await to_thread(write)

    def _is_known(self, items: "list[Item]", values: Any) -> bool:
        """Whether a batch is of chunks that zarrdask can read to, or write from, an ndarray."""
        return (
            bool(items)
            and type(values) is cpu.NDBuffer
            and type(values.as_ndarray_like()) is np.ndarray
            and items[0][1].prototype == cpu.buffer_prototype
            and type(items[0][0]) is StorePath
            and items[0][0].store is self.store
            and self._chunks is not None
        )

    @cached_property
    def _chunks(self) -> "ZarrChunks | Any":
        """The chunks of the array, for zarrdask; None if it does not support the array."""
        if self.array is None:
            return None
        from zarrdask.compat.zarr_chunks import find_chunks

        try:
            buffers = self.array.to_buffer_dict(default_buffer_prototype())
        except (TypeError, ValueError):
            return None  # Such as a grid that a setting allowed only while the array was opened.
        documents = {name: buffer.to_bytes() for name, buffer in buffers.items()}
        value = self.array.fill_value
        dtype = self.array.dtype.to_native_dtype()
        fill = np.asarray(self.array.dtype.default_scalar() if value is None else value, dtype)
        return find_chunks(self.store, documents, codecs=tuple(self), fill=fill)


register_pipeline(Pipeline)
