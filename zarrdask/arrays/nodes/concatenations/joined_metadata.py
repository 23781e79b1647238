"""The metadata of a concatenation, from the metadata of its members. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.errors import UnsupportedError, ZarrdaskError
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.rectilinear import Lengths, make_grid
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import convert, convert_fill
from zarrdask.formats.metadata.losses import dtype_label
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array


def concatenated_metadata(
    members: Sequence[ArrayMetadata],
    shape: Shape,
    lengths: Sequence[Sequence[int]],
    *,
    dimension_names: Sequence[str | None] | None,
    attributes: Mapping[str, Any],
) -> ArrayMetadata:
    """Return the metadata of an array with the elements of others, in format 3.

    Parameters
    ----------
    members : sequence of ArrayMetadata
        The different metadata of the members. The fill value and, if they can encode the chunks,
        the codecs are taken from the first.
    shape : tuple of int
        The shape of the array.
    lengths : sequence of sequence of int
        The lengths of the chunks along each axis.

    Raises
    ------
    UnsupportedError
        If the data types of the members have none in common.
    """
    first = members[0]
    # The last chunk of a regular grid would be stored in the full chunk shape.
    chunks = tuple(map(_merged, lengths))
    labels: dict[str, Any] = {
        "dimension_names": None if dimension_names is None else tuple(dimension_names),
        "attributes": dict(attributes),
    }
    data_type = _promoted([metadata.data_type for metadata in members])
    grid = make_grid(shape, chunks)
    if data_type is None and len(shape) == len(first.shape):
        try:
            same = convert(first, zarr_format=3, shards=False)
            return replace(same, grid=grid, **labels)
        except ZarrdaskError:
            pass  # codecs that format 3 has no equivalent of, or that need other chunks
    kind: Any = _portable(first) if data_type is None else data_type
    planned = plan_array(ArrayOptions(shape=shape, dtype=kind, grid=grid))
    try:
        fill = convert_fill(first.fill, first, planned.data_type)
    except ZarrdaskError:
        fill = planned.fill_value  # promotion of texts and numbers, for example
    return replace(planned, fill_value=fill, **labels)


def _merged(lengths: Sequence[int]) -> Lengths:
    values = tuple(length for length in lengths if length)
    return values or 1


def _portable(metadata: ArrayMetadata) -> DataType:
    """Return the data type of an array in format 3."""
    return convert(metadata, zarr_format=3, shards=False).data_type


def _promoted(types: Iterable[DataType]) -> np.dtype[Any] | None:
    """Return the data type that all others are cast to; None if they are the same."""
    first, *others = types
    dtypes = [each.dtype for each in (first, *others)]
    native = {dtype.newbyteorder("=") for dtype in dtypes}
    if all(each == first for each in others) or len(native) == 1:
        return None
    try:
        return np.result_type(*native)
    except TypeError as error:
        raise UnsupportedError(
            "the data types of the members have no common data type; concatenate arrays of one "
            "data type, or convert them first",
            key="dtype",
            found=", ".join(sorted({dtype_label(dtype) for dtype in dtypes})),
            expected="data types that NumPy promotes to one",
        ) from error


def common_attributes(every: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the attributes that all arrays, or groups, have with the same value.

    >>> common_attributes([{"units": "K", "day": 1}, {"units": "K", "day": 2}])
    {'units': 'K'}
    """
    first, *others = every
    return {
        name: value
        for name, value in first.items()
        if all(name in each and each[name] == value for each in others)
    }


def portable_names(metadata: ArrayMetadata) -> tuple[str | None, ...] | None:
    """Return the names of the axes, also if a convention of format 2 has them in an attribute."""
    names = metadata.attributes.get(DIMENSIONS)
    if metadata.dimension_names is None and isinstance(names, list | tuple):
        return tuple(names) if len(names) == len(metadata.shape) else None
    return metadata.dimension_names
