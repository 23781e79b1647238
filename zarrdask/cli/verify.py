"""``zarrdask verify``: whether all that is stored can be read, or two stores hold the same."""

import json
from typing import Any

import click

import zarrdask
from zarrdask.cli import options
from zarrdask.storage.resolve import options_of_each
from zarrdask.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask verify data.zarr",
        "zarrdask verify data.zarr copy.zarr",
        "zarrdask verify data.zarr --repair-from s3://bucket/data",
        "zarrdask verify s3://bucket/data --scheduler tcp://host:8786",
    )
)
@click.argument("url")
@click.argument("other", required=False)
@options.component
@click.option(
    "--strict",
    is_flag=True,
    help="Metadata that break a rule fail the check, also if they can be read.",
)
@click.option("--every", is_flag=True, help="List missing and fill-only units, too.")
@click.option(
    "--values-only", is_flag=True, help="With OTHER: only the elements decide, not the metadata."
)
@click.option(
    "--repair-from",
    metavar="OTHER",
    help="Copy what can't be read from another array or hierarchy, and look at it again.",
)
@click.option("--missing", is_flag=True, help="With --repair-from: what is missing is damage, too.")
@options.as_json
@options.progress
@options.scheduler
@options.options_of_each
def command(
    url: str,
    other: str | None,
    component: str | None,
    *,
    strict: bool,
    every: bool,
    values_only: bool,
    repair_from: str | None,
    missing: bool,
    as_json: bool,
    progress: bool,
    scheduler: str | None,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
) -> int:
    """Check that all that is stored at URL can be read; or, with OTHER, that both hold the same.

    Of one store, all metadata are parsed and every stored chunk is decoded. Missing chunks are no
    fault. Of two, the elements are compared bit by bit, whatever the formats and chunks.

    Exits with 1 if metadata are not valid or a chunk can't be read; if both are not the same.
    """
    if other and (strict or every or repair_from):
        raise click.UsageError("--strict, --every and --repair-from are of one store, not of two")
    if (values_only and not other) or (missing and not repair_from):
        raise click.UsageError("--values-only needs OTHER, and --missing needs --repair-from")
    how: dict[str, Any] = {"scheduler": scheduler, "progress": progress}
    of_url, of_other = options_of_each(
        storage_options, (url, source_options), (other or repair_from, target_options)
    )
    # Opened first: if it is not there, nothing has to be verified.
    there = zarrdask.open(repair_from, storage_options=of_other) if repair_from else None
    if other:
        compared = verify(
            url, other, component=component, source_options=of_url, target_options=of_other, **how
        )
        _show(compared, as_json=as_json)
        return int(not (compared.same_elements if values_only else compared.ok))
    report = verify(
        url, component=component, source_options=of_url, strict=strict, every=every, **how
    )
    if there is not None and (missing or not report.ok):
        if not as_json:
            click.echo(f"{report}\n")
        report = report.repair(there, missing=missing, **how)
    _show(report, as_json=as_json)
    return int(not report.ok)


def _show(found: Any, *, as_json: bool) -> None:
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
