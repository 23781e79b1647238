"""``zarrdask info``: what an array or a group is."""

import json
from math import isfinite
from typing import Any

import click
import numpy as np

import zarrdask
from zarrdask.chunks.inventory import stored_sizes
from zarrdask.cli import options
from zarrdask.display.words import byte_size
from zarrdask.hierarchy.path import node_location
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.info import Info, describe


@click.command(
    epilog=options.examples(
        "zarrdask info data.zarr/temperature",
        "zarrdask info s3://bucket/data --component a/b --storage-option anon=true",
        "zarrdask info data.zarr/temperature --stored",
    )
)
@click.argument("url")
@options.component
@click.option("--stored", is_flag=True, help="Count the chunks that are stored, and their bytes.")
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
    """Show what an array or group is: shape, type, chunks, codecs, attributes."""
    node = zarrdask.open(url, component, storage_options=storage_options)
    used = stored_sizes(node.stored) if stored and isinstance(node, Array) else None
    if as_json:
        click.echo(json.dumps(as_data(node, used), indent=2))
        return
    info = node.info
    if used is not None and isinstance(node, Array):
        kind = "shards" if node.shards else "chunks"
        row = "stored", f"{used[0]} of {node.metadata.grid.size} {kind}, {byte_size(used[1])}"
        info = Info((*info.rows, row))
    click.echo(str(info))
    for name, value in node.attrs.items():
        click.echo(f"  {name}: {json.dumps(value, ensure_ascii=False)}")


def as_data(found: Array | Group, used: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return what a node is as JSON has it: numbers, not words.

    Parameters
    ----------
    used : (int, int), optional
        Of an array: how many units are stored, and their bytes.
    """
    place = node_location(found.store, found.path)
    both = {"zarr_format": found.zarr_format, "attributes": dict(found.attrs)}
    if isinstance(found, Group):
        return {"group": place, **both, "members": list(found)}
    return {
        "array": place,
        **both,
        "shape": found.shape,
        "dtype": str(found.dtype),
        "bytes": found.nbytes,
        "chunks": found.chunks,
        "shards": found.shards,
        "units": found.metadata.grid.size,
        "dimension_names": found.dimension_names,
        "codecs": [describe(codec) for codec in found.metadata.codecs],
        "fill_value": _plain(found.fill_value),
        **({} if used is None else {"stored_units": used[0], "stored_bytes": used[1]}),
    }


def _plain(fill: Any) -> Any:
    """Return a fill value as JSON has it, in words if it has it not."""
    value = fill.item() if isinstance(fill, np.generic) else fill
    finite = not isinstance(value, float) or isfinite(value)
    return value if isinstance(value, bool | int | float | str | None) and finite else str(fill)
