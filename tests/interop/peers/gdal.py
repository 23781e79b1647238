"""GDAL 3.6, the last that writes the draft of v3 (an old dialect of it), through its MDArrays."""

from pathlib import Path
from typing import Any

import numpy as np
from osgeo import gdal, gdal_array
from serve import serve

gdal.UseExceptions()


def write(
    place: str,
    name: str,
    values: str,
    *,
    options: list[str],
    draft: bool = False,
    fill: str | None = None,
    attributes: dict[str, str | float] | None = None,
    unit: str = "",
) -> None:
    """Make a hierarchy with one array, and the groups above it."""
    driver = gdal.GetDriverByName("Zarr")
    dataset = driver.CreateMultiDimensional(place, [], [f"FORMAT=ZARR_V{3 if draft else 2}"])
    if draft:
        Path(place, "data/root", name).mkdir(parents=True)  # if separated by ".", it forgets to
    group = dataset.GetRootGroup()
    *above, name = name.split("/")
    for part in above:
        group = group.CreateGroup(part)
    found = np.load(values)
    names = [f"axis{position}" for position in range(found.ndim)]
    axes = [
        group.CreateDimension(axis, "", "", size)
        for axis, size in zip(names, found.shape, strict=True)
    ]
    code = gdal_array.NumericTypeCodeToGDALTypeCode(found.dtype.type)
    array = group.CreateMDArray(name, axes, gdal.ExtendedDataType.Create(code), options)
    if fill is not None:
        array.SetNoDataValueDouble(float(np.load(fill)))
    array.SetUnit(unit)
    array.Write(np.ascontiguousarray(found))
    for key, value in (attributes or {}).items():
        number = gdal.ExtendedDataType.Create(gdal.GDT_Float64)
        kind = gdal.ExtendedDataType.CreateString() if isinstance(value, str) else number
        array.CreateAttribute(key, [], kind).Write(value)


def opened(place: str, path: str) -> Any:
    dataset = gdal.OpenEx(place, gdal.OF_MULTIDIM_RASTER)
    return dataset, dataset.GetRootGroup().OpenMDArrayFromFullname(f"/{path}")


def read(place: str, name: str, values: str) -> dict[str, Any]:
    """Save an array's values, and return what else there is to know of it."""
    # Kept, as GDAL closes a dataset that is forgotten.
    _dataset, array = opened(place, name)
    np.save(values, array.ReadAsArray())
    return {
        "attributes": {found.GetName(): found.Read() for found in array.GetAttributes()},
        "unit": array.GetUnit(),
        "chunks": list(array.GetBlockSize()),
        "dimensions": [found.GetName() for found in array.GetDimensions()],
        "fill": array.GetNoDataValueAsDouble(),
    }


def tree(place: str) -> list[str]:
    """Return the paths of all arrays and groups."""
    dataset = gdal.OpenEx(place, gdal.OF_MULTIDIM_RASTER)
    return sorted(_below(dataset.GetRootGroup(), ""))


def _below(group: Any, prefix: str) -> list[str]:
    paths = [prefix + name for name in group.GetMDArrayNames() or ()]
    for name in group.GetGroupNames() or ():
        paths += [prefix + name, *_below(group.OpenGroup(name), f"{prefix}{name}/")]
    return paths


if __name__ == "__main__":
    serve(write=write, read=read, tree=tree)
