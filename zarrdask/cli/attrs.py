"""``zarrdask attrs``: the attributes of an array or a group."""

import json
from difflib import get_close_matches
from typing import Any

import click

from zarrdask.cli import options
from zarrdask.cli.nodes import open_node
from zarrdask.cli.output import print_json
from zarrdask.metadata.json import render_json


@click.group(
    epilog=options.examples(
        "zarrdask attrs get data.zarr/temperature",
        "zarrdask attrs set data.zarr/temperature units=K",
    )
)
def command() -> None:
    """Show or change the attributes of an array or a group."""


@command.command(
    epilog=options.examples(
        "zarrdask attrs get data.zarr/temperature",
        "zarrdask attrs get data.zarr/temperature units",
    )
)
@click.argument("url")
@click.argument("name", required=False)
@options.component
@options.as_json
@options.storage_options
def get(
    url: str,
    name: str | None,
    component: str | None,
    *,
    as_json: bool,
    storage_options: dict[str, Any] | None,
) -> None:
    """Show all attributes; or the value of the attribute NAME, as JSON."""
    attributes = dict(open_node(url, component, storage_options).attrs)
    if name is None:
        _print(attributes, as_json=as_json)
    elif name in attributes:
        click.echo(json.dumps(attributes[name], ensure_ascii=as_json))
    else:
        matches = get_close_matches(name, attributes, 1)
        hint = f"; did you mean {matches[0]!r}?" if matches else ""
        raise click.ClickException(f"{url}: there is no attribute {name!r}{hint}")


@command.command(
    "set",
    epilog=options.examples(
        "zarrdask attrs set data.zarr/temperature units=K 'valid_range=[180, 330]'",
        'zarrdask attrs set data.zarr title="a run" --dry-run',
    ),
)
@click.argument("url")
@click.argument("values", nargs=-1, required=True, type=options.KeyValue(), metavar="NAME=VALUE...")
@options.component
@options.as_json
@options.dry_run
@options.storage_options
def set_(
    url: str,
    values: tuple[tuple[str, Any], ...],
    component: str | None,
    *,
    as_json: bool,
    dry_run: bool,
    storage_options: dict[str, Any] | None,
) -> None:
    """Set attributes, and show all of them. A value is JSON if it can be, or else text."""
    node = open_node(url, component, storage_options, "r" if dry_run else "r+")
    changes = dict(values)
    attributes = dict(node.attrs) | changes
    render_json(attributes, "attributes")  # values that JSON has no equivalent of are an error
    if not dry_run:
        node.attrs.update(changes)
    _print(attributes, as_json=as_json)


def _print(attributes: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(attributes)
        return
    for name, value in attributes.items():
        click.echo(f"{name}: {json.dumps(value, ensure_ascii=False)}")
