"""``zarrdask info``: the properties of an array or a group."""

import json
from math import isfinite
from typing import Any

import click
import numpy as np

from zarrdask.chunks.inventory import stored_sizes
from zarrdask.cli import options
from zarrdask.cli.nodes import open_node
from zarrdask.cli.output import print_json, print_properties
from zarrdask.display.words import byte_size
from zarrdask.hierarchy.path import node_location
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.info import describe


@click.command(
    epilog=options.examples(
        "zarrdask info data.zarr/temperature",
        "zarrdask info s3://bucket/data --component a/b --storage-option anon=true",
        "zarrdask info data.zarr/temperature --stored",
    )
)
@options.place("url")
@options.component
@click.option("--stored", is_flag=True, help="Count the stored chunks and their bytes.")
@options.as_json
@options.storage_options
def command(
    url: str,
    component: str | None,
    *,
    stored: bool,
    as_json: bool,
    storage_options: dict[str, Any] | None,
) -> None:
    """Show the properties of an array or a group: shape, data type, chunks, codecs, attributes."""
    node = open_node(url, component, storage_options)
    sizes = stored_sizes(node.stored) if stored and isinstance(node, Array) else None
    if as_json:
        print_json(as_data(node, sizes))
        return
    rows = list(node.info.rows)
    if sizes is not None and isinstance(node, Array):
        kind = "shards" if node.shards else "chunks"
        total = node.metadata.grid.size
        rows.append(("stored", f"{sizes[0]} of {total} {kind}, {byte_size(sizes[1])}"))
    print_properties(rows)
    for name, value in node.attrs.items():
        click.echo(f"  {name}: {json.dumps(value, ensure_ascii=False)}")


def as_data(node: Array | Group, sizes: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return the properties of a node as JSON values: sizes are numbers of bytes.

    Parameters
    ----------
    node : Array or Group
    sizes : (int, int), optional
        For an array: the number of stored units (chunks, or shards) and their bytes.
    """
    place = node_location(node.store, node.path)
    common = {"zarr_format": node.zarr_format, "attributes": dict(node.attrs)}
    if isinstance(node, Group):
        return {"group": place, **common, "members": list(node)}
    return {
        "array": place,
        **common,
        "shape": node.shape,
        "dtype": str(node.dtype),
        "bytes": node.nbytes,
        "chunks": node.chunks,
        "shards": node.shards,
        "units": node.metadata.grid.size,
        "dimension_names": node.dimension_names,
        "codecs": [describe(codec) for codec in node.metadata.codecs],
        "fill_value": _json_fill(node.fill_value),
        **({} if sizes is None else {"stored_units": sizes[0], "stored_bytes": sizes[1]}),
    }


def _json_fill(fill: Any) -> Any:
    """Return a fill value as a JSON value; as text if JSON has no such value."""
    value = fill.item() if isinstance(fill, np.generic) else fill
    finite = not isinstance(value, float) or isfinite(value)
    return value if isinstance(value, bool | int | float | str | None) and finite else str(fill)
