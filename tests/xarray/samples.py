"""Groups as xarray stores datasets, written without xarray."""

import numpy as np

import zarrdask

DAYS = 12
FORMATS = [2, 3, "v3-draft", "v3-draft-protocol"]


def temperature():
    """Return the values of the sample's packed variable, missing elements as NaN."""
    values = np.arange(DAYS * 6 * 8).reshape(DAYS, 6, 8) % 400 * 0.5 - 20
    values[1, 2, 3] = np.nan
    return values


def write_sample(place, zarr_format=3, *, chunks=(2, 3, 8), path=None):
    """Write a group with a packed variable, coordinates, times, texts and a scalar."""
    fill = {"fill_value": -999} if zarr_format != 3 else {}
    missing = {"_FillValue": -999} if zarr_format == 3 else {}
    group = zarrdask.create_group(
        place, path, zarr_format=zarr_format, attributes={"title": "a sample"}
    )

    def create(name, values, dims, attributes=None, **options):
        options.setdefault("chunks", values.shape)
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            dimension_names=dims,
            attributes=attributes,
            **options,
        )
        array[...] = values

    packed = np.where(np.isnan(temperature()), -999, (temperature() + 20) * 2)
    scaled = {"scale_factor": 0.5, "add_offset": -20.0, "units": "degC", "coordinates": "height"}
    create(
        "t",
        packed.astype("i2"),
        ("time", "y", "x"),
        {**scaled, **missing},
        chunks=chunks,
        **fill,
    )
    days = {"units": "days since 2000-01-01", "calendar": "standard"}
    create("time", np.arange(DAYS), ("time",), days, chunks=(5,))
    create("y", np.arange(6.0), ("y",))
    create("x", np.arange(8.0) * 10, ("x",))
    create("height", np.array(2.0), ())
    return group
