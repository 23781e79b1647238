"""``zarrdask verify``: check that everything stored can be read."""

from typing import Any

import click

from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask verify data.zarr",
        "zarrdask verify s3://bucket/data --scheduler tcp://host:8786",
        "zarrdask verify mirror.zarr --manifest data.json",
    )
)
@options.one_node
# Earlier releases compared two nodes here.
@click.argument("other", required=False, metavar="")
@click.option("--strict", is_flag=True, help="Also fail for metadata that breaks a rule.")
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False),
    help="Compare stored objects with a saved manifest instead of decoding them.",
)
@click.option(
    "--stored-manifest",
    is_flag=True,
    help="Compare stored objects with the manifest that is stored in the node.",
)
@click.option("--every", is_flag=True, help="Also list missing and fill-only chunks or shards.")
@options.long_work
def command(
    location: Location,
    other: str | None,
    *,
    stored_manifest: bool,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Check that everything stored at URL can be read.

    All metadata is parsed, and every stored chunk is decoded. Missing chunks are not a problem.

    To replace chunks that can't be read, use repair; to compare two arrays or hierarchies, use
    diff. Exits with 1 if metadata is not valid, or if a chunk can't be read.
    """
    url, component, storage_options = location
    if other is not None:
        raise click.UsageError(f"verify takes one URL; compare two by: zarrdask diff {url} {other}")
    if stored_manifest:
        if arguments["manifest"] is not None:
            raise click.UsageError("pass either --manifest or --stored-manifest")
        arguments["manifest"] = True
    with suggestions(location):
        report = verify(url, component=component, storage_options=storage_options, **arguments)
    print_report(report, as_json=as_json)
    return int(not report.ok)
