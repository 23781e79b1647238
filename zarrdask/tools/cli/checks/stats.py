"""``zarrdask stats``: the range, the mean and the missing values of arrays."""

from typing import Any

import click

from zarrdask.arrays.nodes.array import Array
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.group_statistics import group_statistics
from zarrdask.tools.verification.statistics import statistics


@click.command(
    epilog=options.examples(
        "zarrdask stats data.zarr/temperature",
        "zarrdask stats data.zarr",
        "zarrdask stats s3://bucket/data --component a/b --scheduler tcp://host:8786",
    )
)
@options.one_node
@options.long_work
def command(location: Location, *, as_json: bool, progress: bool, scheduler: str | None) -> None:
    """Show the range, the mean, the standard deviation and the missing values of an array.

    Every stored chunk is read once, in bounded memory. Chunks that are not stored count as the
    fill value. In a group, the statistics of all numeric arrays below it are shown, one a line.
    """
    node = location.open()
    options: dict[str, Any] = {"scheduler": scheduler, "show": progress}
    if isinstance(node, Array):
        print_report(statistics(node, **options), as_json=as_json)
    else:
        print_report(group_statistics(node, **options), as_json=as_json)
