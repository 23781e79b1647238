"""``zarrdask diff``: check whether two arrays or hierarchies are equal."""

from typing import Any

import click

from zarrdask.storage.snapshots.manifest_files import is_manifest_file
from zarrdask.storage.snapshots.object_manifest import Manifest
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.compare import compare


@click.command(
    epilog=options.examples(
        "zarrdask diff data.zarr copy.zarr",
        "zarrdask diff data.zarr s3://bucket/data --values-only",
        "zarrdask diff data.zarr copy.zarr --region time=0:24",
        "zarrdask diff yesterday.json today.json",
    )
)
@options.location("first")
@options.location("second")
@options.component
@options.region_option
@click.option("--values-only", is_flag=True, help="Ignore differences of metadata.")
@options.two_nodes
def command(first: str, second: str, *, values_only: bool, as_json: bool, **arguments: Any) -> int:
    """Compare two arrays or hierarchies of any formats, chunks and codecs.

    Two files that zarrdask manifest has saved are compared without reading any object.

    Elements are compared bit by bit. Exits with 1 if they differ, or if shapes, data types, fill
    values, dimension names or attributes do.
    """
    if is_manifest_file(first) and is_manifest_file(second):
        differences = compare(Manifest.load(first), Manifest.load(second))
        print_report(differences, as_json=as_json)
        return int(not differences.ok)
    with suggestions(*both_locations(first, second, arguments)):
        comparison = compare(first, second, **arguments)
    if values_only:
        comparison = comparison.without_metadata()
    print_report(comparison, as_json=as_json)
    return int(not comparison.ok)
