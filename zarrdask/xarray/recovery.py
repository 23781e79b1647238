"""Appends that were interrupted while they wrote shapes: found, and rolled back.

The index coordinate gets its new length last. Where other variables are longer than it is, an
append was cut short: their surplus was never part of the dataset.
"""

from collections.abc import Container, Hashable

from zarrdask.chunks.inventory import trim
from zarrdask.compliance import warn_compliance
from zarrdask.errors import MetadataError
from zarrdask.hierarchy.path import node_location
from zarrdask.hierarchy.resize import grow
from zarrdask.nodes.array import Array
from zarrdask.xarray.existing import StoredDataset


def roll_back_surplus(stored: StoredDataset, dim: Hashable, names: Container[str]) -> bool:
    """Give the variables of a dataset one length along a dimension again.

    The caller keeps others from appending meanwhile. Only variables with one of the names, those
    that are appended to, are touched. Returns whether anything was changed. It is an error if the
    lengths differ, but no index coordinate tells which is right, or a variable is shorter than it.
    """
    lengths = {name: n for name, n in stored.lengths(dim).items() if name in names}
    if len({*lengths.values()}) <= 1:
        return False
    length = lengths.get(str(dim))
    if length is None or min(lengths.values()) < length:
        raise MetadataError(
            f"the stored variables have different lengths along {dim!r}, so nothing can be "
            "appended; resize them to one length, with zarrdask.open_array(...).resize",
            key="append_dim",
            found=lengths,
        )
    longer = [stored.arrays[name] for name, n in lengths.items() if n > length]
    for array in longer:
        axis = stored.dims(array.name).index(dim)
        _shorten(array, axis, length)
    place = node_location(longer[0].store, longer[0].path)
    warn_compliance(
        f"{place}: an append along {dim!r} was interrupted; {len(longer)} variables that were "
        f"longer than the coordinate {dim!r} have its length {length} again"
    )
    return True


def _shorten(array: Array, axis: int, length: int) -> None:
    shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])
    trim(array.stored, shape)
    # Consolidated metadata, if there are any, still tell of the shapes before the append.
    grow(array.store, array.path, array.zarr_format, array.shape, shape, is_member=True)
