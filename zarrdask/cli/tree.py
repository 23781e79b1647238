"""``zarrdask tree``: the hierarchy below a group."""

from collections.abc import Iterator
from typing import Any

import click

import zarrdask
from zarrdask import hierarchy
from zarrdask.array import Array
from zarrdask.cli import options
from zarrdask.errors import ZarrdaskError
from zarrdask.group import Group


@click.command(
    epilog=options.examples("zarrdask tree data.zarr", "zarrdask tree s3://bucket/data --depth 1")
)
@click.argument("url")
@options.component
@click.option("--depth", type=click.IntRange(1), help="Levels that are shown; all by default.")
@options.storage_options
def command(
    url: str, component: str | None, depth: int | None, storage_options: dict[str, Any] | None
) -> None:
    """Show the hierarchy below a group: a line for each node, with the shape, type and chunks."""
    found = zarrdask.open(url, component, storage_options=storage_options)
    click.echo(_line(found.path or "/", found))
    if isinstance(found, Group):
        for line in branches(found, depth):
            click.echo(line)


def branches(group: Group, depth: int | None = None) -> Iterator[str]:
    """Yield a line for each node below a group; one that can't be opened says why."""
    names = hierarchy.member_names(group.store, group.path)
    for position, name in enumerate(names):
        last = position == len(names) - 1
        try:
            found: Array | Group | None = group[name]
            text = _line(name, found)
        except ZarrdaskError as error:
            found, text = None, f"{name}  can't be opened: {error}"
        yield f"{'└── ' if last else '├── '}{text}"
        if isinstance(found, Group) and depth != 1:
            below = branches(found, depth and depth - 1)
            yield from (f"{'    ' if last else '│   '}{line}" for line in below)


def _line(name: str, found: Array | Group | None) -> str:
    if not isinstance(found, Array):
        return name
    shards = f" in shards {_short(found.shards)}" if found.shards else ""
    return f"{name} {found.shape} {found.dtype}, chunks {_short(found.chunks)}{shards}"


def _short(lengths: Any) -> str:
    text = str(lengths)
    return text if len(text) <= 60 else f"{text[:60]}..."
