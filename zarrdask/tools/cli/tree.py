"""``zarrdask tree``: the hierarchy below a group."""

import click

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.info import member_label
from zarrdask.display.tree import Tree
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, summary
from zarrdask.tools.cli.output import print_json, print_tree


@click.command(
    epilog=options.examples("zarrdask tree data.zarr", "zarrdask tree s3://bucket/data --depth 1")
)
@click.option("--depth", type=click.IntRange(1), help="The levels to show; all by default.")
@options.one_node
def command(location: Location, *, as_json: bool, depth: int | None) -> None:
    """Show the hierarchy below a group: for each array the shape, the data type and the chunks."""
    node = location.open()
    if as_json:
        members = [] if isinstance(node, Array) else node.node_path.walk(depth=depth)
        root = summary("", node.metadata)
        print_json({"nodes": [root, *(summary(path, member) for path, member in members)]})
        return
    print_tree(
        Tree(member_label(node.path or "/", node.metadata))
        if isinstance(node, Array)
        else node.tree(depth)
    )
