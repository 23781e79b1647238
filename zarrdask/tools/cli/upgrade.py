"""``zarrdask upgrade``: write v3 metadata for v2 arrays, whose chunks are not touched."""

from typing import Any, Literal

import click

from zarrdask.parallel.rewrite.upgrade import upgrade
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_report


@click.command(
    epilog=options.examples(
        "zarrdask upgrade old.zarr --dry-run",
        "zarrdask upgrade old.zarr --remove-v2",
    )
)
@options.one_node
@click.option("--remove-v2", is_flag=True, help="Remove the v2 metadata afterwards.")
@options.selecting
@options.skip_unsupported
@options.dry_run
def command(location: Location, *, skip_unsupported: bool, as_json: bool, **arguments: Any) -> None:
    """Write v3 metadata beside the v2 metadata of the array or hierarchy at URL.

    No chunk is touched: readers of both formats can open the array. The same command completes an
    upgrade that was interrupted.
    """
    url, component, storage_options = location
    where: dict[str, Any] = {"component": component, "storage_options": storage_options}
    on_unsupported: Literal["raise", "skip"] = "skip" if skip_unsupported else "raise"
    with suggestions(location):
        report = upgrade(url, on_unsupported=on_unsupported, **where, **options.passed(arguments))
    print_report(report, as_json=as_json)
