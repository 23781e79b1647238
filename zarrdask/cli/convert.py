"""``zarrdask convert``: an array or a hierarchy in another format."""

from typing import Any

import click

from zarrdask.cli import copy, options


@click.command(
    epilog=options.examples(
        "zarrdask convert old.zarr new.zarr",
        "zarrdask convert new.zarr old.zarr --to 2 --dry-run",
    )
)
@options.place("source")
@options.place("target")
@options.zarr_format("--to", default="3", show_default=True, help="The new format.")
@options.copying
@options.restart
@options.dry_run
@options.two_nodes
@click.pass_context
def command(context: click.Context, /, **arguments: Any) -> None:
    """Convert the array or hierarchy at SOURCE into another format, at TARGET.

    Encoded chunks are copied as they are. To change chunks or codecs as well, use copy or rechunk;
    to write v3 metadata beside those of v2, use upgrade. The same command resumes a conversion that
    was interrupted.
    """
    context.invoke(copy.command, include=(), exclude=(), **arguments)
