"""The chunk grid of the v3 draft, which has the separator of chunk keys, too (B-28, B-29)."""

from typing import Any

from zarrdask.errors import MetadataError, UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.extension import is_uri
from zarrdask.formats.grids.chunk_grid import GRIDS, ChunkGrid, Shape, parse_lengths
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.json import required


def parse_grid(document: Json, shape: Shape) -> tuple[ChunkGrid, ChunkKeys]:
    """Return the chunk grid and the encoding of chunk keys (B-28, B-29)."""
    member = instance_of(document["chunk_grid"], "chunk_grid", dict)
    if is_uri(member.get("extension")):
        members = {name: value for name, value in member.items() if name != "extension"}
        return GRIDS.find(member["extension"]).from_configuration(members, shape), ChunkKeys(
            "draft"
        )
    required(member, ("type", "chunk_shape"), "chunk_grid")
    unknown = set(member) - {"type", "chunk_shape", "separator"}
    if member["type"] != "regular" or unknown:
        raise UnsupportedError(
            "unknown chunk grid",
            key="chunk_grid",
            found=sorted(unknown) or member["type"],
            expected='{"type": "regular", "chunk_shape": [...], "separator": "/"}',
        )
    if "separator" not in member:
        report_deviation(
            "X-B15", "the separator is missing", key="chunk_grid", expected="'/' or '.'"
        )
    separator = one_of(member.get("separator", "/"), "chunk_grid.separator", ("/", "."))
    if document.get("dimension_separator", separator) not in (separator, None):
        raise MetadataError(
            "the separator differs from the grid's",
            key="dimension_separator",
            found=document["dimension_separator"],
            expected=repr(separator),
        )
    lengths = parse_lengths(member["chunk_shape"], "chunk_shape", 0)
    return RegularGrid(shape, lengths), ChunkKeys("draft", separator)


def render_grid(grid: ChunkGrid, keys: Any) -> Json:
    """Return the JSON of ``chunk_grid``."""
    if not isinstance(keys, ChunkKeys) or keys.name != "draft":
        raise UnsupportedError("the draft of Zarr v3 has one key encoding only", key="keys")
    if type(grid) is RegularGrid:
        shape = list(grid.chunk_shape)
        return {"type": "regular", "chunk_shape": shape, "separator": keys.separator}
    member = grid.to_json()
    if not is_uri(member["name"]):
        raise UnsupportedError(
            "the draft of Zarr v3 has no such grid", key="chunk_grid", found=member["name"]
        )
    return {"extension": member["name"], **member.get("configuration", {})}
