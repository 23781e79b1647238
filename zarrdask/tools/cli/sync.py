"""``zarrdask sync``: make a copy equal to its source, by moving what differs."""

from typing import Any

import click

from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.synchronization.sync import sync


@click.command(
    epilog=options.examples(
        "zarrdask sync data.zarr s3://bucket/data",
        "zarrdask sync s3://bucket/data mirror.zarr --delete --dry-run",
    )
)
@options.location("source")
@options.location("target")
@click.option(
    "--delete", is_flag=True, help="Remove nodes and files from TARGET that SOURCE lacks."
)
@click.option(
    "--by",
    type=click.Choice(["versions", "digests", "sizes"]),
    help="How objects of equal sizes are compared (default: versions).",
)
@click.option("--manifest", is_flag=True, help="Store a manifest in TARGET.")
@click.option("--source-manifest", is_flag=True, help="Store manifests in both.")
@options.dry_run
@options.two_copies
def command(
    source: str, target: str, *, source_manifest: bool, as_json: bool, **arguments: Any
) -> None:
    """Make the copy at TARGET equal to the array or hierarchy at SOURCE.

    Only chunks and documents that differ are moved, as they are stored. Readers of TARGET never see
    metadata and chunks that do not belong together. The same command resumes after an
    interruption. To convert what is copied, use copy.
    """
    arguments = options.passed(arguments)
    if source_manifest:
        arguments["manifest"] = "both"
    with suggestions(both_locations(source, target, arguments)[0]), options.interruptible():
        report = sync(source, target, **arguments)
    print_report(report, as_json=as_json)
