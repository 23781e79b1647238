"""``zarrdask plan-write``: what storing an array elsewhere would write and request."""

from typing import Any

import click

from zarrdask.parallel.graph.from_zarr import from_zarr
from zarrdask.parallel.graph.plan_write import plan_write
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.cli.output import print_report


@click.command(
    epilog=options.examples(
        "zarrdask plan-write in.zarr out.zarr --chunks 256,64,64",
        "zarrdask plan-write in.zarr out.zarr --blocks 100,100 --region 0:24,:",
    )
)
@options.location("source")
@options.location("target")
@click.option(
    "--blocks",
    type=options.lengths,
    metavar="N,N,...",
    help="Lengths of the Dask blocks that are written; by default the blocks of from_zarr(SOURCE).",
)
@click.option(
    "--region",
    type=options.region,
    metavar="START:STOP,...",
    help="The region of the array at TARGET that is written; all by default.",
)
@options.new_array
@options.two_copies
def command(
    source: str, target: str, *, blocks: Any, region: Any, as_json: bool, **arguments: Any
) -> None:
    """Show which tasks would write which chunks if the array at SOURCE were stored at TARGET.

    If there is no array at TARGET, or options of a new one are passed, the plan is for a new
    array. Nothing is written, and no chunk is read.
    """
    arguments = options.passed(arguments)
    first, second = both_locations(source, target, arguments)
    for name in ("storage_options", "source_options", "target_options"):
        arguments.pop(name, None)
    with suggestions(first):
        chunks = "auto" if blocks is None else blocks
        x = from_zarr(source, chunks=chunks, storage_options=first.storage_options)
    plan = plan_write(x, target, region, storage_options=second.storage_options, **arguments)
    print_report(plan, as_json=as_json)
