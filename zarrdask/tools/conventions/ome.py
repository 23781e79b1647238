"""Read and write OME-Zarr 0.4 (v2) and 0.5 (v3); read release candidates of 0.6. Pure.

Multiscale Arrays 0.1 has the same documents, with fewer members.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrdask.arrays.hierarchy.path import normalise_path
from zarrdask.errors import MetadataError, instance_of
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.tools.conventions.axes import OmeAxes
from zarrdask.tools.conventions.labels import render_image_label
from zarrdask.tools.conventions.levels import (
    Level,
    Multiscale,
    Numbers,
    PyramidLevel,
    Transformation,
    parse_numbers,
)
from zarrdask.tools.conventions.ome_version import OmeVersion
from zarrdask.tools.conventions.omero import render_omero

#: The member with the scale and translation, of a level or of a whole pyramid.
_TRANSFORMATIONS = "coordinateTransformations"


# --------------------------------------------------------------------------------------------
# Reading


def parse_ome(value: Any, key: str, version: str | None) -> Multiscale:
    """Return the pyramid of an item of ``multiscales``."""
    document = instance_of(value, key, dict)
    systems = _objects(document, "coordinateSystems", key)
    # Since 0.6 the transformations of a pyramid lead from its coordinate system to others.
    common = Transformation() if systems else _transformation(document, key)
    levels, outputs = [], list[Any]()
    for at, each in enumerate(instance_of(document.get("datasets"), f"{key}.datasets", list)):
        level_key = f"{key}.datasets[{at}]"
        path = instance_of(instance_of(each, level_key, dict).get("path"), f"{level_key}.path", str)
        whole = _transformation(each, level_key).then(common, level_key)
        levels.append(Level(normalise_path(path), whole.scale, whole.translation))
        outputs += [step.get("output") for step in _objects(each, _TRANSFORMATIONS, level_key)]
    return Multiscale(
        tuple(levels),
        document.get("name"),
        document.get("version", version),
        _axes(document, systems, outputs, key),
        systems,
        _objects(document, _TRANSFORMATIONS, key) if systems else (),
    )


def _axes(
    document: Mapping[str, Any], systems: tuple[Any, ...], outputs: list[Any], key: str
) -> tuple[Mapping[str, Any], ...]:
    """Return the axes of a pyramid; since 0.6 the axes of the system that its levels lead to."""
    # Early drafts give the name of a system instead of an object.
    names = [output.get("name") if isinstance(output, dict) else output for output in outputs]
    system = next((system for system in systems if system.get("name") in names), None)
    axes = (document if system is None else system).get("axes", [])
    return tuple(
        {"name": axis} if isinstance(axis, str) else axis
        for axis in instance_of(axes, f"{key}.axes", list)
    )


def _objects(document: Mapping[str, Any], name: str, key: str) -> tuple[Mapping[str, Any], ...]:
    items = instance_of(document.get(name, []), f"{key}.{name}", list)
    return tuple(instance_of(item, f"{key}.{name}", dict) for item in items)


def _transformation(
    document: Mapping[str, Any], key: str, name: str = _TRANSFORMATIONS
) -> Transformation:
    """Return the transformation that some steps make; steps of other types are passed over."""
    result = Transformation()
    for step in _objects(document, name, key):
        kind = step.get("type")
        if kind in ("scale", "translation") and kind in step:
            numbers = parse_numbers(step[kind], kind, f"{key}.{name}")
            result = result.then(Transformation(**{kind: numbers}), key)
        elif kind == "sequence":
            result = result.then(_transformation(step, key, "transformations"), key)
    return result


# --------------------------------------------------------------------------------------------
# Writing


def render_level(path: str, scale: Numbers | None, translation: Numbers | None) -> dict[str, Any]:
    """Return an item of ``datasets``."""
    numbers = {"scale": scale, "translation": translation}
    transformations = [
        {"type": kind, kind: list(map(float, values))}
        for kind, values in numbers.items()
        if values is not None
    ]
    document: dict[str, Any] = {"path": path}
    return document | ({_TRANSFORMATIONS: transformations} if transformations else {})


def ome_attributes(
    document: Mapping[str, Any],
    zarr_format: ZarrFormat,
    attributes: Mapping[str, Any],
    omero: Mapping[str, Any] | None = None,
    image_label: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the attributes of a group that describe its pyramid, instead of the existing ones."""
    display = {} if omero is None else {"omero": omero}
    if image_label is not None:
        display["image-label"] = image_label
    version = OmeVersion.of(zarr_format)
    return version.attributes({**version.pyramid(document), **display}, attributes)


class OmeZarr:
    """OME-Zarr: images of microscopes, whose levels are arrays of two to five axes."""

    #: Most software that writes OME-Zarr leaves out the cells that fill no window.
    borders: Literal["trim", "pad", "partial"] = "trim"

    def adapted(self, metadata: ArrayMetadata, axes: Any = None) -> ArrayMetadata:
        """Return the metadata of an array with the names and keys of chunks that are required."""
        names = OmeAxes.of(axes, metadata.dimension_names, len(metadata.shape)).names
        keys = OmeVersion.of(metadata.zarr_format).keys or metadata.keys
        return replace(metadata, dimension_names=names, keys=keys)

    def attributes(
        self,
        levels: Sequence[PyramidLevel],
        dimension_names: Sequence[str | None] | None,
        dtype: np.dtype[Any],
        *,
        zarr_format: ZarrFormat,
        method: str,
        name: str | None = None,
        axes: Sequence[Mapping[str, Any] | str] | None = None,
        units: Mapping[str, str] | None = None,
        scale: Mapping[str, float] | Sequence[float] | None = None,
        translation: Mapping[str, float] | Sequence[float] | None = None,
        omero: Mapping[str, Any] | None = None,
        image_label: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the attribute ``ome`` of v3, or ``multiscales`` and ``omero`` of v2.

        Parameters
        ----------
        levels : sequence of PyramidLevel
            The levels, the finest first.
        dimension_names : sequence of str, optional
            The names of the axes, if `axes` are not given.
        dtype : dtype
            The data type of the levels.
        zarr_format : int
            The format of the group.
        method : str
            How the levels are computed from level 0.
        name : str, optional
            The name of the image.
        axes : sequence of mapping or str, optional
            The axes: ``{"name": ..., "type": ..., "unit": ...}``, or their names.
        units : mapping, optional
            The unit of `scale` and `translation`, by the names of axes.
        scale, translation : mapping or sequence of float, optional
            The distance between the elements of level 0 and the position of the first, by the names
            of axes or for each axis. By default 1 and 0.
        omero : mapping, optional
            The display settings: ``{"channels": [{"color": "FF0000", ...}, ...]}``. A channel
            without ``window`` gets the range of the data type; `zarrdask.pyramid` narrows it to the
            percentiles 0.5 and 99.5 of the coarsest level.
        image_label : mapping, optional
            The ``colors`` and ``properties`` of labels; the image is a label image then.

        Raises
        ------
        MetadataError
            If these break a rule of OME-Zarr.
        """
        described = OmeAxes.of(axes, dimension_names, len(levels[0].shape)).with_units(units or {})
        step = described.numbers("scale", scale, 1.0)
        origin = described.numbers("translation", translation, 0.0)
        document = {
            **({} if name is None else {"name": instance_of(name, "name", str)}),
            "axes": described.to_json(),
            "datasets": [
                render_level(level.path, *_placed(level.factors, step, origin)) for level in levels
            ],
            "type": method,
            "metadata": {"method": "zarrdask.pyramid"},
        }
        channels = levels[0].shape[described.channel] if described.channel is not None else 1
        display = None if omero is None else render_omero(omero, channels, dtype)
        label = None if image_label is None else render_image_label(image_label, dtype)
        return ome_attributes(document, zarr_format, {}, display, label)


def _placed(
    factors: Sequence[int], step: Numbers, origin: Numbers
) -> tuple[Numbers, Numbers | None]:
    """Return the scale of a level, and the centre of its first cell if that is not zero."""
    scale = tuple(each * factor for each, factor in zip(step, factors, strict=True))
    start = tuple(
        zero + each * (factor - 1) / 2
        for zero, each, factor in zip(origin, step, factors, strict=True)
    )
    return scale, start if any(start) else None


def check_ome_levels(levels: Sequence[Level], ndims: Sequence[int], axes: OmeAxes) -> None:
    """Raise an error if a level does not have a scale along each axis."""
    for level, ndim in zip(levels, ndims, strict=True):
        lengths = {ndim, len(axes.names), len(level.scale or ())}
        if level.translation is not None:
            lengths.add(len(level.translation))
        if len(lengths) > 1:
            raise MetadataError(
                "OME-Zarr requires a name for each axis, and a scale along each axis for each "
                "level",
                key=level.path,
                found=level,
                expected=f"{ndim} axes and numbers; axes are {axes.names}",
            )
