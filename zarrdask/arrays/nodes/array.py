"""Stored arrays, read and written by NumPy's indexing; each access happens immediately."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.block_iteration import iter_blocks
from zarrdask.arrays.chunks.missing_chunks import Missing, chosen_missing
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import write_region
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import existing_array
from zarrdask.arrays.hierarchy.stored_manifest import digested
from zarrdask.arrays.nodes import indexers
from zarrdask.arrays.nodes.many import read_regions
from zarrdask.arrays.nodes.node import Change, check_writable
from zarrdask.arrays.nodes.properties import ArrayProperties
from zarrdask.arrays.nodes.replaced import check_not_replaced
from zarrdask.display.other_names import ARRAY
from zarrdask.errors import SelectionError, UnsupportedError, one_of
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.projection import Request
from zarrdask.formats.indexing.selection import axis_number, basic, find_region, is_basic
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata


class Array(ArrayProperties):
    """A stored array.

    It is returned by `open_array`, `create_array`, `open`, and by the methods of a group.

    Parameters
    ----------
    node_path : NodePath
        The store that the array is in, and its path there.
    metadata : ArrayMetadata
        The parsed documents of the array.
    mode : {"r", "r+"}
        Whether the array may be changed ("r+") or only read ("r", the default).
    missing : {"fill", "error"}, optional
        How chunks that are not stored are read; by default the current value of the setting
        ``zarrdask.missing``.
    """

    _kind = "array"
    _instead = "zarrdask.from_zarr(array) is a Dask array, and array[...] one of NumPy"
    _other_names = ARRAY

    def __init__(
        self,
        node_path: NodePath,
        metadata: ArrayMetadata,
        mode: str = "r",
        missing: Missing | None = None,
    ) -> None:
        self.node_path = node_path
        self.mode = mode
        self.stamp = ""
        self._stored = node_path.chunks(metadata, chosen_missing(missing))
        #: The number of threads that decode or encode; None for as many as configured.
        self._threads: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # With all metadata, unlike the chunks.
        return Array, (self.node_path, self.metadata, self.mode, self._stored.missing)

    # ---- properties

    @property
    def metadata(self) -> ArrayMetadata:
        """The parsed documents of the array."""
        return self._stored.metadata

    @property
    def missing(self) -> Missing:
        """How chunks that are not stored are read: as the fill value ("fill"), or by an "error"."""
        return "error" if self._stored.is_strict else "fill"

    # ---- reading

    def __getitem__(self, index: Any) -> Any:
        if is_basic(index):
            return indexers.select(self, basic(index, self.shape), index)
        return indexers.read_index(self, index)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:  # noqa: FBT001
        if copy is False:
            raise ValueError("reading a stored array makes a copy; pass copy=None or copy=True")
        values: np.ndarray = self[...]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __float__(self) -> float:
        return float(self[...].item())

    def __int__(self) -> int:
        return int(self[...].item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no len(); use its size")
        return self.shape[0]

    @property
    def oindex(self) -> indexers.OuterIndex:
        """Selection of each axis independently, by a slice, integer, list or 1-d mask (outer)."""
        return indexers.OuterIndex(self)

    @property
    def vindex(self) -> indexers.PointIndex:
        """Selection of points, by an array of positions for each axis or by one mask."""
        return indexers.PointIndex(self)

    @property
    def blocks(self) -> indexers.BlockIndex:
        """Selection of whole chunks (shards if there are any) by their indices and slices."""
        return indexers.BlockIndex(self)

    def read_many(self, regions: Iterable[Any], out: Any = None) -> Any:
        """Read many regions in one call, decoding each chunk once and on all cores.

        Parameters
        ----------
        regions : iterable of index
            The regions, as in `zarrdask.read_many`, which reads several arrays.
        out : ndarray or sequence of ndarray, optional
            The memory for the result: an array whose first axis is as long as `regions`, or an
            array for each region, of the data type of this array.

        Returns
        -------
        list of ndarray
            The elements of each region; or `out`.

        Raises
        ------
        SelectionError, CodecError, StoreError
            As in `zarrdask.read_many`.

        Examples
        --------
        >>> import zarrdask
        >>> z = zarrdask.create_array({}, shape=(6, 6), dtype="i4", chunks=(3, 3))
        >>> [x.shape for x in z.read_many([(slice(0, 2), slice(1, 5)), 4])]
        [(2, 4), (6,)]
        """
        return read_regions(self, regions, out)

    def iter_blocks(
        self, size: int | str | None = None
    ) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """Return an iterator over the array in storage order; later blocks are prefetched.

        Parameters
        ----------
        size : int or str, optional
            The size of a block in bytes, by default the setting ``zarrdask.block-size``. A block
            has whole chunks or shards, at least one; larger shards are divided along their chunks.

        Yields
        ------
        region : tuple of slice
            A region of the array.
        values : ndarray
            Its elements.

        Examples
        --------
        >>> import zarrdask
        >>> z = zarrdask.create_array({}, shape=(5, 4), dtype="f8", chunks=(2, 4))
        >>> [region[0] for region, _ in z.iter_blocks(64)]
        [slice(0, 2, 1), slice(2, 4, 1), slice(4, 5, 1)]
        """
        nbytes = config.get("block-size") if size is None else config.parse_size(size, "size")
        return iter_blocks(self._stored, nbytes)

    def _read(self, request: Request) -> np.ndarray:
        """Return the requested elements; see `zarrdask.arrays.chunks.read.read_region`."""
        return read_region(self._stored, request, threads=self._threads, show=None)

    # ---- writing

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_basic(index):
            indexers.assign(self, basic(index, self.shape), value)
        else:
            check_writable(self)  # also if nothing is selected
            indexers.write_index(self, index, value)

    def _write(self, request: Request, values: np.ndarray) -> None:
        """Write values to the requested elements; see `write_region`."""
        check_writable(self)
        check_not_replaced(self)
        if self._stored.metadata.is_repaired:
            self._stored = self.node_path.store_repaired(self._stored)
        empty, threads = config.get("write-empty-chunks"), self._threads
        with self.store.batch():
            chunks = digested(self._stored) if config.get("manifests") else self._stored
            write_region(chunks, request, values, empty=empty, threads=threads, show=None)
            if chunks is not self._stored:
                self.node_path.current.keep_manifest(chunks)

    def erase(self, region: Any) -> None:
        """Set the elements of a region to the fill value.

        Chunks (or shards, if the array has them) that the region covers are removed from the store
        without being read. A chunk or shard that it covers in part is read, changed and written
        back, by one writer at a time; if only the fill value is left, it is removed, except in
        stores with conditional writes.

        Parameters
        ----------
        region : tuple of slice, or dict of names to slices
            The region, within the shape of the array; ``...`` is all of it. The keys of a dict are
            names of dimensions.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading only.
        SelectionError
            If the region is not made of slices within the array.
        LinkError
            If a chunk is behind a symbolic link; nothing is changed then.

        Examples
        --------
        >>> import zarrdask
        >>> z = zarrdask.create_array({}, shape=(6, 4), dtype="i4", chunks=(2, 4))
        >>> z[...] = 7
        >>> z.erase(slice(0, 3))
        >>> z[:, 0].tolist(), z.nchunks_stored()
        ([0, 0, 0, 7, 7, 7], 2)
        """
        check_writable(self)
        check_not_replaced(self)
        if region is None:
            raise SelectionError(
                "pass the region to erase", key="region", found=None, expected="slices, or ..."
            )
        picks = find_region(region, self.shape, self.dimension_names)
        self._stored = self.node_path.store_repaired(self._stored)
        with self._changing() as chunks:
            self.node_path.erase_elements(chunks, picks)

    def resize(self, shape: Any, *, outside: Literal["erase", "keep"] = "erase") -> None:
        """Change the shape of the array (conformance C-76).

        Parameters
        ----------
        shape : int or sequence of int
            The new lengths of all axes, in elements.
        outside : {"erase", "keep"}
            Whether the elements outside a smaller shape are erased (the default), or kept in the
            store, so that they appear again when the array grows. No other element is rewritten:
            new elements of an array that grows are the fill value unless they are stored already.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading only.
        MetadataError
            If the array can't have the shape.
        NodeNotFoundError
            If the array was removed since it was opened.
        """
        one_of(outside, "outside", ("erase", "keep"))
        check_writable(self)
        erase = outside == "erase"
        with self._changing() as chunks:
            self._stored = self.node_path.resize(chunks, shape, erase=erase)

    def drop_before(self, axis: int | str, n: int) -> Shape:
        """Drop the leading chunks along an axis; the others get lower indices.

        No chunk is rewritten. Only sessions of icechunk can do that.

        Parameters
        ----------
        axis : int or str
            The axis, by number or by the name of the dimension.
        n : int
            The number of elements: a multiple of the length of the chunks (or shards).

        Returns
        -------
        tuple of int
            The new shape of the array.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading only.
        SelectionError
            If there is no such axis, or `n` elements are not a number of whole leading chunks.
        UnsupportedError
            If the chunks would have to be copied to new keys: in all other stores, and where chunks
            have different lengths.

        See Also
        --------
        erase : Sets a region to the fill value, and keeps the shape.
        """
        check_writable(self)
        number = axis_number(axis, self.ndim, self.dimension_names)
        self._stored = self.node_path.drop_leading(self._stored, number, n)
        return self.shape

    def append(self, values: Any, axis: int | str = 0) -> Shape:
        """Append values at the end of an axis.

        The values are stored first, then the new shape, so that readers see the array either
        without the values or with all of them (in icechunk, by its commit). If the append fails,
        the array is unchanged.

        Parameters
        ----------
        values : array_like
            The values, with the shape of the array except for the length of `axis`. A Dask array
            is appended in parallel by `zarrdask.append`.
        axis : int or str, default 0
            The axis to append to, by number or by the name of the dimension.

        Returns
        -------
        tuple of int
            The new shape of the array.

        Raises
        ------
        ReadOnlyError
            If the array was opened for reading only.
        SelectionError
            If the shape of the values does not fit.
        NodeNotFoundError
            If the array was removed since it was opened.
        """
        check_writable(self)
        if hasattr(values, "__dask_graph__"):
            raise UnsupportedError(
                "append a Dask array in parallel, by zarrdask.append(x, array)",
                key=self.node_path.location,
                found=type(values).__name__,
                expected="an array-like",
            )
        values = indexers.broadcast(values, np.shape(values), self)
        with self._changing() as chunks:
            self._stored = self.node_path.append(chunks, values, axis=axis)
        return self.shape

    def _save_attributes(self, change: Change) -> None:
        check_writable(self)

        def update(stored: Metadata | None) -> ArrayMetadata:
            metadata = existing_array(stored, self.node_path.location)
            return replace(metadata, attributes=change(metadata.attributes))

        with self._changing():
            metadata = self.node_path.update(self.zarr_format, update)
            self._stored = replace(self._stored, metadata=metadata)

    @contextmanager
    def _changing(self) -> Iterator[StoredChunks]:
        """Yield the chunks for a change, and note it in the manifest if the setting says so."""
        before = self._stored
        chunks = digested(before) if config.get("manifests") else before
        yield chunks
        if chunks is not before:
            self._stored = replace(self._stored, store=before.store)
            self.node_path.current.keep_manifest(chunks)

    # ---- text

    def _repr_html_(self) -> str:
        from zarrdask.arrays.nodes.html import array_html

        return array_html(self.node_path.location, self._stored)


def chunks_of(array: Array) -> StoredChunks:
    """Return the stored chunks of an array, which tasks carry with its store as that is now."""
    return array._stored.renewed()


def set_chunks(array: Array, stored: StoredChunks) -> None:
    """Set the chunks and the metadata of an array."""
    array._stored = stored
