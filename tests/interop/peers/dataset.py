"""xarray, which writes and reads consolidated metadata."""

import warnings
from typing import Any

import numpy as np
import xarray
from serve import serve


def write(place: str, zarr_format: int) -> None:
    """Write a small dataset, consolidated."""
    variables = {
        "t": (("y", "x"), np.arange(12.0).reshape(3, 4), {"units": "K", "grid_mapping": "crs"}),
        "crs": ((), 0, {"crs_wkt": "GEOGCS[]"}),
    }
    coordinates = {"y": np.arange(3), "x": np.arange(4) / 2}
    found = xarray.Dataset(variables, coordinates, {"title": "all"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.to_zarr(place, zarr_format=zarr_format, consolidated=True)


def read(place: str, consolidated: bool | None) -> dict[str, Any]:
    """Return what xarray tells of a dataset: for each variable dimensions, attributes, values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xarray.open_dataset(place, engine="zarr", consolidated=consolidated) as found:
            return {
                name: [list(each.dims), dict(each.attrs), each.values.tolist()]
                for name, each in found.variables.items()
            }


if __name__ == "__main__":
    serve(write=write, read=read)
