"""The table of formats. The module of a format is imported when the format is first needed."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from zarrdask.errors import MetadataError

if TYPE_CHECKING:
    from zarrdask.formats.metadata.format import Format

#: Each format, by its `zarr_format`, or ``module:class`` before it is first needed.
FORMATS: "dict[int | str, Format | str]" = {
    3: "zarrdask.formats.metadata.v3:V3",
    2: "zarrdask.formats.metadata.v2:V2",
    "v3-draft": "zarrdask.formats.metadata.draft.format:Draft",
    "v3-draft-protocol": "zarrdask.formats.metadata.draft.format:OlderDraft",
}
#: The formats whose nodes can stand side by side in a store, the preferred one first where a path
#: has nodes of several. Nodes of the others stand in hierarchies with an entry point.
SIDE_BY_SIDE: tuple[int | str, ...] = (3, 2)


def find_format(zarr_format: int | str) -> "Format":
    """Return the format with a version, such as 3."""
    chosen = FORMATS.get(zarr_format) if isinstance(zarr_format, int | str) else None
    if chosen is None:
        raise MetadataError(
            "unknown format",
            key="zarr_format",
            found=zarr_format,
            expected=" or ".join(sorted(map(repr, FORMATS), key=lambda name: name.strip("'"))),
        )
    if isinstance(chosen, str):
        module, _, name = chosen.partition(":")
        chosen = FORMATS[zarr_format] = getattr(import_module(module), name)()
    return chosen


@cache
def formats() -> tuple["Format", ...]:
    """Return the formats of nodes that can stand side by side, the preferred one first."""
    return tuple(map(find_format, SIDE_BY_SIDE))
