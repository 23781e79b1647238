"""Multiscale pyramids: the attributes in which a group lists arrays at several resolutions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from zarrdask.conventions.layout import parse_layout
from zarrdask.conventions.levels import Level, Multiscale, Transformation, parse_numbers
from zarrdask.errors import MetadataError, instance_of
from zarrdask.hierarchy.path import normalise_path
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group

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


# --------------------------------------------------------------------------------------------
# Reading


def multiscales(group: Group) -> tuple[Multiscale, ...]:
    """Return the pyramids that a group's attributes describe.

    They are in the attribute ``multiscales`` (conformance A-75), which has the member ``layout`` in
    the convention of 2026; OME-Zarr has them in the attribute ``ome`` from 0.5 on (C-81).

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
    Level(path='half', scale=(2.0,), translation=(0.5,), spatial=None)
    """
    attributes: Mapping[str, Any] = group.attrs.asdict()
    key = f"{group.node_path.location}: {_MULTISCALES}"
    ome = attributes.get(_OME)
    if isinstance(ome, dict) and _MULTISCALES in ome:
        attributes = ome
    documents = attributes.get(_MULTISCALES, [])
    if isinstance(documents, dict) and "layout" in documents:
        return (parse_layout(documents, key),)
    version = attributes.get("version")
    return tuple(
        _parse(each, f"{key}[{at}]", version)
        for at, each in enumerate(instance_of(documents, key, list))
    )


def _parse(value: Any, key: str, version: str | None) -> Multiscale:
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
    """Return the axes of a pyramid; since 0.6 those of the system that its levels lead to."""
    # Early drafts give the name of a system in place of an object.
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
    location = group.node_path.location
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
