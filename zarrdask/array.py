"""Arrays: a node in a store, with eager NumPy-style access."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal

import numpy as np

from zarrdask import chunkio, config, hierarchy
from zarrdask.accessors import BlockIndex, OuterIndex, PointIndex, broadcast
from zarrdask.attributes import Attributes
from zarrdask.chunkio import Chunks
from zarrdask.creation import ArrayOptions, ChunksLike, CodecsLike, plan_array
from zarrdask.cuts import Request
from zarrdask.errors import MetadataError, NodeTypeError, ReadOnlyError, SelectionError
from zarrdask.grids import RegularGrid, Shape
from zarrdask.indexing import Selection, basic, expand, is_basic, is_integer, whole_region
from zarrdask.metadata import ArrayMetadata
from zarrdask.storage.base import Store

MODES = ("r", "r+")


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
        self.stored = Chunks(store, hierarchy.prefix_of(path), metadata)

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
    def chunks(self) -> Shape:
        """The shape of the chunks; in shards, of the chunks within."""
        return self.metadata.read_shape

    @property
    def shards(self) -> Shape | None:
        """The shape of the shards, or None if there are none."""
        return None if self.metadata.shard is None else self.metadata.chunk_shape

    @property
    def fill_value(self) -> Any:
        """What absent chunks read as; None if the metadata leaves it open (zeros, then)."""
        return self.metadata.fill_value

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the axes, or None if they have none."""
        return self.metadata.dimension_names

    @property
    def zarr_format(self) -> int:
        """The format it is stored in: 2 or 3."""
        return self.metadata.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user's attributes; changes are stored at once."""
        return Attributes(lambda: self.metadata.attributes, self._save_attributes)

    @property
    def nchunks(self) -> int:
        """How many chunks the array has (chunks within shards, not shards)."""
        return RegularGrid(self.shape, self.chunks).size

    @property
    def nchunks_stored(self) -> int:
        """How many chunks are stored; the others read as the fill value.

        In shards every chunk that the shard's index names counts, also outside the array.
        """
        return chunkio.count_stored(self.stored)

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
        return self._fancy(index).__getitem__(index)

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
        """Return what is wanted of the array; see `zarrdask.chunkio.read_region`."""
        return chunkio.read_region(self.stored, request, threads=threads)

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
        if len(lists) == len(entries) == self.ndim and self.ndim > 1:
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
        if not is_basic(index):
            self._fancy(index)[index] = value
            return
        self.assign(basic(index, self.shape), value)

    def assign(self, selection: Selection, value: Any) -> None:
        """Write a value, broadcast as NumPy would, where a selection is."""
        # What `finish` drops from the result is a new axis of the value, and the other way round.
        result = np.broadcast_to(np.False_, selection.shape)[selection.finish].shape
        undo = tuple(0 if f is None else None if f == 0 else f for f in selection.finish)
        self.write(selection.picks, broadcast(value, result, self.dtype)[undo])

    def write(self, request: Request, values: np.ndarray, threads: int | None = None) -> None:
        """Write values of the request's shape; see `zarrdask.chunkio.write_region`.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading.
        """
        self.check_writable()
        empty = config.get("write-empty-chunks")
        chunkio.write_region(self.stored, request, values, empty=empty, threads=threads)

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
                key=hierarchy.location(self.store, self.path),
                expected='mode="r+"',
            )

    def resize(self, shape: Any) -> None:
        """Give the array another shape. What lies outside it is erased: nothing comes back.

        Parameters
        ----------
        shape : int or sequence of int
            As many lengths as there are axes.
        """
        self.check_writable()
        lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        if len(lengths) != self.ndim or any(not is_integer(n) or n < 0 for n in lengths):
            raise MetadataError(
                "not a shape for this array",
                key="shape",
                found=shape,
                expected=f"{self.ndim} lengths",
            )
        old = self._refreshed()
        metadata = old.metadata.resized(tuple(map(int, lengths)))
        hierarchy.write(self.store, self.path, metadata, before=old.metadata)
        self.stored = replace(old, metadata=metadata)
        if any(new < n for new, n in zip(metadata.shape, old.metadata.shape, strict=True)):
            chunkio.trim(old, metadata.shape)

    def append(self, values: Any, axis: int = 0) -> Shape:
        """Add values at the end of an axis, and return the new shape.

        Parameters
        ----------
        values : array_like
            Of the array's shape but for the length of the axis.
        axis : int
            Which.
        """
        self.check_writable()
        self.stored = self._refreshed()
        values = np.asarray(values)
        if not -self.ndim <= axis < self.ndim or values.ndim != self.ndim:
            raise SelectionError(
                "can't be appended", found=(values.shape, axis), expected=f"{self.ndim} axes"
            )
        axis %= self.ndim
        others = [n for i, n in enumerate(self.shape) if i != axis]
        if [n for i, n in enumerate(values.shape) if i != axis] != others:
            raise SelectionError(
                "the other axes differ in length", found=values.shape, expected=f"{self.shape}"
            )
        start, shape = self.shape[axis], list(self.shape)
        shape[axis] += values.shape[axis]
        grown = replace(self.stored, metadata=self.metadata.resized(tuple(shape)))
        region = list(whole_region(grown.metadata.shape))
        region[axis] = slice(start, shape[axis], 1)
        # Data first: who reads meanwhile sees the old array, then the new one.
        chunkio.write_region(
            grown,
            tuple(region),
            values.astype(self.dtype, copy=False),
            empty=config.get("write-empty-chunks"),
            threads=None,
        )
        hierarchy.write(self.store, self.path, grown.metadata, before=self.metadata)
        self.stored = grown
        return self.shape

    def _save_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.check_writable()
        old = self._refreshed()
        metadata = replace(old.metadata, attributes=dict(attributes))
        hierarchy.write(self.store, self.path, metadata, before=old.metadata)
        self.stored = replace(old, metadata=metadata)

    def _refreshed(self) -> Chunks:
        """Return the array as it is stored now: others may have changed its shape."""
        return open_array(self.store, self.path).stored

    # ---- to people

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    def __repr__(self) -> str:
        shards = f", shards={self.shards}" if self.shards else ""
        place = hierarchy.location(self.store, self.path)
        return f"<zarrdask.Array {place} {self.shape} {self.dtype}, chunks={self.chunks}{shards}>"


# --------------------------------------------------------------------------------------------
# Verbs


def open_array(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
) -> Array:
    """Open a stored array.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        Where it is: a path, any fsspec URL, a mapping of keys to bytes, a store, a node above.
    component : str, optional
        The array's path within.
    mode : {"r", "r+"}
        Whether it may be changed.
    storage_options : dict, optional
        For fsspec.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    NodeTypeError
        If it is a group.
    MetadataError, UnsupportedError
        If its metadata is wrong, or needs what isn't there.
    """
    check_mode(mode, MODES)
    if isinstance(url, Array) and not component:
        return url if mode in ("r", url.mode) else Array(url.store, url.path, url.metadata, mode)
    store, path = hierarchy.locate(url, component, storage_options)
    metadata = hierarchy.find(store, path)
    if not isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "a group is here; give the path of an array in it as component",
            key=hierarchy.location(store, path),
            found="group",
            expected="array",
        )
    return Array(store, path, metadata, mode)


def check_mode(mode: str, known: tuple[str, ...]) -> None:
    """Check a mode.

    Raises
    ------
    MetadataError
        If it is none of the known.
    """
    if mode not in known:
        raise MetadataError("unknown mode", key="mode", found=mode, expected=", ".join(known))


def create_array(
    url: Any,
    component: str | None = None,
    *,
    shape: Any,
    dtype: Any,
    chunks: ChunksLike = "auto",
    shards: ChunksLike = None,
    codecs: CodecsLike = None,
    compressors: CodecsLike = None,
    filters: CodecsLike = None,
    order: Literal["C", "F"] = "C",
    fill_value: Any = None,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: Literal["default", "v2"] | None = None,
    separator: Literal["/", "."] | None = None,
    zarr_format: int = 3,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Array:
    """Create an array, and groups above it where there are none.

    Parameters
    ----------
    url, component, storage_options
        As in `open_array`.
    shape : int or sequence of int
        In elements.
    dtype : dtype_like
        Zarr v3's core has bool, integers, floats, complex and raw bytes (``V``); v2 has all of
        NumPy's.
    chunks : "auto", int or sequence of int
        The shape of the chunks; -1 means the whole axis. ``"auto"`` (the default) halves the
        array's longest axis until a chunk is at most ``zarrdask.chunk-size`` (1 MiB).
    shards : None, "auto", int or sequence of int
        The shape of the shards: multiples of the chunks, stored as one object each. ``"auto"``
        doubles the chunks until a shard is ``zarrdask.shard-size`` (64 MiB).
    compressors : codec or sequence, optional
        Codecs on bytes; Zstandard at its usual level by default, none if empty. A codec is a
        name (``"zstd"``), a dict (``{"name": ..., "configuration": ...}``, or v2's ``{"id":
        ...}``), a numcodecs object, or an instance.
    filters : codec or sequence, optional
        Codecs on arrays, before; for v2 any numcodecs filter.
    codecs : sequence, optional
        The whole list, instead of the two before (v3).
    order : {"C", "F"}
        The order of elements in a chunk.
    fill_value : scalar, optional
        What absent chunks hold; 0 by default.
    dimension_names : sequence of (str or None), optional
        Names of the axes.
    attributes : mapping, optional
        The user's attributes.
    chunk_key_encoding : {"default", "v2"}, optional
    separator : {"/", "."}, optional
        How chunk keys look.
    zarr_format : {3, 2}
    overwrite : bool
        Whether a node that is there is removed first; it is an error otherwise.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false.
    MetadataError, UnsupportedError
        If an option is wrong, or the format can't express it.
    """
    metadata = plan_array(
        ArrayOptions(
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            shards=shards,
            codecs=codecs,
            compressors=compressors,
            filters=filters,
            order=order,
            fill_value=fill_value,
            dimension_names=dimension_names,
            attributes=attributes,
            chunk_key_encoding=chunk_key_encoding,
            separator=separator,
            zarr_format=zarr_format,
        )
    )
    store, path = hierarchy.locate(url, component, storage_options)
    hierarchy.create(store, path, metadata, overwrite=overwrite)
    return Array(store, path, metadata, "r+")
