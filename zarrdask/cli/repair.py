"""``zarrdask repair``: what can't be read, taken from another array or hierarchy."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.cli.nodes import open_node, suggestions
from zarrdask.cli.output import print_report
from zarrdask.storage.resolve import options_of_each
from zarrdask.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask repair data.zarr s3://bucket/backup",
        "zarrdask repair data.zarr backup.zarr --missing --dry-run",
    )
)
@options.place("url")
@options.place("intact")
@options.component
@click.option("--missing", is_flag=True, help="Also copy chunks that are missing.")
@options.dry_run
@options.as_json
@options.progress
@options.scheduler
@options.options_of_each
def command(
    url: str,
    intact: str,
    component: str | None,
    *,
    missing: bool,
    dry_run: bool,
    as_json: bool,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
    **arguments: Any,
) -> int:
    """Replace chunks at URL that can't be read by those at INTACT, and check them again.

    INTACT may have other chunks, codecs or another format. With --dry-run, only the check is done.
    Exits with 1 if something is damaged in the end.
    """
    of_url, of_intact = options_of_each(
        storage_options, (url, source_options), (intact, target_options)
    )
    # Open the intact one first: if it does not exist, the check would be for nothing.
    other = open_node(intact, None, of_intact)
    with suggestions((url, component, of_url)):
        report = verify(url, component=component, source_options=of_url, **arguments)
    if not dry_run and (missing or not report.ok):
        if not as_json:
            click.echo(f"{report}\n")
        with options.interruptible("run the same command again to finish the repair"):
            report = report.repair(other, missing=missing, **arguments)
    print_report(report, as_json=as_json)
    return int(not report.ok)
