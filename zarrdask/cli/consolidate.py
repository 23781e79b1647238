"""``zarrdask consolidate``: a group's consolidated metadata."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.display.words import counted
from zarrdask.nodes.consolidate import consolidate_metadata


@click.command(
    epilog=options.examples(
        "zarrdask consolidate data.zarr", "zarrdask consolidate data.zarr --component ocean"
    )
)
@click.argument("url")
@options.component
@options.storage_options
def command(url: str, component: str | None, storage_options: dict[str, Any] | None) -> None:
    """Write a group's consolidated metadata: the documents of all nodes below it, in one.

    Nobody should change nodes meanwhile.
    """
    group = consolidate_metadata(url, component, storage_options)
    count = sum(1 for _ in group.walk())
    click.echo(f"{counted(count, 'node')} below {group.path or '/'}")
