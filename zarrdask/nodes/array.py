"""Arrays: a node in a store, with eager NumPy-style access."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from operator import lt
from typing import Any, Literal

import numpy as np

from zarrdask import config
from zarrdask.chunks import write
from zarrdask.chunks.inventory import count_stored, stored_sizes, trim
from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.base import Codec
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    SelectionError,
    UnsupportedError,
)
from zarrdask.grids.base import Shape, extents
from zarrdask.hierarchy.journal import forget
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.hierarchy.resize import (
    appended,
    change,
    changing_shape,
    grow,
    now,
    parse_lengths,
    resized,
    take_back,
)
from zarrdask.indexing.projection import Request
from zarrdask.indexing.selection import Selection, basic, expand, is_basic, is_integer, scalar_mask
from zarrdask.metadata.model import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.nodes.attributes import Attributes
from zarrdask.nodes.indexers import BlockIndex, OuterIndex, PointIndex, broadcast
from zarrdask.nodes.info import Info, array_info, codec_options
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain


class Array:
    """A stored array. Make one with `open_array`, `create_array` or from a group.

    Parameters
    ----------
    store : Store
    path : str
        In the store, in normal form; "" is the root.
    metadata : ArrayMetadata
    mode : {"r", "r+"}
        Whether it may be changed.
    """

    def __init__(self, store: Store, path: str, metadata: ArrayMetadata, mode: str = "r") -> None:
        self.store = store
        self.path = path
        self.mode = mode
        # Chunks are where they are, whoever tells of the metadata.
        self.stored = StoredChunks(plain(store), key_prefix(path), metadata)

    # ---- what it is

    @property
    def metadata(self) -> ArrayMetadata:
        """The array's description, without its store."""
        return self.stored.metadata

    @property
    def shape(self) -> Shape:
        """The lengths of the axes, in elements."""
        return self.metadata.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self.metadata.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.metadata.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.metadata.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements, decoded, in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> Shape | tuple[Shape, ...]:
        """The shape of the chunks; in shards, of the chunks within.

        Where chunks differ, their lengths along each axis, as Dask has them.
        """
        return extents(self.metadata.read_grid)

    @property
    def shards(self) -> Shape | tuple[Shape, ...] | None:
        """The shape of the shards, or their lengths as in `chunks`; None if there are none."""
        return None if self.metadata.shard is None else extents(self.metadata.grid)

    @property
    def fill_value(self) -> Any:
        """What absent chunks read as; None if the metadata leaves it open (zeros, then)."""
        return self.metadata.fill_value

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the axes, or None if they have none."""
        return self.metadata.dimension_names

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format it is stored in: 2, 3, or a dialect of the draft of 3."""
        return self.metadata.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user's attributes; changes are stored at once."""
        return Attributes(lambda: self.metadata.attributes, self._save_attributes)

    @property
    def nchunks(self) -> int:
        """How many chunks the array has (chunks within shards, not shards)."""
        return self.metadata.read_grid.size

    @property
    def compressors(self) -> tuple[Codec, ...]:
        """The codecs on the bytes of a chunk; in v2 one at most."""
        return codec_options(self.metadata).compressors

    @property
    def filters(self) -> tuple[Codec, ...]:
        """The codecs on the elements of a chunk; in v2 all codecs before the compressor."""
        return codec_options(self.metadata).filters

    @property
    def order(self) -> Literal["C", "F"]:
        """The order of the elements in a stored chunk."""
        return codec_options(self.metadata).order

    @property
    def read_only(self) -> bool:
        """Whether the array was opened for reading only."""
        return self.mode == "r"

    @property
    def info(self) -> Info:
        """The properties of the array as a table, which prints."""
        return array_info(node_location(self.store, self.path), self.metadata)

    def nchunks_stored(self) -> int:
        """Count the chunks that are stored: it lists the store.

        The other chunks read as the fill value. In shards every chunk that the shard's index
        names counts, also outside the array.

        Returns
        -------
        int

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        """
        return count_stored(self.stored)

    def nbytes_stored(self) -> int:
        """Add up the sizes of the stored chunks or shards: it lists the store.

        Returns
        -------
        int
            The bytes that they take encoded, without metadata documents.

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        """
        return stored_sizes(self.stored)[1]

    # ---- reading

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            if index not in (self.dtype.names or ()):
                raise SelectionError(
                    "there is no such field", found=index, expected=str(self.dtype)
                )
            return self[...][index]
        if is_basic(index):
            return self.select(basic(index, self.shape), index)
        mask = scalar_mask(index)
        if mask is None:
            return self._fancy(index)[index]
        taken, new_axis = mask
        return self[new_axis] if taken else np.empty(self._shape_of(index), self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:  # noqa: FBT001
        if copy is False:
            raise ValueError("a stored array can't be an ndarray without a copy")
        found: np.ndarray = self[...]
        return found if dtype is None else found.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    @property
    def oindex(self) -> OuterIndex:
        """Outer (orthogonal) selection: each axis by a slice, integer, list or 1-d mask."""
        return OuterIndex(self)

    @property
    def vindex(self) -> PointIndex:
        """Pointwise (vectorised) selection: an array of positions for each axis, or one mask."""
        return PointIndex(self)

    @property
    def blocks(self) -> BlockIndex:
        """Selection by chunk index (the shards', where there are any): integers and slices."""
        return BlockIndex(self)

    def select(self, selection: Selection, index: Any = ...) -> Any:
        """Return what a selection takes, in the shape that NumPy would give it."""
        found = self.read(selection.picks)
        if selection.plain and found.ndim:
            return found
        ellipsis = index is ... or (isinstance(index, tuple) and any(e is ... for e in index))
        return found[(*selection.finish, ...) if ellipsis else selection.finish]

    def read(self, request: Request, threads: int | None = None) -> np.ndarray:
        """Return what is wanted of the array; see `zarrdask.chunks.read.read_region`."""
        return read_region(self.stored, request, threads=threads)

    def _fancy(self, index: Any) -> OuterIndex | PointIndex:
        """Return the kind of selection that an index with lists or masks means in NumPy."""
        entries = index if isinstance(index, tuple) else (index,)
        lists = [e for e in entries if not is_basic(e)]
        if any(np.ndim(e) == 0 for e in lists):
            raise SelectionError(
                "not an index", found=index, expected="integers, slices, '...', lists and masks"
            )
        if len(entries) == 1 and np.ndim(entries[0]) == self.ndim and self.ndim > 1:
            return self.vindex
        if len(lists) == len(entries) == self.ndim and (self.ndim > 1 or np.ndim(lists[0]) > 1):
            return self.vindex
        full = expand(index, self.ndim)
        advanced = [i for i, e in enumerate(full) if is_integer(e) or not is_basic(e)]
        together = advanced == list(range(advanced[0], advanced[-1] + 1))
        if len(lists) == 1 and np.ndim(lists[0]) == 1 and together:
            return self.oindex
        raise SelectionError(
            "this mixture of lists, integers and slices has another meaning in NumPy than it "
            "seems; say which with oindex (each axis by itself) or vindex (points)",
            found=index,
        )

    # ---- writing

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            raise SelectionError(
                "single fields can't be written; write whole elements", found=index
            )
        if is_basic(index):
            self.assign(basic(index, self.shape), value)
            return
        mask = scalar_mask(index)
        if mask is None:
            self._fancy(index)[index] = value
            return
        taken, new_axis = mask
        if taken:
            self[new_axis] = value
        else:
            # Nothing is written, but the same values are refused.
            self.check_writable()
            broadcast(value, self._shape_of(index), self.dtype)

    def _shape_of(self, index: Any) -> tuple[int, ...]:
        """Return the shape of what NumPy takes from such an array."""
        taken: np.ndarray = np.broadcast_to(np.False_, self.shape)[index]
        return taken.shape

    def assign(self, selection: Selection, value: Any) -> None:
        """Write a value, broadcast as NumPy would, where a selection is."""
        # What `finish` drops from the result is a new axis of the value, and the other way round.
        result = np.broadcast_to(np.False_, selection.shape)[selection.finish].shape
        undo = tuple(0 if f is None else None if f == 0 else f for f in selection.finish)
        # With "...", else one element would become a scalar: text or bytes have other indices.
        self.write(selection.picks, broadcast(value, result, self.dtype)[(*undo, ...)])

    def write(self, request: Request, values: np.ndarray, threads: int | None = None) -> None:
        """Write values of the request's shape; see `zarrdask.chunks.write.write_region`.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading.
        """
        self.check_writable()
        empty = config.get("write-empty-chunks")
        with self.store.batch():
            write.write_region(self.stored, request, values, empty=empty, threads=threads)

    def check_writable(self) -> None:
        """Check that the array may be changed.

        Raises
        ------
        ReadOnlyError
            If it was opened for reading.
        """
        if self.mode == "r":
            raise ReadOnlyError(
                "the array was opened for reading",
                key=node_location(self.store, self.path),
                expected='mode="r+"',
            )

    def resize(self, shape: Any, *, outside: Literal["erase", "keep"] = "erase") -> None:
        """Give the array another shape (conformance C-76).

        Parameters
        ----------
        shape : int or sequence of int
            As many lengths as there are axes.
        outside : {"erase", "keep"}
            What becomes of elements outside a smaller shape: erased, they never come back; kept,
            they do if the array grows again. Nothing else is rewritten: an array that grows shows
            what is stored there already, and elsewhere its fill value.
        """
        if outside not in ("erase", "keep"):
            raise MetadataError("unknown", key="outside", found=outside, expected="erase or keep")
        self.check_writable()
        lengths = parse_lengths(shape, self.ndim)
        with changing_shape(self.store, self.path), self.store.batch():
            old = self.refreshed()
            resized(old, lengths)  # if that can't be, nothing is erased
            if outside == "erase" and any(map(lt, lengths, old.metadata.shape)):
                # First, so that what was begun can be done again: by the old shape.
                forget(old.store, old.prefix)
                trim(old, lengths)
            self._change(lambda now: now.resized(lengths))

    def append(self, values: Any, axis: int = 0) -> Shape:
        """Add values at the end of an axis, and return the new shape.

        The values are stored first, then the shape: who reads meanwhile sees the array as it was,
        then as it is. If it fails, it is as it was.

        Parameters
        ----------
        values : array_like
            The values to append, of the array's shape but for the length of `axis`. Dask arrays
            are appended by `zarrdask.append`.
        axis : int
            Which.
        """
        self.check_writable()
        if hasattr(values, "__dask_graph__"):
            raise UnsupportedError(
                "a Dask array is appended by zarrdask.append(x, array), in parallel",
                key=node_location(self.store, self.path),
                found=type(values).__name__,
                expected="an array-like",
            )
        values, empty = np.asarray(values), config.get("write-empty-chunks")
        with changing_shape(self.store, self.path), self.store.batch():
            old = self.refreshed()
            shape = old.metadata.shape
            grown, region = appended(old, values.shape, axis)
            values = values.astype(self.dtype, copy=False)
            try:
                write.write_region(grown, region, values, empty=empty, beyond="fill", threads=None)
            except BaseException:
                take_back(self.store, self.path, grown, shape)
                raise
            metadata = grow(self.store, self.path, self.zarr_format, shape, grown.metadata.shape)
        self.stored = replace(old, metadata=metadata)
        return self.shape

    def _save_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.check_writable()
        self._change(lambda now: replace(now, attributes=dict(attributes)))

    def _change(self, to: Callable[[ArrayMetadata], ArrayMetadata]) -> None:
        """Change the metadata as they are stored now."""

        def checked(found: Metadata | None) -> ArrayMetadata:
            return to(self._checked(found))

        metadata = change(self.store, self.path, self.zarr_format, checked)
        self.stored = replace(self.stored, metadata=metadata)

    def refreshed(self) -> StoredChunks:
        """Return the array as it is stored now: others may have changed its shape."""
        metadata = now(self.store, self.path, self.zarr_format)
        return replace(self.stored, metadata=self._checked(metadata))

    def _checked(self, found: Metadata | None) -> ArrayMetadata:
        if not isinstance(found, ArrayMetadata):
            raise NodeNotFoundError(
                "the array is no longer there", key=node_location(self.store, self.path)
            )
        return found

    # ---- to people

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    def __repr__(self) -> str:
        shards = f", shards={_brief(self.shards)}" if self.shards else ""
        chunks = _brief(self.chunks)
        place = node_location(self.store, self.path)
        return f"<zarrdask.Array {place} {self.shape} {self.dtype}, chunks={chunks}{shards}>"


def _brief(lengths: tuple[Any, ...]) -> str:
    """Return chunk lengths as text, of many different ones the first."""
    different = any(isinstance(axis, tuple) for axis in lengths)
    return reprlib.repr(lengths) if different else repr(lengths)
