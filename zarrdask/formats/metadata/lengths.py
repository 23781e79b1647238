"""Lengths of chunks, shards and blocks by the names of dimensions or the numbers of axes. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.indexing.selection import axis_number, is_iterable

Names = Sequence[str | None] | None


def by_axis(lengths: Any, ndim: int, names: Names, key: str) -> Any:
    """Return the lengths of a mapping in the order of the axes, None for each it does not name.

    Values other than mappings are returned unchanged. `key` is the argument of the user, for
    errors.

    Examples
    --------
    >>> by_axis({"x": 10}, 2, ("t", "x"), "chunks"), by_axis({0: -1}, 2, None, "chunks")
    ((None, 10), (-1, None))
    """
    if not isinstance(lengths, Mapping):
        return lengths
    keys: dict[int, Any] = {}
    for name in lengths:
        axis = axis_number(name, ndim, names, key)
        if axis in keys:
            raise MetadataError(
                f"{keys[axis]!r} and {name!r} are the same axis; pass one of them",
                key=key,
                found=dict(lengths),
            )
        keys[axis] = name
    return tuple(lengths[keys[axis]] if axis in keys else None for axis in range(ndim))


def with_defaults(lengths: Any, defaults: Sequence[Any], names: Names, key: str) -> Any:
    """Return lengths, taken from a source where they are None or a mapping names none.

    Examples
    --------
    >>> with_defaults({"x": -1}, (5, 5), ("t", "x"), "chunks"), with_defaults(3, (5, 5), None, "")
    ((5, -1), 3)
    """
    lengths = by_axis(lengths, len(defaults), names, key)
    if isinstance(lengths, str) or not is_iterable(lengths):
        return lengths
    each = tuple(lengths)
    if len(each) != len(defaults):
        return each  # It raises an error where the lengths are checked.
    return tuple(d if n is None else n for n, d in zip(each, defaults, strict=True))
