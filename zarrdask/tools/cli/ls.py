"""``zarrdask ls``: the members of a group."""

from typing import Any

import click

from zarrdask.arrays.nodes.array import Array
from zarrdask.errors import printable
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, summary
from zarrdask.tools.cli.output import echo, print_json, print_table


@click.command(
    epilog=options.examples("zarrdask ls data.zarr", "zarrdask ls s3://bucket/data --long")
)
@click.option("--long", "-l", "long", is_flag=True, help="Show shapes, data types and chunks.")
@options.one_node
def command(location: Location, *, as_json: bool, long: bool) -> None:
    """List the members of a group, one a line. The names of groups end with a slash.

    Names are relative to the group; an array is listed as it was named.
    """
    node = location.open()
    if isinstance(node, Array):
        members = [summary(location.component or location.url, node.metadata)]
    else:
        members = [summary(name, member) for name, member in node.node_path.walk(depth=1)]
    if as_json:
        print_json(members)
    elif long:
        rows = [_row(member) for member in members]
        print_table(rows, ("name", "kind", "shape", "dtype", "chunks", "shards"))
    else:
        for member in members:
            echo(printable(_name(member)))


def _name(member: dict[str, Any]) -> str:
    return f"{member['path']}/" if member["kind"] == "group" else str(member["path"])


def _row(member: dict[str, Any]) -> tuple[str, ...]:
    if member["kind"] == "invalid":
        return _name(member), "invalid", member["error"], "", "", ""
    values = (member.get(name) for name in ("shape", "dtype", "chunks", "shards"))
    return _name(member), member["kind"], *("" if v is None else str(v) for v in values)
