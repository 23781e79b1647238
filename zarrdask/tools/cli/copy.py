"""``zarrdask copy``: an array or a hierarchy, to another location or format."""

from typing import Any

import click

from zarrdask.parallel.rewrite.copy import copy
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.cli.output import print_report


@click.command(
    epilog=options.examples(
        "zarrdask copy data.zarr s3://bucket/data",
        "zarrdask copy old.zarr new.zarr --zarr-format 3",
        "zarrdask copy data.zarr day.zarr --region time=0:24",
    )
)
@options.location("source")
@options.location("target")
@options.region_option
@options.new_array
@options.selecting
@options.copying
@options.restart
@options.dry_run
@options.two_nodes
def command(
    source: str,
    target: str,
    *,
    skip_unsupported: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Copy the array or hierarchy at SOURCE to TARGET, optionally into another format.

    Encoded chunks are copied without decoding where they are the same in both. Attributes,
    dimension names, fill values and consolidated metadata are copied as well. The same
    command resumes a copy that was interrupted.
    """
    arguments = options.passed(arguments)
    with suggestions(both_locations(source, target, arguments)[0]), options.interruptible():
        report = copy(
            source,
            target,
            on_unsupported="skip" if skip_unsupported else "raise",
            **arguments,
        )
    print_report(report, as_json=as_json)
