"""``zarrdask inventory``: which chunks and shards are stored, and which are missing."""

import re
from typing import Any

import click

from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.inventory import inventory

#: Characters of a region that the path of an array does not have.
_REGION = re.compile(r"[:=]|^\.\.\.$")


def expectation(value: str) -> Any:
    """Return the region, or the pattern for paths of arrays, that a text represents.

    >>> expectation("time=0:24"), expectation("*/t2m"), expectation("...")
    ({'time': slice(0, 24, None)}, '*/t2m', Ellipsis)
    """
    if value == "...":
        return ...
    return options.region(value) if _REGION.search(value) else value


@click.command(
    epilog=options.examples(
        "zarrdask inventory data.zarr",
        "zarrdask inventory s3://bucket/data --axis time --expect time=0:8760",
        "zarrdask inventory data.zarr --expect '*/temperature' --json",
    )
)
@options.one_node
@click.option(
    "--expect",
    type=expectation,
    metavar="REGION|PATTERN",
    multiple=True,
    callback=lambda ctx, param, values: list(values) or None,
    help="The chunks that should be stored: a region, such as time=0:24 or 0:24,:; ... for "
    "everything; or a "
    "pattern for paths of arrays; may be repeated.",
)
@click.option("--axis", default="0", help="The append dimension, by name or number.")
@click.option(
    "--per",
    type=click.Choice(("chunk", "shard")),
    default="chunk",
    help="Whether chunks in shards are counted, or shards alone, which is faster.",
)
@click.option(
    "--fill-only",
    is_flag=True,
    help="Decode what is stored, to count the chunks and shards with only the fill value.",
)
@options.long_work
def command(location: Location, *, axis: str, as_json: bool, **arguments: Any) -> int:
    """Count what is stored at URL: chunks, shards and bytes, also along the append dimension.

    The store is listed, and the indexes of shards are read. Exits with 1 if a chunk that is
    expected is not stored.
    """
    url, component, storage_options = location
    number = int(axis) if axis.removeprefix("-").isdecimal() else axis
    with suggestions(location):
        report = inventory(
            url, component=component, storage_options=storage_options, axis=number, **arguments
        )
    print_report(report, as_json=as_json)
    return int(not report.ok)
