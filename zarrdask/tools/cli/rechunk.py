"""``zarrdask rechunk``: an array rewritten with other chunks, shards or codecs."""

from typing import Any

import click

from zarrdask.parallel.rewrite.rechunk import rechunk
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions


@click.command(
    epilog=options.examples(
        "zarrdask rechunk in.zarr out.zarr --chunks 256,64,64 --max-mem 1GiB",
        "zarrdask rechunk in.zarr out.zarr --chunks 10,10 --shards 100,100 --dry-run",
        "zarrdask rechunk in.zarr out.zarr --chunks 256,64 --compressor zstd --compressor crc32c",
    )
)
@options.location("source")
@options.location("target")
@options.new_array
@click.option(
    "--temp",
    type=click.Path(),
    metavar="URL",
    help="The location of temporary objects between passes (default: beside TARGET).",
)
@options.planned
def command(source: str, target: str, **arguments: Any) -> Any:
    """Rewrite the array at SOURCE to TARGET with other chunks, shards, codecs, type or format.

    All arrays of a group are rewritten in the same way. The plan is printed and executed.
    Properties that are not given stay as in SOURCE. The same command resumes a run that was
    interrupted.
    """
    arguments = options.passed(arguments)
    with suggestions(both_locations(source, target, arguments)[0]):
        return rechunk(source, target, **arguments)
