"""``zarrdask verify``: whether everything stored can be read, or two nodes are equal."""

from typing import Any

import click

from zarrdask.cli import diff, options
from zarrdask.cli.nodes import both_places, suggestions
from zarrdask.cli.output import print_report
from zarrdask.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask verify data.zarr",
        "zarrdask verify data.zarr copy.zarr",
        "zarrdask verify s3://bucket/data --scheduler tcp://host:8786",
    )
)
@options.place("url")
@options.place("other", required=False)
@options.component
@click.option("--strict", is_flag=True, help="Also fail for metadata that break a rule.")
@click.option("--every", is_flag=True, help="Also list missing and fill-only units.")
@click.option(
    "--values-only", is_flag=True, help="With OTHER: ignore differences of metadata, as in diff."
)
@options.two_nodes
@click.pass_context
def command(
    context: click.Context,
    /,
    url: str,
    other: str | None,
    *,
    strict: bool,
    every: bool,
    values_only: bool,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Check that everything stored at URL can be read; or, with OTHER, compare the two.

    All metadata are parsed, and every stored chunk is decoded. Missing chunks are no problem. With
    OTHER, elements are compared bit by bit, whatever the formats and chunks; see diff.

    To replace chunks that can't be read, use repair. Exits with 1 if metadata are not valid, if a
    chunk can't be read, or if the two differ.
    """
    if other and (strict or every):
        raise click.UsageError("--strict and --every can't be used with OTHER")
    if values_only and not other:
        raise click.UsageError("--values-only needs OTHER")
    if other:
        names = {"first": url, "second": other, "values_only": values_only, "as_json": as_json}
        code: int = context.invoke(diff.command, **names, **arguments)
        return code
    with suggestions(both_places(url, None, arguments)[0]):
        report = verify(url, strict=strict, every=every, **arguments)
    print_report(report, as_json=as_json)
    return int(not report.ok)
