"""``zarrdask verify``: whether everything stored can be read, or two stores hold the same."""

from typing import Any

import click

from zarrdask.cli import diff, options
from zarrdask.cli.nodes import suggestions
from zarrdask.cli.output import print_report
from zarrdask.storage.resolve import options_of_each
from zarrdask.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask verify data.zarr",
        "zarrdask verify data.zarr copy.zarr",
        "zarrdask verify s3://bucket/data --scheduler tcp://host:8786",
    )
)
@click.argument("url")
@click.argument("other", required=False)
@options.component
@click.option("--strict", is_flag=True, help="Also fail for metadata that break a rule.")
@click.option("--every", is_flag=True, help="Also list missing and fill-only units.")
@click.option(
    "--values-only", is_flag=True, help="With OTHER: ignore differences of metadata, as in diff."
)
@options.as_json
@options.progress
@options.scheduler
@options.options_of_each
@click.pass_context
def command(
    context: click.Context,
    url: str,
    other: str | None,
    component: str | None,
    *,
    strict: bool,
    every: bool,
    values_only: bool,
    as_json: bool,
    progress: bool,
    scheduler: str | None,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
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
    how: dict[str, Any] = {"scheduler": scheduler, "progress": progress}
    if other:
        code: int = context.invoke(
            diff.command,
            first=url,
            second=other,
            component=component,
            values_only=values_only,
            as_json=as_json,
            storage_options=storage_options,
            source_options=source_options,
            target_options=target_options,
            **how,
        )
        return code
    of_url, _ = options_of_each(storage_options, (url, source_options), (None, target_options))
    with suggestions((url, component, of_url)):
        report = verify(
            url, component=component, source_options=of_url, strict=strict, every=every, **how
        )
    print_report(report, as_json=as_json)
    return int(not report.ok)
