"""``zarrdask convert``: an array or a hierarchy in another format."""

from typing import Any

import click

from zarrdask.cli import copy, options


@click.command(
    epilog=options.examples(
        "zarrdask convert old.zarr new.zarr",
        "zarrdask convert old.zarr --in-place",
        "zarrdask convert new.zarr old.zarr --to 2 --dry-run",
    )
)
@options.place("source")
@options.place("target", required=False)
@options.zarr_format("--to", default="3", show_default=True, help="The new format.")
@options.copying
@options.restart
@options.dry_run
@options.two_nodes
@click.pass_context
def command(context: click.Context, /, **arguments: Any) -> None:
    """Convert the array or hierarchy at SOURCE into another format, at TARGET or --in-place.

    Encoded chunks are copied as they are. To change chunks or codecs as well, use copy or rechunk.
    The same command resumes a conversion that was interrupted.
    """
    context.invoke(copy.command, include=(), exclude=(), **arguments)
