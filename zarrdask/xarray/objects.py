"""Objects of xarray as datasets, one for each group that is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import xarray

from zarrdask.errors import MetadataError
from zarrdask.xarray.settings import ArgumentTypeError

#: The names by which xarray stores a data array that has none, or that of a coordinate.
_VARIABLE = "__xarray_dataarray_variable__"
_NAME = "__xarray_dataarray_name__"


@dataclass(frozen=True)
class Content:
    """What is written to one group: a dataset, and encodings by the names of variables."""

    dataset: xarray.Dataset
    encoding: Mapping[Any, Any]


def contents(obj: Any, encoding: Mapping[Any, Any], *, inherit: bool) -> dict[str, Content]:
    """Return what is written to each group, by its path from the first one, parents first.

    Encodings are by name; for a tree, by the path of the node, then by name. If asked for, the
    nodes of a tree store the coordinates that they inherit.
    """
    if not isinstance(obj, xarray.DataTree):
        return {"": Content(_dataset(obj), encoding)}
    if unknown := {*encoding} - {*obj.groups}:
        raise MetadataError(
            f"unexpected encoding group name(s) provided: {unknown}",
            key="encoding",
            expected=f"paths among {', '.join(obj.groups)}",
        )
    return {
        "" if node is obj else path: Content(
            node.to_dataset(inherit=inherit or node is obj), encoding.get(node.path) or {}
        )
        for path, node in obj.subtree_with_keys
    }


def _dataset(obj: Any) -> xarray.Dataset:
    """Return a data array as a dataset, named as xarray does."""
    if isinstance(obj, xarray.Dataset):
        return obj
    if not isinstance(obj, xarray.DataArray):
        raise ArgumentTypeError(
            "only objects of xarray can be written; zarrdask.to_zarr writes arrays",
            key="obj",
            found=type(obj).__name__,
            expected="a Dataset, a DataArray or a DataTree",
        )
    if obj.name is None:
        return obj.to_dataset(name=_VARIABLE)
    if obj.name in obj.coords or obj.name in obj.dims:
        return obj.to_dataset(name=_VARIABLE).assign_attrs({_NAME: obj.name})
    return obj.to_dataset()
