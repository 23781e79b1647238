"""What a converted array or group does not keep, in words."""

from typing import Any

from zarrdask.casting import lost
from zarrdask.conversion import flat_codecs
from zarrdask.errors import quoted
from zarrdask.formats.draft_codecs import endian_of, stored_type
from zarrdask.grids import extents
from zarrdask.metadata import ArrayMetadata, GroupMetadata


def losses(before: ArrayMetadata, after: ArrayMetadata) -> tuple[str, ...]:
    """Return what of an array's description is not, or not so, in a converted one, in words.

    Nothing is said of what is only spelled in another way.
    """
    found = [*filter(None, [lost(before.dtype, after.dtype)])]
    if before.shard is not None and after.shard is None:
        inner = _text(extents(before.read_grid))
        found.append(f"shards of {_text(extents(before.grid))} became chunks of {inner}")
    if before.fill_value is None and after.fill_value is not None:
        found.append(f"the fill value, which was left open, is {after.fill_value} now")
    elif before.dtype.hasobject and type(before.fill_value) is not type(after.fill_value):
        old, new = quoted(before.fill_value), quoted(after.fill_value)
        found.append(f"the fill value {old} is {new} now")
    if before.dimension_names and not after.dimension_names:
        found.append("the dimensions, which had no names, are not named one by one any more")
    gone = [item.name for item in before.extensions if item not in after.extensions]
    found += [f"the extension {name} was dropped" for name in gone]
    found += [f"the member {name} was dropped" for name in before.extra if name not in after.extra]
    if len(before.transformers) > len(after.transformers):
        found.append("storage transformers were undone")
    if _mixed(before) and not _mixed(after):
        found.append("the byte order of the fields is the same for all now")
    return tuple(found)


def _text(found: Any) -> str:
    return " x ".join(map(str, found)) or "one element"


def _mixed(metadata: ArrayMetadata) -> bool:
    dtype = stored_type(metadata.dtype, flat_codecs(metadata))
    return endian_of(dtype) == "own"


def group_losses(before: GroupMetadata, after: GroupMetadata) -> tuple[str, ...]:
    """Return what of a group's description is not in a converted one, in words."""
    gone = [f"the extension {e.name}" for e in before.extensions if e not in after.extensions]
    gone += [f"the member {name}" for name in before.extra if name not in after.extra]
    return tuple(f"{what} was dropped" for what in gone)
