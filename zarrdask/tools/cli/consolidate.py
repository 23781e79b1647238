"""``zarrdask consolidate``: the consolidated metadata of a group."""

import click

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.open_group import consolidate_metadata
from zarrdask.display.words import counted
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_json


@click.command(
    epilog=options.examples(
        "zarrdask consolidate data.zarr", "zarrdask consolidate data.zarr --component ocean"
    )
)
@options.one_node
@options.dry_run
def command(location: Location, *, as_json: bool, dry_run: bool) -> None:
    """Write the consolidated metadata of a group: one document about all nodes below it.

    No other process should change nodes of the group while this command runs.
    """
    if dry_run:
        group = location.open()
        if isinstance(group, Array):
            raise click.ClickException(f"{location.url}: expected a group but found an array")
        if group.metadata.format.consolidated_key is None:
            raise click.ClickException(
                f"{location.url}: the format {group.zarr_format} has no consolidated metadata"
            )
    else:
        with suggestions(location):
            group = consolidate_metadata(*location)
    paths = [path for path, _ in group.node_path.walk()]
    if as_json:
        print_json({"group": group.node_path.location, "nodes": paths})
    else:
        click.echo(f"consolidated metadata of {counted(len(paths), 'node')}")
