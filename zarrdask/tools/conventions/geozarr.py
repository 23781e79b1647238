"""Attributes of map pyramids: the conventions ``multiscales``, ``proj:`` and ``spatial:``. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.tools.conventions.levels import PyramidLevel
from zarrdask.tools.conventions.listed import MULTISCALES, PROJ, SPATIAL, list_conventions
from zarrdask.tools.conventions.reference import Crs, as_crs, proj_attributes
from zarrdask.tools.conventions.spatial import (
    affine_numbers,
    bounding_box,
    coarsened,
    spatial_names,
)

#: The names of methods in the text of the convention, where they differ from ours.
_METHODS = {"mean": "average", "median": "med"}


class GeoZarr:
    """Maps: the convention ``multiscales``, with ``proj:`` and ``spatial:`` if they are given."""

    #: As the overviews of GDAL, the levels cover the same area as level 0.
    borders: Literal["trim", "pad", "partial"] = "partial"

    def adapted(self, metadata: ArrayMetadata, axes: Any = None) -> ArrayMetadata:
        """Return the metadata unchanged: the conventions require nothing of it."""
        return metadata

    def attributes(
        self,
        levels: Sequence[PyramidLevel],
        dimension_names: Sequence[str | None] | None,
        dtype: np.dtype[Any],
        *,
        zarr_format: ZarrFormat,
        method: str | None,
        crs: Any = None,
        transform: Sequence[float] | None = None,
    ) -> dict[str, Any]:
        """Return the attributes ``multiscales``, ``proj:*``, ``spatial:*`` and their list.

        Parameters
        ----------
        levels : sequence of PyramidLevel
            The levels, the finest first.
        dimension_names : sequence of str, optional
            The names of the axes, which `transform` requires of the last two: rows and columns.
        dtype, zarr_format : object
            The data type of the levels and the format of the group, on which nothing depends here.
        method : str, optional
            How the levels are computed.
        crs : Crs, str, mapping or object, optional
            The coordinate reference system, as `zarrdask.conventions.write_crs` takes it.
        transform : sequence of float, optional
            The numbers a to f of the affine transformation of level 0.

        Raises
        ------
        MetadataError
            If these break a rule of the conventions.
        """
        items = [_item(level, levels[:at]) for at, level in enumerate(levels)]
        layout: dict[str, Any] = {"layout": items}
        if method is not None:
            layout["resampling_method"] = _METHODS.get(method, method)
        attributes: dict[str, Any] = {"multiscales": layout}
        conventions = [MULTISCALES]
        if crs is not None:
            attributes |= proj_attributes(as_crs(crs))
            conventions.append(PROJ)
        if transform is not None:
            numbers = affine_numbers(transform, len(levels[0].shape))
            attributes["spatial:dimensions"] = spatial_names(dimension_names)
            for item, level in zip(items, levels, strict=True):
                item["spatial:shape"] = list(level.shape[-2:])
                item["spatial:transform"] = list(coarsened(numbers, level.factors[-2:]))
            finest = coarsened(numbers, levels[0].factors[-2:])
            attributes["spatial:bbox"] = list(bounding_box(finest, levels[0].shape[-2:]))
            conventions.append(SPATIAL)
        return attributes | list_conventions({}, *conventions)


def level_attributes(
    level: PyramidLevel,
    dimension_names: Sequence[str],
    crs: Crs | None,
    transform: Sequence[float] | None,
    *,
    present: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the position of a level as attributes of its group; the root's attributes do not hold.

    `transform` belongs to level 0, and `present` has the other attributes of the group.
    """
    attributes, conventions = dict[str, Any](), []
    if crs is not None:
        attributes |= proj_attributes(crs)
        conventions.append(PROJ)
    if transform is not None:
        attributes["spatial:dimensions"] = list(dimension_names)
        attributes["spatial:transform"] = list(coarsened(transform, level.factors))
        attributes["spatial:shape"] = list(level.shape)
        conventions.append(SPATIAL)
    return attributes | (list_conventions(present, *conventions) if conventions else {})


def _item(level: PyramidLevel, finer: Sequence[PyramidLevel]) -> dict[str, Any]:
    """Return the item of a level in the layout, which is relative to the level before it."""
    before = finer[-1].factors if finer else (1,) * len(level.factors)
    scale = [factor / other for factor, other in zip(level.factors, before, strict=True)]
    # The corner of the first cell is the same in all levels.
    transform = {"scale": scale, "translation": [0.0] * len(scale)}
    derived = {"derived_from": finer[-1].path} if finer else {}
    return {"asset": level.path, **derived, "transform": transform}
