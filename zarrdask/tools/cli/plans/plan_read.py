"""``zarrdask plan-read``: what a read would fetch and decode."""

from typing import Any

import click

from zarrdask.parallel.graph.plan_read import plan_read
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_report


@click.command(
    epilog=options.examples(
        "zarrdask plan-read data.zarr/temperature",
        "zarrdask plan-read data.zarr/temperature --region 0:24,:,10",
        "zarrdask plan-read data.zarr/temperature --region time=0:24,lon=10",
    )
)
@click.option(
    "--region",
    type=options.region,
    metavar="START:STOP,...",
    help="The part to read: a slice or a position for each axis, or by dimension, as in "
    "time=0:24,lon=10; all by default.",
)
@options.one_node
def command(location: Location, *, region: Any, as_json: bool) -> None:
    """Show which chunks a read of an array would fetch and decode, without reading them."""
    url, component, storage_options = location
    with suggestions(location):
        plan = plan_read(url, region, component=component, storage_options=storage_options)
    print_report(plan, as_json=as_json)
