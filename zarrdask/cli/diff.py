"""``zarrdask diff``: whether two arrays or hierarchies hold the same."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.cli.nodes import suggestions
from zarrdask.cli.output import print_report
from zarrdask.storage.resolve import options_of_each
from zarrdask.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask diff data.zarr copy.zarr",
        "zarrdask diff data.zarr s3://bucket/data --values-only",
    )
)
@options.place("first")
@options.place("second")
@options.component
@click.option("--values-only", is_flag=True, help="Ignore differences of metadata.")
@options.as_json
@options.progress
@options.scheduler
@options.options_of_each
def command(
    first: str,
    second: str,
    component: str | None,
    *,
    values_only: bool,
    as_json: bool,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
    **arguments: Any,
) -> int:
    """Compare two arrays or hierarchies, whatever their formats, chunks and codecs.

    Elements are compared bit by bit. Exits with 1 if they differ, or if shapes, data types, fill
    values, dimension names or attributes do.
    """
    of_first, of_second = options_of_each(
        storage_options, (first, source_options), (second, target_options)
    )
    with suggestions((first, component, of_first), (second, None, of_second)):
        comparison = verify(
            first,
            second,
            component=component,
            source_options=of_first,
            target_options=of_second,
            **arguments,
        )
    if values_only:
        comparison = comparison.without_metadata()
    print_report(comparison, as_json=as_json)
    return int(not comparison.ok)
