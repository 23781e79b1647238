"""Multiscale pyramids: the attributes in which a group lists arrays at several resolutions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zarrdask.errors import MetadataError, instance_of
from zarrdask.hierarchy.path import node_location, normalise_path
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group

Numbers = tuple[float, ...]

#: The attributes of a group.
_MULTISCALES, _OME = "multiscales", "ome"
#: The member with the scale and translation, of a level or of a whole pyramid.
_TRANSFORMATIONS = "coordinateTransformations"
#: The ``type`` of an axis in OME-Zarr, by the name of the axis; others have none.
_AXIS_TYPES = {
    **dict.fromkeys("xyz", "space"),
    **dict.fromkeys(("t", "time"), "time"),
    **dict.fromkeys(("c", "channel"), "channel"),
}


@dataclass(frozen=True)
class Level:
    """One level of a pyramid.

    Attributes
    ----------
    path : str
        The path of the array, from the group that lists it. Some writers give that of a group.
    scale : tuple of float, optional
        The distance between elements along each axis.
    translation : tuple of float, optional
        The position of the first element along each axis.
    """

    path: str
    scale: Numbers | None = None
    translation: Numbers | None = None


@dataclass(frozen=True)
class Multiscale:
    """A pyramid: an array at several resolutions.

    Attributes
    ----------
    levels : tuple of Level
        The levels in the order of the document, which usually begins with the finest.
    name : str, optional
        The name of the pyramid.
    version : str, optional
        The version of the convention.
    axes : tuple of mapping
        The description of each axis: its ``name``, and if known ``type`` and ``unit``.
    """

    levels: tuple[Level, ...]
    name: str | None = None
    version: str | None = None
    axes: tuple[Mapping[str, Any], ...] = ()


# --------------------------------------------------------------------------------------------
# Reading


def multiscales(group: Group) -> tuple[Multiscale, ...]:
    """Return the pyramids that a group's attributes describe.

    They are in the attribute ``multiscales`` (conformance A-75); OME-Zarr 0.5 has that in the
    attribute ``ome`` (C-81).

    Parameters
    ----------
    group : Group

    Returns
    -------
    tuple of Multiscale
        It is empty if the group has no such attribute.

    Raises
    ------
    MetadataError
        If the attribute does not follow the convention.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> for name, n in ("full", 8), ("half", 4):
    ...     z = root.create_array(name, shape=n, dtype="u1")
    >>> write_multiscales(root, [Level("full"), Level("half", scale=(2,), translation=(0.5,))])
    >>> multiscales(root)[0].levels[1]
    Level(path='half', scale=(2.0,), translation=(0.5,))
    """
    attributes: Mapping[str, Any] = group.attrs.asdict()
    key = f"{node_location(group.store, group.path)}: {_MULTISCALES}"
    if isinstance(attributes.get(_OME), dict):
        attributes = attributes[_OME]
    documents = instance_of(attributes.get(_MULTISCALES, []), key, list)
    version = attributes.get("version")
    return tuple(_parse(each, f"{key}[{at}]", version) for at, each in enumerate(documents))


def _parse(value: Any, key: str, version: str | None) -> Multiscale:
    document = instance_of(value, key, dict)
    common = _parse_level("", document, key)
    levels = []
    for at, each in enumerate(instance_of(document.get("datasets"), f"{key}.datasets", list)):
        level_key = f"{key}.datasets[{at}]"
        path = instance_of(instance_of(each, level_key, dict).get("path"), f"{level_key}.path", str)
        levels.append(_transformed(_parse_level(path, each, level_key), common, level_key))
    axes = instance_of(document.get("axes", []), f"{key}.axes", list)
    named = tuple({"name": axis} if isinstance(axis, str) else axis for axis in axes)
    return Multiscale(tuple(levels), document.get("name"), document.get("version", version), named)


def _parse_level(path: str, document: Mapping[str, Any], key: str) -> Level:
    transformations: dict[str, Numbers] = {}
    key = f"{key}.{_TRANSFORMATIONS}"
    for each in instance_of(document.get(_TRANSFORMATIONS, []), key, list):
        kind = instance_of(each, key, dict).get("type")
        if kind in ("scale", "translation") and kind in each:
            numbers = instance_of(each[kind], key, list)
            if not all(type(n) in (int, float) for n in numbers):
                raise MetadataError(f"a {kind} must be a list of numbers", key=key, found=numbers)
            transformations[kind] = tuple(map(float, numbers))
    return Level(
        normalise_path(path), transformations.get("scale"), transformations.get("translation")
    )


def _transformed(level: Level, common: Level, key: str) -> Level:
    """Return a level with the transformation of the whole pyramid applied after its own."""
    transformations = [
        numbers
        for numbers in (level.scale, level.translation, common.scale, common.translation)
        if numbers
    ]
    if len({len(numbers) for numbers in transformations}) > 1:
        raise MetadataError(
            "the scales and translations of a level must have one number for each axis",
            key=key,
            found=transformations,
        )
    if common.scale is None and common.translation is None:
        return level
    ndim = len(transformations[0])
    scale, common_scale = (each.scale or (1.0,) * ndim for each in (level, common))
    start, common_start = (each.translation or (0.0,) * ndim for each in (level, common))
    return Level(
        level.path,
        tuple(a * b for a, b in zip(scale, common_scale, strict=True)),
        tuple(a * b + c for a, b, c in zip(start, common_scale, common_start, strict=True)),
    )


# --------------------------------------------------------------------------------------------
# Writing


def write_multiscales(
    group: Group,
    levels: Iterable[Level | str],
    *,
    name: str | None = None,
    axes: Sequence[Mapping[str, Any] | str] | None = None,
    convention: Literal["multiscales", "ome"] = "multiscales",
) -> None:
    """Describe a pyramid in a group's attributes, in place of the pyramids described there.

    Parameters
    ----------
    group : Group
        The group, opened for writing.
    levels : iterable of Level or str
        The levels, the finest first: their paths from the group, or `Level` with scales, too.
    name : str, optional
        The name of the pyramid.
    axes : sequence of mapping or str, optional
        The axes: ``{"name": ..., "type": ..., "unit": ...}``, or their names. By default the names
        of the dimensions of the first array. OME-Zarr requires names.
    convention : {"multiscales", "ome"}
        Multiscale Arrays 0.1 (conformance A-75, the default); or OME-Zarr, 0.5 in v3 and 0.4 in v2
        (C-81), which requires a scale for each level.

    Raises
    ------
    MetadataError
        If there is no level, or something that the convention requires is missing.
    NodeNotFoundError
        If a level is not a node below the group.
    ReadOnlyError
        If the group was opened for reading only.
    """
    all_levels = [Level(level) if isinstance(level, str) else level for level in levels]
    nodes = [group[level.path] for level in all_levels]
    location = node_location(group.store, group.path)
    if not all_levels:
        raise MetadataError("a pyramid must have at least one level", key=location)
    document: dict[str, Any] = {"datasets": [_render_level(level) for level in all_levels]}
    if name is not None:
        document["name"] = name
    if axes is None and isinstance(nodes[0], Array):
        axes = [each for each in nodes[0].dimension_names or () if each is not None]
    named = [{"name": axis} if isinstance(axis, str) else dict(axis) for axis in axes or ()]
    if convention == "multiscales":
        if named:
            document["axes"] = named
        group.attrs[_MULTISCALES] = [{**document, "version": "0.1"}]
        return
    _check_ome(all_levels, named, nodes, location)
    document["axes"] = [_with_type(axis) for axis in named]
    if group.zarr_format == 2:
        group.attrs[_MULTISCALES] = [{**document, "version": "0.4"}]
    else:
        others = group.attrs.get(_OME, {})
        group.attrs[_OME] = {**others, "version": "0.5", _MULTISCALES: [document]}


def _render_level(level: Level) -> dict[str, Any]:
    numbers = {"scale": level.scale, "translation": level.translation}
    transformations = [
        {"type": kind, kind: list(map(float, values))}
        for kind, values in numbers.items()
        if values is not None
    ]
    document: dict[str, Any] = {"path": level.path}
    return document | ({_TRANSFORMATIONS: transformations} if transformations else {})


def _with_type(axis: dict[str, Any]) -> dict[str, Any]:
    kind = _AXIS_TYPES.get(axis["name"])
    return axis if kind is None or "type" in axis else {**axis, "type": kind}


def _check_ome(
    levels: list[Level], axes: list[dict[str, Any]], nodes: Sequence[Array | Group], location: str
) -> None:
    for level, node in zip(levels, nodes, strict=True):
        lengths = {len(axes), len(level.scale or ()), getattr(node, "ndim", 0)}
        if level.translation is not None:
            lengths.add(len(level.translation))
        if len(lengths) > 1 or 0 in lengths:
            raise MetadataError(
                "OME-Zarr requires a name for each axis, and a scale along each axis for each "
                "level",
                key=f"{location}: {level.path}",
                found=level,
                expected=f"{getattr(node, 'ndim', 0)} axes and numbers; axes are {axes}",
            )
