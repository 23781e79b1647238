"""How an array gets another shape: checked, and described, before anything is done."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask import hierarchy
from zarrdask.chunkio import Chunks
from zarrdask.errors import MetadataError, SelectionError, ZarrdaskError
from zarrdask.grids import Shape
from zarrdask.indexing import Region, is_integer, whole_region
from zarrdask.metadata import ArrayMetadata
from zarrdask.storage.base import Store
from zarrdask.stored import trim


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


def appended(chunks: Chunks, added: Sequence[int], axis: Any) -> tuple[Chunks, Region]:
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
    grown = replace(chunks, metadata=chunks.metadata.resized(tuple(longer)))
    region = list(whole_region(tuple(longer)))
    region[axis] = slice(shape[axis], longer[axis], 1)
    return grown, tuple(region)


def take_back(store: Store, path: str, grown: Chunks, shape: Shape) -> None:
    """Erase what an append wrote that came to nothing, unless the array grew meanwhile.

    Then what is there may be another's.

    Parameters
    ----------
    grown : Chunks
        The array as it was to be.
    shape : tuple of int
        As it was.
    """
    # As far as that is possible now: what made the append fail may be in the way of this, too.
    with suppress(ZarrdaskError):
        found = hierarchy.read(store, path)
        if isinstance(found, ArrayMetadata) and found.shape == shape:
            trim(grown, shape)
