"""Software that validates and reads pyramids of OME-Zarr, and the conventions of maps."""

import json
import warnings
from pathlib import Path
from typing import Any

import ngff_zarr
import numpy as np
import ome_zarr_models
import xarray as xr
import zarr
import zarr_cm
from jsonschema import Draft202012Validator
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from serve import serve
from topozarr import create_pyramid

warnings.simplefilter("ignore")


def problems(version: str, attributes: dict[str, Any], name: str) -> list[str]:
    """Return what a schema of OME-Zarr refuses; ngff-zarr brings the published ones."""
    schemas = {}
    for file in (Path(ngff_zarr.__file__).parent / f"spec/{version}/schemas").glob("*.schema"):
        schema = json.loads(file.read_text())
        schemas[file.stem] = Resource.from_contents(schema, DRAFT202012)
    registry = Registry().with_resources((each.contents["$id"], each) for each in schemas.values())
    validator = Draft202012Validator(schemas[name].contents, registry=registry)
    return [error.message for error in validator.iter_errors(attributes)]


def models(place: str) -> list[Any]:
    """Return the scales and translations of each level that ome-zarr-models has validated."""
    image = ome_zarr_models.open_ome_zarr(zarr.open_group(place, mode="r"))
    attributes = getattr(image, "ome_attributes", None) or image.attributes
    return [
        [each.model_dump()["coordinateTransformations"] for each in pyramid.datasets]
        for pyramid in attributes.multiscales
    ]


def ngff(place: str) -> list[Any]:
    """Return the dimensions, scale, translation, units and shape of each level for ngff-zarr."""
    return [
        [list(image.dims), image.scale, image.translation, image.axes_units, list(image.data.shape)]
        for image in ngff_zarr.from_ngff_zarr(place).images
    ]


def ome_zarr(place: str) -> list[Any]:
    """Return the shapes of the levels, the names of the axes and of the channels for ome-zarr."""
    node = next(iter(Reader(parse_url(place))()))
    axes = [axis["name"] for axis in node.metadata["axes"]]
    return [[list(level.shape) for level in node.data], axes, node.metadata.get("channel_names")]


def conventions(attributes: dict[str, Any]) -> list[str]:
    """Return the conventions of which zarr-cm finds valid attributes of a group."""
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    names = [each["name"] for each in attributes["zarr_conventions"]]
    for name in names:
        getattr(zarr_cm, name).validate_group_metadata(document)
    return names


def write_ngff(place: str, version: str) -> None:
    """Write an image of two levels with ngff-zarr."""
    image = ngff_zarr.to_ngff_image(
        np.arange(64 * 48, dtype="u2").reshape(64, 48),
        dims=["y", "x"],
        scale={"y": 0.5, "x": 0.25},
        translation={"y": 1.0, "x": 2.0},
    )
    levels = ngff_zarr.to_multiscales(image, scale_factors=[2])
    ngff_zarr.to_ngff_zarr(place, levels, version=version)


def write_topozarr(place: str, values: str) -> list[Any]:
    """Write the levels of a map with topozarr; return the values of level 1."""
    heights = np.load(values)
    rows, columns = heights.shape
    coordinates = {"y": 4e6 - 5 - 10.0 * np.arange(rows), "x": 5e5 + 5 + 10.0 * np.arange(columns)}
    dataset = xr.Dataset({"t": (("y", "x"), heights)}, coordinates)
    dataset = dataset.proj.assign_crs(spatial_ref="EPSG:32633")
    create_pyramid(dataset, levels=2, x_dim="x", y_dim="y").write(place)
    return xr.open_zarr(place, group="1", consolidated=False)["t"].values.tolist()


if __name__ == "__main__":
    serve(
        problems=problems,
        models=models,
        ngff=ngff,
        ome_zarr=ome_zarr,
        conventions=conventions,
        write_ngff=write_ngff,
        write_topozarr=write_topozarr,
    )
