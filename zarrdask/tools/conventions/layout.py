"""The levels of a pyramid in the member ``layout`` of the attribute ``multiscales``. Pure.

A level may be derived from another one; its transformation is then relative to that level.
"""

from collections.abc import Mapping
from typing import Any

from zarrdask.arrays.hierarchy.path import normalise_path
from zarrdask.errors import MetadataError, instance_of
from zarrdask.tools.conventions.levels import Level, Multiscale, Transformation, parse_numbers
from zarrdask.tools.conventions.spatial import parse_spatial


def parse_layout(document: Mapping[str, Any], key: str) -> Multiscale:
    """Return the pyramid; derived levels get transformations that are not relative."""
    items = {}
    for at, item in enumerate(instance_of(document.get("layout"), f"{key}.layout", list)):
        item_key = f"{key}.layout[{at}]"
        asset = instance_of(item, item_key, dict).get("asset")
        items[_path(asset, f"{item_key}.asset")] = (item, item_key)
    levels = []
    for path, (item, item_key) in items.items():
        own = _transformation(path, items, (), item_key)
        position = parse_spatial(item, f"{item_key}.")
        levels.append(Level(path, own.scale, own.translation, position))
    return Multiscale(tuple(levels), version=document.get("version"))


def _path(value: Any, key: str) -> str:
    return normalise_path(instance_of(value, key, str))


def _transformation(
    path: str, items: Mapping[str, tuple[Any, str]], passed: tuple[str, ...], key: str
) -> Transformation:
    """Return the transformation of a level from a level that is not derived from others."""
    if path in passed or path not in items:
        raise MetadataError(
            "a level must be derived from another level of the layout, not from itself",
            key=f"{key}.derived_from",
            found=path,
            expected=f"one of {[name for name in items if name not in passed]}",
        )
    item, item_key = items[path]
    transform = instance_of(item.get("transform", {}), f"{item_key}.transform", dict)
    own = Transformation()
    for kind in ("scale", "translation"):
        if kind in transform:
            numbers = parse_numbers(transform[kind], kind, f"{item_key}.transform.{kind}")
            own = own.then(Transformation(**{kind: numbers}), item_key)
    if "derived_from" not in item:
        return own
    source = _path(item["derived_from"], f"{item_key}.derived_from")
    return own.then(_transformation(source, items, (*passed, path), item_key), item_key)
