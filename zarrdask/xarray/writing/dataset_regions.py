"""The part of a stored dataset that a write with ``region=`` covers."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray

from zarrdask.errors import SelectionError
from zarrdask.xarray.writing.existing import StoredDataset

Regions = dict[Hashable, slice]


class RegionTypeError(SelectionError, TypeError):
    """A region that is not made of slices."""


class MissingLabelError(SelectionError, KeyError):
    """A coordinate value that is not in the stored dataset."""


def find_region(dataset: xarray.Dataset, region: Any, stored: StoredDataset, mode: str) -> Regions:
    """Return the slice of each dimension that a user means by ``region=``.

    An error is raised if the region is invalid, or coordinates are missing or not consecutive in
    the stored dataset.
    """
    if isinstance(region, str) and region == "auto":
        region = dict.fromkeys(dataset.dims, "auto")
    if not isinstance(region, Mapping):
        raise RegionTypeError(
            f"``region`` must be a dict, got {type(region)}: pass a dict of dimensions to slices, "
            'or "auto"',
            key="region",
        )
    if "auto" in map(_text, region.values()) and mode not in ("r+", "a"):
        raise SelectionError(
            f"``mode`` must be 'r+' or 'a' when using ``region='auto'``, got {mode!r}",
            key="region",
        )
    regions = {
        dim: _locate(dataset, dim, stored) if _text(part) == "auto" else part
        for dim, part in region.items()
    }
    _check(dataset, regions)
    return regions


def _text(part: Any) -> str | None:
    return part if isinstance(part, str) else None


def _locate(dataset: xarray.Dataset, dim: Hashable, stored: StoredDataset) -> slice:
    """Find the values of an index coordinate in the stored one."""
    if dim not in dataset.variables:
        # There is nothing to compare: the dataset starts where the stored one does.
        return slice(0, dataset.sizes.get(dim, 0))
    labels = pd.Index(stored.values(str(dim)))
    if not labels.is_unique:
        raise SelectionError(
            "the stored coordinate has values that occur more than once, so the region cannot be "
            "found by it; pass a slice",
            key="region",
            found=dim,
        )
    positions = labels.get_indexer(dataset[dim].data)
    if (positions == -1).any():
        raise MissingLabelError(
            f"Not all values of coordinate '{dim}' in the new array were found in the original "
            "store. Writing to a zarr region slice requires that no dimensions or metadata are "
            "changed by the write.",
            key="region",
            found=np.asarray(dataset[dim].data)[positions == -1][0],
        )
    if not len(positions):
        return slice(0, 0)
    if (np.diff(positions) != 1).any():
        raise SelectionError(
            f"The auto-detected region of coordinate '{dim}' for writing new data to the original "
            "store had non-contiguous indices. Writing to a zarr region slice requires that the "
            "new data constitute a contiguous subset of the original store.",
            key="region",
        )
    return slice(int(positions[0]), int(positions[-1]) + 1)


def _check(dataset: xarray.Dataset, region: Mapping[Hashable, Any]) -> None:
    for dim, part in region.items():
        if dim not in dataset.dims:
            raise SelectionError(
                "all keys in ``region`` are not in Dataset dimensions, got "
                f"{list(region)} and {list(dataset.dims)}",
                key="region",
            )
        if not isinstance(part, slice):
            raise RegionTypeError(
                f"all values in ``region`` must be slice objects, got region={dict(region)}",
                key="region",
            )
        if part.step not in (1, None):
            raise SelectionError(
                f"step on all slices in ``region`` must be 1 or None, got region={dict(region)}",
                key="region",
            )
    apart = [name for name, v in dataset.variables.items() if not {*region} & {*v.dims}]
    if region and apart:
        raise SelectionError(
            "when setting `region` explicitly in to_zarr(), all variables in the dataset to write "
            f"must have at least one dimension in common with the region's dimensions "
            f"{list(region)}, but that is not the case for some variables here. To drop these "
            f"variables from this dataset before exporting to zarr, write: .drop_vars({apart!r})",
            key="region",
        )
