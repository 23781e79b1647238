"""``zarrdask tree``: the hierarchy below a group."""

from typing import Any

import click

import zarrdask
from zarrdask.cli import options
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import array_tree


@click.command(
    epilog=options.examples("zarrdask tree data.zarr", "zarrdask tree s3://bucket/data --depth 1")
)
@click.argument("url")
@options.component
@click.option("--depth", type=click.IntRange(1), help="Levels that are shown; all by default.")
@options.storage_options
def command(
    url: str, component: str | None, depth: int | None, storage_options: dict[str, Any] | None
) -> None:
    """Show the hierarchy below a group: a line for each node, with the shape, type and chunks."""
    node = zarrdask.open(url, component, storage_options=storage_options)
    tree = array_tree(node.path or "/", node) if isinstance(node, Array) else node.tree(depth)
    click.echo(str(tree))
