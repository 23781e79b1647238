"""The regions of the arrays of a group that one region by dimension selects."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zarrdask.errors import SelectionError, one_of
from zarrdask.formats.indexing.selection import Region, find_region, region_shape, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.rewrite.member_lengths import check_member_lengths, lengths_of_member
from zarrdask.parallel.rewrite.node_plan import NodeCopy


def regions_of_members(
    region: Any, arrays: Mapping[str, ArrayMetadata]
) -> dict[str, Region | None]:
    """Return the region of each array by its path, or None for a whole array.

    The path of an array that is not in a group is "".

    Examples
    --------
    >>> import zarrdask
    >>> t = zarrdask.create_array({}, shape=(4, 6), dtype="i4", dimension_names=("time", "x"))
    >>> x = zarrdask.create_array({}, shape=6, dtype="i4", dimension_names=("x",))
    >>> regions_of_members({"time": slice(1, 3)}, {"t": t.metadata, "x": x.metadata})
    {'t': (slice(1, 3, 1), slice(0, 6, 1)), 'x': None}
    """
    is_array = list(arrays) == [""]
    if region is None or (region is ... and not is_array):
        return dict.fromkeys(arrays)
    if not is_array:
        if not isinstance(region, Mapping):
            raise SelectionError(
                "a region of a group is a dict of dimensions to slices",
                key="region",
                found=region,
                expected="such as {'time': slice(0, 24)}",
            )
        check_member_lengths("region", region, arrays)
    regions = dict[str, Region | None]()
    for path, metadata in arrays.items():
        part = region if is_array else lengths_of_member(region, path, metadata)
        picks = find_region(part, metadata.shape, metadata.dimension_names, "region")
        regions[path] = None if picks == whole_region(metadata.shape) else picks
    return regions


def restricted(nodes: list[NodeCopy], region: Any) -> list[NodeCopy]:
    """Return the nodes of a copy, of whose arrays only a region is copied."""
    if region is None:
        return nodes
    arrays: dict[str, Any] = {node.path: node.before for node in nodes if node.is_array}
    regions = regions_of_members(region, arrays)
    return [_restricted(node, regions.get(node.path)) for node in nodes]


def _restricted(node: NodeCopy, region: Region | None) -> NodeCopy:
    if region is None or not isinstance(node.after, ArrayMetadata):
        return node
    return replace(node, region=region, after=node.after.resized(region_shape(region)))


def check_by(by: str, region: Any) -> None:
    """Check the argument `by` of a copy: a region is copied by value."""
    one_of(by, "by", ("value", "reference"))
    if by != "value" and region is not None:
        raise SelectionError(
            "a copy by reference refers to whole arrays; copy a region by value",
            key="region",
            found=region,
        )
