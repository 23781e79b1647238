"""``zarrdask stats``: the range, the mean and the missing values of an array."""

import click

from zarrdask.arrays.nodes.array import Array
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Place
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.statistics import statistics


@click.command(
    epilog=options.examples(
        "zarrdask stats data.zarr/temperature",
        "zarrdask stats s3://bucket/data --component a/b --scheduler tcp://host:8786",
    )
)
@options.one_node
@options.long_work
def command(place: Place, *, as_json: bool, progress: bool, scheduler: str | None) -> None:
    """Show the range, the mean, the standard deviation and the missing values of an array.

    Every stored chunk is read once, in bounded memory. Chunks that are not stored count as the
    fill value.
    """
    node = place.open()
    if not isinstance(node, Array):
        members = ", ".join(name for name, _ in node.arrays()) or "none"
        raise click.ClickException(
            f"{place.url}: expected an array but found a group; its arrays: {members}"
        )
    print_report(statistics(node, scheduler=scheduler, show=progress), as_json=as_json)
