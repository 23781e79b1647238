"""Arrays at several resolutions: where a group tells of its levels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zarrdask.errors import MetadataError
from zarrdask.hierarchy.path import node_location, normalise_path
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group

Numbers = tuple[float, ...]

_MULTISCALES, _OME = "multiscales", "ome"
_TRANSFORMATIONS = "coordinateTransformations"
_KINDS = {"list": "a list", "dict": "an object", "str": "text"}
#: What a dimension of this name measures, in OME-Zarr's words; others measure nothing.
_MEASURES = {
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
        Of the array (of some writers: the group), from the group that tells of it.
    scale, translation : tuple of float, optional
        For each axis: how far elements are apart, and where the first one lies.
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
        As they are listed: the finest first, as a rule.
    name, version : str, optional
    axes : tuple of mapping
        What is said of each axis: its ``name``, ``type``, ``unit``.
    """

    levels: tuple[Level, ...]
    name: str | None = None
    version: str | None = None
    axes: tuple[Mapping[str, Any], ...] = ()


# --------------------------------------------------------------------------------------------
# Reading


def multiscales(group: Group) -> tuple[Multiscale, ...]:
    """Return the pyramids that a group's attributes tell of.

    They stand in ``multiscales`` (conformance A-75), of OME-Zarr 0.5 in the attribute ``ome``
    (C-81).

    Raises
    ------
    MetadataError
        If they are not what the convention says.

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
    found = _expect(attributes.get(_MULTISCALES, []), list, key)
    return tuple(
        _parse(each, f"{key}[{at}]", attributes.get("version")) for at, each in enumerate(found)
    )


def _expect(found: Any, kind: type, key: str) -> Any:
    if not isinstance(found, kind):
        raise MetadataError("not a pyramid", key=key, found=found, expected=_KINDS[kind.__name__])
    return found


def _parse(found: Any, key: str, version: str | None) -> Multiscale:
    document = _expect(found, dict, key)
    whole = _parse_level("", document, key)
    levels = []
    for at, each in enumerate(_expect(document.get("datasets"), list, f"{key}.datasets")):
        place = f"{key}.datasets[{at}]"
        path = _expect(_expect(each, dict, place).get("path"), str, f"{place}.path")
        levels.append(_within(_parse_level(path, each, place), whole, place))
    axes = _expect(document.get("axes", []), list, f"{key}.axes")
    named = tuple({"name": axis} if isinstance(axis, str) else axis for axis in axes)
    return Multiscale(tuple(levels), document.get("name"), document.get("version", version), named)


def _parse_level(path: str, document: Mapping[str, Any], key: str) -> Level:
    found: dict[str, Numbers] = {}
    key = f"{key}.{_TRANSFORMATIONS}"
    for each in _expect(document.get(_TRANSFORMATIONS, []), list, key):
        kind = _expect(each, dict, key).get("type")
        if kind in ("scale", "translation") and kind in each:
            numbers = _expect(each[kind], list, key)
            if not all(type(n) in (int, float) for n in numbers):
                raise MetadataError("not numbers", key=key, found=numbers)
            found[kind] = tuple(map(float, numbers))
    return Level(normalise_path(path), found.get("scale"), found.get("translation"))


def _within(level: Level, whole: Level, key: str) -> Level:
    """Return a level where what holds for all of the pyramid is applied after its own."""
    given = [n for n in (level.scale, level.translation, whole.scale, whole.translation) if n]
    if len({len(numbers) for numbers in given}) > 1:
        raise MetadataError("not of as many axes", key=key, found=given)
    if whole.scale is None and whole.translation is None:
        return level
    ndim = len(given[0])
    scale, more = (each.scale or (1.0,) * ndim for each in (level, whole))
    start, moved = (each.translation or (0.0,) * ndim for each in (level, whole))
    return Level(
        level.path,
        tuple(a * b for a, b in zip(scale, more, strict=True)),
        tuple(a * b + c for a, b, c in zip(start, more, moved, strict=True)),
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
    """Tell of a pyramid in a group's attributes, instead of those that it tells of.

    Parameters
    ----------
    group : Group
        Opened for changes.
    levels : iterable of Level or str
        Arrays below the group: the finest first.
    name : str, optional
    axes : sequence of mapping or str, optional
        ``{"name": ..., "type": ..., "unit": ...}``, or names; those of the first array's
        dimensions by default. OME-Zarr needs them.
    convention : {"multiscales", "ome"}
        Multiscale Arrays 0.1 (conformance A-75); or OME-Zarr, 0.5 in v3 and 0.4 in v2 (C-81),
        which needs a scale for each level.

    Raises
    ------
    MetadataError
        If there is no level, or what the convention needs is not given.
    NodeNotFoundError
        If there is no such array.
    ReadOnlyError
        If the group was opened for reading.
    """
    chosen = [Level(level) if isinstance(level, str) else level for level in levels]
    nodes = [group[level.path] for level in chosen]
    place = node_location(group.store, group.path)
    if not chosen:
        raise MetadataError("a pyramid has levels", key=place)
    document: dict[str, Any] = {"datasets": [_render_level(level) for level in chosen]}
    if name is not None:
        document["name"] = name
    if axes is None and isinstance(nodes[0], Array):
        axes = [each for each in nodes[0].dimension_names or () if each is not None]
    named = [{"name": axis} if isinstance(axis, str) else dict(axis) for axis in axes or ()]
    if convention == "multiscales":
        others = {"axes": named} if named else {}
        group.attrs[_MULTISCALES] = [{**document, **others, "version": "0.1"}]
        return
    _check_ome(chosen, named, nodes, place)
    document["axes"] = [_with_kind(axis) for axis in named]
    if group.zarr_format == 2:
        group.attrs[_MULTISCALES] = [{**document, "version": "0.4"}]
    else:
        held = group.attrs.get(_OME, {})
        group.attrs[_OME] = {**held, "version": "0.5", _MULTISCALES: [document]}


def _render_level(level: Level) -> dict[str, Any]:
    given = {"scale": level.scale, "translation": level.translation}
    found = [
        {"type": kind, kind: list(map(float, numbers))}
        for kind, numbers in given.items()
        if numbers is not None
    ]
    return {"path": level.path, **({_TRANSFORMATIONS: found} if found else {})}


def _with_kind(axis: dict[str, Any]) -> dict[str, Any]:
    kind = _MEASURES.get(axis["name"])
    return axis if kind is None or "type" in axis else {**axis, "type": kind}


def _check_ome(
    levels: list[Level], axes: list[dict[str, Any]], nodes: Sequence[Array | Group], place: str
) -> None:
    for level, node in zip(levels, nodes, strict=True):
        lengths = {len(axes), len(level.scale or ()), getattr(node, "ndim", 0)}
        if level.translation is not None:
            lengths.add(len(level.translation))
        if len(lengths) > 1 or 0 in lengths:
            raise MetadataError(
                "OME-Zarr needs a name and a scale for each axis of each level",
                key=f"{place}: {level.path}",
                found=level,
                expected=f"{getattr(node, 'ndim', 0)} axes and numbers; axes are {axes}",
            )
