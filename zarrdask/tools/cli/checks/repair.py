"""``zarrdask repair``: replace damaged chunks by chunks of another array or hierarchy."""

from typing import Any

import click

from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.verify import verify


@click.command(
    epilog=options.examples(
        "zarrdask repair data.zarr s3://bucket/backup",
        "zarrdask repair data.zarr backup.zarr --missing --dry-run",
    )
)
@options.location("url")
@options.location("intact")
@options.component
@click.option("--missing", is_flag=True, help="Also copy chunks that are missing.")
@options.dry_run
@options.two_nodes
def command(
    url: str,
    intact: str,
    *,
    missing: bool,
    dry_run: bool,
    as_json: bool,
    scheduler: str | None,
    progress: bool,
    **arguments: Any,
) -> int:
    """Replace chunks at URL that can't be read by those at INTACT, and check them again.

    INTACT may have other chunks, codecs or another format. With --dry-run, only the check is done.
    Exits with 1 if something is damaged in the end, or if INTACT stores chunks that URL lacks.
    """
    damaged, source = both_locations(url, intact, arguments)
    # Open the intact one first: if it does not exist, the check would be for nothing.
    other = source.open()
    work: dict[str, Any] = {"scheduler": scheduler, "progress": progress}
    with suggestions(damaged):
        _, component, storage_options = damaged
        report = verify(url, component=component, storage_options=storage_options, **work)
    if not report.ok and not dry_run and not as_json:
        click.echo(f"{report}\n")
    before = report
    with options.interruptible("run the same command again to finish the repair"):
        report = report.repair(other, missing=missing, dry_run=dry_run, **work)
    print_report(report, as_json=as_json)
    if report.ok and report == before and not as_json:
        click.echo("nothing to repair")
    return int(not report.ok)
