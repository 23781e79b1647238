"""The chunks and shards of an array, bound to the store that they are in.

A *unit* is what is stored as one object: a chunk, or a shard of an array that has shards.
"""

import pickle
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import prod
from typing import Any, Protocol
from zlib import compress, decompress

import numpy as np

from zarrdask import __version__, config
from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.errors import CodecError, UnsupportedError
from zarrdask.formats.codecs.decode import Blocks
from zarrdask.formats.codecs.shard_order import shard_order
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import AnyRequest
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime import measuring, serialize
from zarrdask.runtime.counters import Labels
from zarrdask.runtime.decoded_chunks import CHUNKS
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.runtime.worker_metrics import measure_worker, task_key, task_prefix
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import StoreCosts
from zarrdask.storage.locks.chunk_locks import canonical_location
from zarrdask.storage.remote.body_limit import bounded
from zarrdask.storage.zarr.consolidated_store import uncached
from zarrdask.storage.zarr.draft_store import layout_of

#: The largest size of metadata that each task may hold, in bytes.
_MAX_INLINE_BYTES = 2**16
#: More than an encoded unit has: bytes of a small one, bytes for each decoded byte (numbers as text
#: have up to six), and bytes for each inner chunk of a shard.
_MIN_BODY_BYTES, _MAX_EXPANSION, _PART_BYTES = 2**24, 8, 2**10
#: The number of unpickled arrays that a process keeps.
_MAX_OPEN_ARRAYS = 256
#: The version of the content of a pickled array. Increase it whenever that changes, so that a
#: worker with another release of zarrdask reports the difference instead of a decoding error. The
#: name `unpack` and its first two parameters never change.
LAYOUT = 6


class ElementReader(Protocol):
    """Reads elements of an array that is not stored in chunks of its own."""

    def read(self, request: AnyRequest, out: np.ndarray | Blocks, *, threads: int | None) -> None:
        """Read elements to a block, or to several; as `zarrdask.arrays.chunks.read.read_region`."""

    def parts(self, region: Region) -> "Iterator[tuple[StoredChunks, Region]]":
        """Yield the stored arrays that a region is read from, and the region of each."""

    def part(self, region: Region) -> "tuple[StoredChunks, Region, tuple[int, ...]] | None":
        """Return the part of the array that a task needs to read a region, if less than all of it.

        These are an array, the region of it, and its axes that this array has.
        """


class ElementStore(Store):
    """A store of arrays whose elements are read in another way than by decoding chunks."""

    @abstractmethod
    def elements(self, prefix: str) -> ElementReader:
        """Return the reader of the elements of the array whose keys have a prefix."""


def in_doubt(error: CodecError) -> CodecError:
    """Return the error for a unit that can't be decoded, which says that it may be another's."""
    error.message += (
        "; it is damaged, or the array was replaced while it was open, here or in the process that "
        "stored this: open it again, and write the chunk again"
    )
    return error


@dataclass(frozen=True)
class StoredChunks:
    """The units of one array in a store.

    It pickles to a few hundred bytes, without attributes, dimension names and the like, and is
    opened once per process. The pickled form is kept, for tasks that are pickled one by one.

    Attributes
    ----------
    store : Store
    prefix : str
        The prefix of the array's keys: "" or ends with "/".
    metadata : ArrayMetadata
    guard : callable, optional
        Returns the view of a store through which units are changed, on a condition.
    missing : {"fill", "error"}
        How chunks that are not stored are read; by default as the fill value. None stands for the
        setting at the time of the read.
    is_shared : bool
        Whether regions that overlap are read, so that decoded chunks are cached in any case.
    is_stored : bool
        Whether the document of the array was read from the store, where it must be as long as the
        array is read. The document of an array that is being written may follow after its chunks.
    units : Store
        The store seen through the array's storage transformers: chunks and shards are read from
        it and written to it.
    """

    store: Store
    prefix: str
    metadata: ArrayMetadata
    guard: Callable[[Store], Store] | None = field(default=None, compare=False, repr=False)
    missing: Missing | None = "fill"
    is_shared: bool = field(default=False, compare=False)
    is_stored: bool = field(default=False, compare=False)
    units: Store = field(init=False, compare=False, repr=False)
    #: The reader of elements, if the store does not read them chunk by chunk.
    elements: "ElementReader | None" = field(init=False, compare=False, repr=False, default=None)
    #: The pickled content by the order of chunks in shards, which is a setting of this process.
    _packed: dict[Any, bytes] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        # Consolidated metadata holds no chunks: these are listed and read in the store itself.
        object.__setattr__(self, "store", uncached(self.store))
        units = self.store.for_chunks()
        if units.capabilities.bodies_limited:
            units = bounded(units, most_encoded_bytes(self.metadata))
        if self.guard is not None:
            units = self.guard(units)
        for transformer in reversed(self.metadata.transformers):
            grid = self.metadata.grid
            units = transformer.wrap(units, self.prefix, self.metadata.keys, grid.counts)
        object.__setattr__(self, "units", units)
        if isinstance(self.store, ElementStore):
            object.__setattr__(self, "elements", self.store.elements(self.prefix))

    def key(self, index: Index) -> str:
        """Return the key of a unit in `units`."""
        return self.prefix + self.metadata.keys.key(index)

    @property
    def is_strict(self) -> bool:
        """Whether a missing chunk raises an error."""
        return (self.missing or config.get("missing")) == "error"

    @property
    def cache_size(self) -> int:
        """The largest size of the cache of decoded chunks, in bytes."""
        if not self.is_shared:
            return CHUNKS.limit
        # The other half is for the memory of blocks, which has to be reused as well.
        return max(CHUNKS.limit, int(config.get("keep-memory")) // 2)

    @property
    def costs(self) -> StoreCosts:
        """What requests for units cost."""
        return self.units.capabilities.costs

    @property
    def location(self) -> str:
        """The URL of the array, for messages."""
        return f"{self.store.url}/{self.prefix}".rstrip("/")

    def task_name(self, verb: str) -> str:
        """Return the name of tasks, for dashboards: such as ``read_t2m`` for the array ``t2m``.

        Dashboards cut names at the first "-" that is not followed by letters alone.
        """
        return f"{verb}{self._task_suffix}".strip("_")

    @cached_property
    def _task_suffix(self) -> str:
        name = self.location.rpartition("/")[2].partition(".")[0]
        return re.sub(r"\W+", "_", f"_{name}")

    def measured(self, verb: str) -> AbstractContextManager[None]:
        """Return a context in which what is counted belongs to a read or a write of this array."""
        if not measuring.IS_ACTIVE:
            return measuring.UNMEASURED
        task = task_key() if "distributed.worker" in sys.modules else None
        return THIS_THREAD.counts.operation(self._token, verb, task, self._labels)

    def _labels(self, verb: str, task: Any) -> Labels:
        """Return the subject of counts, in a task of `distributed` with a key, or elsewhere."""
        prefix = "" if task is None else task_prefix(task)
        array = self.prefix.rstrip("/") or "/"
        return Labels(prefix or self.task_name(verb), array, self.store.url)

    @cached_property
    def _token(self) -> object:
        """An object that stands for the array, without keeping its store alive."""
        return object()

    @cached_property
    def canonical_location(self) -> str:
        """The location of the array, the same for all stores and prefixes that lead to it."""
        return canonical_location(self.store, self.prefix)

    @cached_property
    def decoding(self) -> str:
        """A token of where units are, and of what decides how they are decoded."""
        documents = self.metadata.without_labels().render()
        content = repr((self.units.identity.token, self.prefix, sorted(documents.items())))
        return blake2b(content.encode(), digest_size=16).hexdigest()

    def lock_name(self, index: Index) -> str:
        """Return the name of the lock of a unit."""
        return self.canonical_location + self.metadata.keys.key(index)

    @cached_property
    def documents(self) -> dict[str, bytes]:
        """The documents of the array: as they were read, if they were."""
        metadata = self.metadata
        documents = metadata.render() if metadata.documents is None else metadata.documents
        return {name: data for name, data in documents.items() if data is not None}

    @property
    def is_small(self) -> bool:
        """Whether each task may hold the metadata and the store.

        Thousands of chunk lengths, or of objects of a snapshot, make them large.
        """
        if not self.store.capabilities.compact:
            return False
        size = sum(map(len, self.documents.values()))
        return size <= _MAX_INLINE_BYTES or len(self._pack()) <= _MAX_INLINE_BYTES

    def renewed(self) -> "StoredChunks":
        """Return the same chunks without the pickled content that is kept.

        The pickled form of a store may change, as of an archive that is being written.
        """
        chunks = object.__new__(type(self))
        vars(chunks).update(vars(self), _packed={})
        return chunks

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack, (LAYOUT, __version__, self._pack())

    def _pack(self) -> bytes:
        """Return the pickled fields, the documents and the order of shards, compressed."""
        import cloudpickle

        shard = self.metadata.shard
        order = None if shard is None else shard.codec.written_order
        if order not in self._packed:
            serialize.prepare(self.metadata.dtype)
            documents = self.metadata.without_labels().render()
            missing = "error" if self.is_strict else "fill"
            # As Dask does: the class of a store may be defined in the user's script.
            options = self.guard, missing, self.is_shared, self.is_stored
            content = self.store, self.prefix, documents, options, order
            self._packed[order] = compress(cloudpickle.dumps(content, 5), 9)
        return self._packed[order]


class UnreadableChunks:
    """Chunks that this process can't open, for example without a codec; using them raises why.

    An error that is raised while a worker of a cluster reads a message ends the worker.
    """

    def __init__(self, error: Exception, pickled: tuple[int, str, bytes]) -> None:
        self._error, self._pickled = error, pickled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise copy(self._error)  # which other tasks raise, too, with notes of their own

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack, self._pickled


def unpack(layout: int, release: str, packed: bytes) -> StoredChunks | UnreadableChunks:
    """Return unpickled chunks; if they can't be opened here, their first use raises the error.

    `layout` is the `LAYOUT` of the `release` that pickled them.
    """
    try:
        return open_packed(layout, release, packed)
    except Exception as error:  # noqa: BLE001 - raised where the chunks are used
        return UnreadableChunks(error, (layout, release, packed))


@lru_cache(maxsize=_MAX_OPEN_ARRAYS)
def open_packed(layout: int, release: str, packed: bytes) -> StoredChunks:
    """Return unpickled chunks, with their codecs bound. A process caches the result."""
    if layout != LAYOUT:
        raise _other_release(release)
    measure_worker(open_packed.cache_clear)
    try:
        store, prefix, documents, options, order = pickle.loads(decompress(packed))
    except Exception as error:
        if release == __version__:
            raise
        raise _other_release(release) from error
    # Warnings about the metadata were emitted where the array was opened.
    with strictness(strict=False, quiet=True), shard_order(order):
        metadata = detect.parse(documents, layout_of(store))
        chunks = StoredChunks(store, prefix, metadata, *options)  # type: ignore[arg-type]
    serialize.prepare(chunks.metadata.dtype)
    chunks._packed[order] = packed
    return chunks


def most_encoded_bytes(metadata: ArrayMetadata) -> int | None:
    """Return more bytes than any codec makes of a unit; None if the metadata sets no limit."""
    dtype = metadata.dtype
    if dtype.hasobject or not dtype.itemsize:
        return None
    longest = prod(axis.longest for axis in metadata.grid.axes)
    parts = longest // max(prod(axis.longest for axis in metadata.read_grid.axes), 1)
    return _MIN_BODY_BYTES + _MAX_EXPANSION * longest * dtype.itemsize + _PART_BYTES * parts


def _other_release(release: str) -> UnsupportedError:
    return UnsupportedError(
        f"this task was created by zarrdask {release} and cannot be read by zarrdask "
        f"{__version__}, which runs here; install the same release for the client, the scheduler "
        "and all workers"
    )
