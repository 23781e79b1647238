"""Nodes with attributes, and levels of pyramids."""

from typing import NamedTuple


def make(root, path, **attributes):
    return root.create_array(path, shape=(), dtype="i4", attributes=attributes)


class PlannedLevel(NamedTuple):
    """A level as `zarrdask.pyramid` plans it."""

    path: str
    shape: tuple[int, ...]
    factors: tuple[int, ...]
