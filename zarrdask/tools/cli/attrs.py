"""``zarrdask attrs``: the attributes of an array or a group."""

import json
from collections.abc import Iterable
from typing import Any

import click

from zarrdask.display.words import did_you_mean
from zarrdask.formats.metadata.json import render_json
from zarrdask.tools.cli import options
from zarrdask.tools.cli.app import Commands
from zarrdask.tools.cli.nodes import Location
from zarrdask.tools.cli.output import echo, print_json


class Verbs(Commands):
    """`get`, `set` and `delete`; `get` is what a URL without a verb means."""

    default = "get"


@click.group(
    cls=Verbs,
    subcommand_metavar="[get|set|delete] URL ...",
    epilog=options.examples(
        "zarrdask attrs data.zarr/temperature",
        "zarrdask attrs set data.zarr/temperature units=K",
        "zarrdask attrs delete data.zarr/temperature units",
    ),
)
def command() -> None:
    """Show or change the attributes of an array or a group. Without a verb they are shown."""


@command.command(
    epilog=options.examples(
        "zarrdask attrs get data.zarr/temperature",
        "zarrdask attrs get data.zarr/temperature units",
    )
)
@options.one_node
@click.argument("name", required=False)
def get(location: Location, *, as_json: bool, name: str | None) -> None:
    """Show all attributes; or the value of the attribute NAME, as JSON."""
    attributes = dict(location.open().attrs)
    if name is None:
        _print(attributes, as_json=as_json)
    else:
        _check_exist(location, [name], attributes)
        echo(json.dumps(attributes[name], ensure_ascii=as_json))


@command.command(
    "set",
    epilog=options.examples(
        "zarrdask attrs set data.zarr/temperature units=K 'valid_range=[180, 330]'",
        'zarrdask attrs set data.zarr title="a run" --dry-run',
    ),
)
@options.one_node
@click.argument("values", nargs=-1, required=True, type=options.key_value, metavar="NAME=VALUE...")
@options.dry_run
def set_(
    location: Location, *, as_json: bool, values: tuple[tuple[str, Any], ...], dry_run: bool
) -> None:
    """Set attributes, and show all of them. A value is JSON if it can be, or else text."""
    node = location.open("r" if dry_run else "r+")
    attributes = dict(node.attrs) | dict(values)
    render_json(attributes, "attributes")  # values that JSON has no equivalent of are an error
    if not dry_run:
        node.attrs.update(dict(values))
    _print(attributes, as_json=as_json)


@command.command(
    epilog=options.examples(
        "zarrdask attrs delete data.zarr/temperature units",
        "zarrdask attrs delete data.zarr history title --dry-run",
    )
)
@options.one_node
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.dry_run
def delete(location: Location, *, as_json: bool, names: tuple[str, ...], dry_run: bool) -> None:
    """Delete attributes, and show those that are left."""
    node = location.open("r" if dry_run else "r+")
    attributes = dict(node.attrs)
    _check_exist(location, names, attributes)
    for name in set(names):
        del attributes[name]
        if not dry_run:
            del node.attrs[name]
    _print(attributes, as_json=as_json)


def _check_exist(location: Location, names: Iterable[str], attributes: dict[str, Any]) -> None:
    for name in names:
        if name not in attributes:
            hint = did_you_mean(name, attributes)
            raise click.ClickException(f"{location.url}: there is no attribute {name!r}{hint}")


def _print(attributes: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(attributes)
        return
    for name, value in attributes.items():
        echo(f"{name}: {json.dumps(value, ensure_ascii=False)}")
