"""``zarrdask attrs``: the attributes of an array or a group."""

import json
from typing import Any

import click

from zarrdask.cli import options
from zarrdask.cli.nodes import open_node
from zarrdask.cli.output import print_json
from zarrdask.display.words import did_you_mean
from zarrdask.metadata.json import render_json


class Verbs(click.Group):
    """`get`, `set` and `delete`; `get` is what a URL without a verb means."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that arguments begin with; the error suggests the nearest one."""
        if args[0] not in self.commands:
            hint = did_you_mean(args[0], self.commands)
            if hint:
                ctx.fail(f"No such command {args[0]!r}{hint}")
            args = ["get", *args]
        return super().resolve_command(ctx, args)


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
@options.place("url")
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
    else:
        _check_exists(url, name, attributes)
        click.echo(json.dumps(attributes[name], ensure_ascii=as_json))


@command.command(
    "set",
    epilog=options.examples(
        "zarrdask attrs set data.zarr/temperature units=K 'valid_range=[180, 330]'",
        'zarrdask attrs set data.zarr title="a run" --dry-run',
    ),
)
@options.place("url")
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


@command.command(
    epilog=options.examples(
        "zarrdask attrs delete data.zarr/temperature units",
        "zarrdask attrs delete data.zarr history title --dry-run",
    )
)
@options.place("url")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.component
@options.as_json
@options.dry_run
@options.storage_options
def delete(
    url: str,
    names: tuple[str, ...],
    component: str | None,
    *,
    as_json: bool,
    dry_run: bool,
    storage_options: dict[str, Any] | None,
) -> None:
    """Delete attributes, and show those that are left."""
    node = open_node(url, component, storage_options, "r" if dry_run else "r+")
    attributes = dict(node.attrs)
    for name in names:
        _check_exists(url, name, attributes)
    left = {name: value for name, value in attributes.items() if name not in names}
    if not dry_run:
        for name in attributes.keys() - left.keys():
            del node.attrs[name]
    _print(left, as_json=as_json)


def _check_exists(url: str, name: str, attributes: dict[str, Any]) -> None:
    if name not in attributes:
        hint = did_you_mean(name, attributes)
        raise click.ClickException(f"{url}: there is no attribute {name!r}{hint}")


def _print(attributes: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(attributes)
        return
    for name, value in attributes.items():
        click.echo(f"{name}: {json.dumps(value, ensure_ascii=False)}")
