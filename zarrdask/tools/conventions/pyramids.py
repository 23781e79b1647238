"""Multiscale pyramids: the attributes in which a group lists arrays at several resolutions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.errors import MetadataError, instance_of
from zarrdask.tools.conventions.axes import OmeAxes
from zarrdask.tools.conventions.layout import parse_layout
from zarrdask.tools.conventions.levels import Level, Multiscale
from zarrdask.tools.conventions.ome import check_ome_levels, ome_attributes, parse_ome, render_level

#: The attributes of a group.
_MULTISCALES, _OME = "multiscales", "ome"


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
    return parse_multiscales(group.attrs.asdict(), group.node_path.location)


def parse_multiscales(attributes: Mapping[str, Any], location: str) -> tuple[Multiscale, ...]:
    """Return the pyramids that the attributes of a group at a location describe."""
    key = f"{location}: {_MULTISCALES}"
    ome = attributes.get(_OME)
    if isinstance(ome, dict) and _MULTISCALES in ome:
        attributes = ome
    documents = attributes.get(_MULTISCALES, [])
    if isinstance(documents, dict) and "layout" in documents:
        return (parse_layout(documents, key),)
    version = attributes.get("version")
    return tuple(
        parse_ome(each, f"{key}[{at}]", version)
        for at, each in enumerate(instance_of(documents, key, list))
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
    """Describe a pyramid in a group's attributes, instead of the pyramids described there.

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
    document: dict[str, Any] = {
        "datasets": [
            render_level(level.path, level.scale, level.translation) for level in all_levels
        ]
    }
    if name is not None:
        document["name"] = name
    names = nodes[0].dimension_names if isinstance(nodes[0], Array) else None
    if convention == "multiscales":
        named = [name for name in names or () if name is not None] if axes is None else axes
        if named:
            document["axes"] = [{"name": a} if isinstance(a, str) else dict(a) for a in named]
        group.attrs[_MULTISCALES] = [{**document, "version": "0.1"}]
        return
    ndims = [node.ndim if isinstance(node, Array) else 0 for node in nodes]
    described = OmeAxes.of(axes, names or (), ndims[0])
    check_ome_levels(all_levels, ndims, described)
    document["axes"] = described.to_json()
    group.attrs.update(ome_attributes(document, group.zarr_format, group.attrs))
