"""How an array gets another shape: checked, and described, before anything is done.

Who changes the shape holds a lock from reading the old one until the new one is written: of two
appends at once, one comes after the other. Documents are read, changed and written under another
lock, for a moment only.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.chunks.inventory import trim
from zarrdask.chunks.stored import StoredChunks
from zarrdask.compliance import strictness
from zarrdask.errors import MetadataError, SelectionError, StoreError, ZarrdaskError
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.change import write_node
from zarrdask.hierarchy.find import read_node
from zarrdask.hierarchy.journal import forget
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.indexing.selection import Region, is_integer, whole_region
from zarrdask.metadata import detect
from zarrdask.metadata.detect import Search
from zarrdask.metadata.model import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.runtime.locks import ChunkLocks, Lock, location_of
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain


def changing_shape(
    store: Store, path: str, among: Lock | None = None
) -> AbstractContextManager[object]:
    """Be the only one who gives an array another shape.

    Parameters
    ----------
    store : Store
    path : str
        Of the array.
    among : Lock, optional
        Another lock, among machines.

    Raises
    ------
    StoreError
        When entered, if other processes can't be kept away.
    """
    return _lock(store, path, "shape", among)


def rewrite_lock(store: Store, path: str) -> AbstractContextManager[object]:
    """Be the only one on this machine who makes a node out of another one.

    Raises
    ------
    StoreError
        When entered, if other processes can't be kept away.
    """
    return _lock(store, path, "rewrite")


def _lock(
    store: Store, path: str, what: str, among: Lock | None = None
) -> AbstractContextManager[object]:
    store = plain(store)
    # The key of a unit does not end with "/".
    name = f"{location_of(store, key_prefix(path))}{what}/"
    return ChunkLocks(store, among).hold(name)


def change(
    store: Store,
    path: str,
    zarr_format: ZarrFormat,
    to: Callable[[Metadata | None], ArrayMetadata],
) -> ArrayMetadata:
    """Read the documents of an array, change and write them, while nobody else does.

    Parameters
    ----------
    store, path, zarr_format
        As in `now`.
    to : callable
        Returns the new metadata, given those that are there; or raises an error.
    """
    with _lock(store, path, "documents"):
        found = now(store, path, zarr_format)
        metadata = to(found)
        write_node(store, path, metadata, before=found)
        return metadata


def now(store: Store, path: str, zarr_format: ZarrFormat) -> Metadata | None:
    """Return the metadata of an opened node as they are stored now, or None if it is gone.

    No warnings are given, as they were when the node was opened.

    Parameters
    ----------
    store : Store
    path : str
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}
        The format of the node: only the documents of this one are read.
    """
    with strictness(strict=False, quiet=True):
        return read_node(plain(store), path, Search(zarr_format, only=True))


def check_shape(
    found: Metadata | None,
    shapes: Sequence[Shape],
    place: str,
    otherwise: str = "nothing more is written",
) -> ArrayMetadata:
    """Check that an array has one of some shapes still.

    Parameters
    ----------
    found : Metadata
        What is there now.
    shapes : sequence of tuple of int
        The first is the one that it should have.
    place : str
        Where it is.
    otherwise : str
        What there is if it has another one, in words. It can't be told who gave it that: an append
        that Dask does again may have done so itself.

    Raises
    ------
    StoreError
        If it has another one, or is gone.
    """
    if not isinstance(found, ArrayMetadata) or found.shape not in shapes:
        raise StoreError(
            f"the array was given another shape meanwhile: {otherwise}",
            key=place,
            found=getattr(found, "shape", None),
            expected=f"{shapes[0]}",
        )
    return found


def grow(store: Store, path: str, zarr_format: ZarrFormat, old: Shape, new: Shape) -> ArrayMetadata:
    """Give an array its new shape, if that is not done already.

    Raises
    ------
    StoreError
        If it has neither the old shape nor the new one.
    """
    place = node_location(store, path)
    otherwise = "that one stays, and what was to be appended may be in it"

    def to(found: Metadata | None) -> ArrayMetadata:
        return check_shape(found, (old, new), place, otherwise).resized(new)

    return change(store, path, zarr_format, to)


def parse_lengths(shape: Any, ndim: int) -> Shape:
    """Return the new shape of an array of so many axes.

    Raises
    ------
    MetadataError
        If it is none.
    """
    lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if len(lengths) != ndim or any(not is_integer(n) or n < 0 for n in lengths):
        raise MetadataError(
            "not a shape for this array", key="shape", found=shape, expected=f"{ndim} lengths"
        )
    return tuple(map(int, lengths))


def resized(chunks: StoredChunks, shape: Shape) -> StoredChunks:
    """Return an array as it will be with another shape.

    Its documents are rendered: what can't be written must fail before any chunk is changed.

    Raises
    ------
    ZarrdaskError
        If the array can't have the shape, or its documents can't be written.
    """
    metadata = chunks.metadata.resized(shape)
    detect.render(chunks.metadata)
    detect.render(metadata)
    return replace(chunks, metadata=metadata)


def appended(chunks: StoredChunks, added: Sequence[int], axis: Any) -> tuple[StoredChunks, Region]:
    """Return an array to which values are to be appended, as it will be, and where these go.

    Parameters
    ----------
    chunks : Chunks
        As it is.
    added : sequence of int
        The shape of the values.
    axis : int
        Which becomes longer.

    Raises
    ------
    SelectionError
        If they don't fit.
    ZarrdaskError
        As `resized`.
    """
    shape = chunks.metadata.shape
    ndim = len(shape)
    if not is_integer(axis) or not -ndim <= axis < ndim or len(added) != ndim:
        raise SelectionError(
            "can't be appended", found=(tuple(added), axis), expected=f"{ndim} axes"
        )
    axis = int(axis) % ndim
    if any(n != old for i, (n, old) in enumerate(zip(added, shape, strict=True)) if i != axis):
        raise SelectionError(
            "the other axes differ in length", found=tuple(added), expected=f"{shape}"
        )
    longer = list(shape)
    longer[axis] += added[axis]
    grown = resized(chunks, tuple(longer))
    region = list(whole_region(tuple(longer)))
    region[axis] = slice(shape[axis], longer[axis], 1)
    return grown, tuple(region)


def take_back(store: Store, path: str, grown: StoredChunks, shape: Shape) -> str:
    """Erase what an append wrote that came to nothing, unless the array grew meanwhile.

    Then what is there may be another's.

    Parameters
    ----------
    grown : Chunks
        The array as it was to be.
    shape : tuple of int
        As it was.

    Returns
    -------
    str
        What is there, in words.
    """
    # As far as that is possible now: what made the append fail may be in the way of this, too.
    try:
        found = now(store, path, grown.metadata.zarr_format)
    except ZarrdaskError:
        return "what is there now can't be told"
    if not isinstance(found, ArrayMetadata):
        return "the array is gone"
    if found.shape == grown.metadata.shape:
        return "the array has the shape that it was to have; see whether the values are there"
    if found.shape != shape:
        return "the array was given another shape; what was to be appended may be in it"
    try:
        # A record of an unfinished append no longer applies: it has to begin anew.
        forget(grown.store, grown.prefix)
        trim(grown, shape)
    except ZarrdaskError:
        return "the array is as it was, but values are left beyond its end"
    return "the array is as it was"
