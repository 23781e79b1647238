"""What a task carries instead of an array: small to pickle, opened once a process."""

from functools import lru_cache
from typing import Any
from zlib import compress, decompress

import numpy as np

from zarrdask import hierarchy
from zarrdask.array import Array
from zarrdask.chunkio import Chunks, read_region, write_region
from zarrdask.formats import detect
from zarrdask.indexing import Region, basic, pick_size
from zarrdask.metadata import ArrayMetadata
from zarrdask.storage.base import Store

#: Opened arrays that a process keeps.
_CACHE = 256


@lru_cache(maxsize=_CACHE)
def _open(store: Store, prefix: str, documents: tuple[tuple[str, bytes], ...]) -> Chunks:
    found = detect.parse({name: decompress(data) for name, data in documents})
    return Chunks(store, prefix, found)  # type: ignore[arg-type]


def _packed(metadata: ArrayMetadata) -> tuple[tuple[str, bytes], ...]:
    """Return the documents that a worker needs, compressed: no attributes, no names."""
    bare = ArrayMetadata(
        metadata.zarr_format,
        metadata.shape,
        metadata.dtype,
        metadata.chunk_shape,
        metadata.keys,
        metadata.fill_value,
        metadata.codecs,
    )
    documents = detect.render(bare)
    return tuple((name, compress(data)) for name, data in documents.items() if data is not None)


class Source:
    """A region of a stored array, as an array-like that Dask slices.

    Parameters
    ----------
    chunks : Chunks
        The stored array.
    region : tuple of slice
        What of it this is: positive steps, within the shape.
    token : str
        Tells this array, as it is stored now, from all others.
    """

    __slots__ = ("chunks", "documents", "region", "shape", "token")

    def __init__(
        self,
        chunks: Chunks,
        region: Region,
        token: str,
        documents: tuple[tuple[str, bytes], ...] | None = None,
    ) -> None:
        self.chunks = chunks
        self.region = region
        self.token = token
        self.shape = tuple(map(pick_size, region))
        self.documents = _packed(chunks.metadata) if documents is None else documents

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self.chunks.metadata.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def view(self, region: Region) -> "Source":
        """Return a region of this region."""
        return Source(self.chunks, compose(self.region, region), self.token, self.documents)

    def __getitem__(self, index: Any) -> np.ndarray:
        selection = basic(index, self.shape)
        region = compose(self.region, selection.picks)  # type: ignore[arg-type]
        found = read_region(self.chunks, region)
        return found if selection.plain else found[selection.finish]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "zarrdask", self.token, tuple((s.start, s.stop, s.step) for s in self.region)

    def __reduce__(self) -> tuple[Any, ...]:
        bounds = tuple((s.start, s.stop, s.step) for s in self.region)
        return _rebuild, (self.chunks.store, self.chunks.prefix, self.documents, bounds, self.token)


def _rebuild(
    store: Store,
    prefix: str,
    documents: tuple[tuple[str, bytes], ...],
    bounds: tuple[tuple[int, int, int], ...],
    token: str,
) -> Source:
    chunks = _open(store, prefix, documents)
    return Source(chunks, tuple(slice(*b) for b in bounds), token, documents)


def compose(outer: Region, inner: Region) -> Region:
    """Return the region of an array that `inner` is of its region `outer`.

    >>> compose((slice(10, 20, 2),), (slice(1, 4, 2),))
    (slice(12, 17, 4),)
    """
    return tuple(
        slice(
            a.start + b.start * a.step,
            a.start + b.start * a.step
            if b.start >= b.stop
            else a.start + (b.start + (pick_size(b) - 1) * b.step) * a.step + 1,
            a.step * b.step,
        )
        for a, b in zip(outer, inner, strict=True)
    )


class Target:
    """A region of a stored array that tasks write.

    Parameters
    ----------
    chunks : Chunks
        The stored array.
    start : tuple of int
        Where the written array begins in it.
    empty : bool
        Whether units that hold only the fill value are stored.
    """

    __slots__ = ("chunks", "documents", "empty", "start")

    def __init__(
        self,
        chunks: Chunks,
        start: tuple[int, ...],
        *,
        empty: bool,
        documents: tuple[tuple[str, bytes], ...] | None = None,
    ) -> None:
        self.chunks = chunks
        self.start = start
        self.empty = empty
        self.documents = _packed(chunks.metadata) if documents is None else documents

    def place(self, block: tuple[slice, ...]) -> Region:
        """Return where a block of the written array goes."""
        return tuple(
            slice(at + s.start, at + s.stop, 1) for at, s in zip(self.start, block, strict=True)
        )

    def write(self, values: np.ndarray, block: tuple[slice, ...]) -> int:
        """Write a block, and return how many units were stored."""
        values = np.asarray(values).astype(self.chunks.metadata.dtype, copy=False)
        return write_region(self.chunks, self.place(block), values, empty=self.empty)

    def read(self, block: tuple[slice, ...]) -> np.ndarray:
        """Return a block that was written."""
        return read_region(self.chunks, self.place(block))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        stored = self.chunks
        return "zarrdask", stored.store.url, stored.prefix, self.documents, self.start, self.empty

    def __reduce__(self) -> tuple[Any, ...]:
        stored = self.chunks
        return _rebuild_target, (
            stored.store,
            stored.prefix,
            self.documents,
            self.start,
            self.empty,
        )


def _rebuild_target(
    store: Store,
    prefix: str,
    documents: tuple[tuple[str, bytes], ...],
    start: tuple[int, ...],
    empty: bool,  # noqa: FBT001 - the order of __reduce__
) -> Target:
    return Target(_open(store, prefix, documents), start, empty=empty, documents=documents)


def identity(array: Array) -> tuple[str, str, str]:
    """Return what tells this stored array, as it is now, from all others."""
    return array.store.url, array.path, hierarchy.stamp(array.store, array.path)
