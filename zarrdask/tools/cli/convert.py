"""``zarrdask convert``: an array or a hierarchy in another format."""

from typing import Any

import click

from zarrdask.arrays.nodes.info import format_name
from zarrdask.storage.resolve import resolve
from zarrdask.tools.cli import copy, options
from zarrdask.tools.cli.nodes import both_locations
from zarrdask.tools.cli.output import echo


@click.command(
    epilog=options.examples(
        "zarrdask convert old.zarr new.zarr",
        "zarrdask convert new.zarr old.zarr --zarr-format 2 --dry-run",
    )
)
@options.location("source")
@options.location("target")
@options.zarr_format(default="3", show_default=True, help="The new format.")
@options.copying
@options.restart
@options.dry_run
@options.two_nodes
@click.pass_context
def command(context: click.Context, /, **arguments: Any) -> None:
    """Convert the array or hierarchy at SOURCE into another format, at TARGET.

    Encoded chunks are copied unchanged. To change chunks or codecs as well, use copy or rechunk;
    to add v3 metadata to v2 arrays without copying chunks, use upgrade. The same command resumes a
    conversion that was interrupted.
    """
    if not arguments["as_json"]:
        source_location, target_location = both_locations(
            arguments["source"], arguments["target"], arguments
        )
        source = source_location.open()
        resolve(
            target_location.url, target_location.storage_options
        )  # errors come before what is printed
        before, after = map(format_name, (source.zarr_format, arguments["zarr_format"]))
        is_same = source.zarr_format == arguments["zarr_format"]
        echo(
            f"the source is {before} already, so it is copied without a conversion; "
            "--zarr-format chooses another format"
            if is_same
            else f"convert from {before} to {after}"
        )
    context.invoke(copy.command, include=(), exclude=(), region=None, **arguments)
