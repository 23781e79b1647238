"""``zarrdask info``: the properties of an array or a group."""

import json
from typing import Any

import click

from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.info import describe, dtype_name
from zarrdask.display.report import json_value
from zarrdask.display.words import byte_size
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location
from zarrdask.tools.cli.output import echo, print_json, print_table
from zarrdask.tools.conventions.display import ShownLevel, shown_levels


@click.command(
    epilog=options.examples(
        "zarrdask info data.zarr/temperature",
        "zarrdask info s3://bucket/data --component a/b --storage-option anon=true",
        "zarrdask info data.zarr/temperature --stored",
    )
)
@click.option("--stored", is_flag=True, help="Count the stored chunks and their bytes.")
@options.one_node
def command(location: Location, *, as_json: bool, stored: bool) -> None:
    """Show the properties of an array or a group: shape, data type, chunks, codecs, attributes."""
    node = location.open()
    sizes = StoredUnits(chunks_of(node)).totals() if stored and isinstance(node, Array) else None
    if as_json:
        print_json(as_data(node, sizes))
        return
    rows = list(node.info.rows)
    if sizes is not None and isinstance(node, Array):
        kind = "shards" if node.shards else "chunks"
        total = node.metadata.grid.size
        rows.append(("stored", f"{sizes[0]} of {total} {kind}, {byte_size(sizes[1])}"))
    print_table(rows)
    for name, value in node.attrs.items():
        echo(f"  {name}: {json.dumps(value, ensure_ascii=False)}")


def as_data(node: Array | Group, sizes: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return the properties of a node as JSON values: sizes are numbers of bytes.

    Parameters
    ----------
    node : Array or Group
    sizes : (int, int), optional
        For an array: the number of stored chunks or shards and their bytes.
    """
    location = node.node_path.location
    common = {"zarr_format": node.zarr_format, "attributes": dict(node.attrs)}
    if isinstance(node, Group):
        levels = [[_level(each) for each in levels] for levels in shown_levels(node)]
        shown = {"levels": levels} if levels else {}
        return {"group": location, **common, "members": list(node), **shown}
    return {
        "array": location,
        **common,
        "shape": node.shape,
        "dtype": dtype_name(node.metadata),
        "bytes": node.nbytes,
        "chunks": node.chunks,
        "shards": node.shards,
        "objects": node.metadata.grid.size,
        "dimension_names": node.dimension_names,
        "codecs": [describe(codec) for codec in node.metadata.codecs],
        "fill_value": json_value(node.fill_value),
        **({} if sizes is None else {"stored_objects": sizes[0], "stored_bytes": sizes[1]}),
    }


def _level(level: ShownLevel) -> dict[str, Any]:
    array = level.array
    sizes = {"shape": array.shape, "chunks": array.chunks, "shards": array.shards}
    return {"path": level.path, "scale": level.scale, **sizes}
