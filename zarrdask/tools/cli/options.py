"""Arguments and options that several commands have, and how their values are parsed."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, TypeVar

import click

from zarrdask.config import parse_size
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.dtypes.fill_values import NO_FILL_VALUE
from zarrdask.formats.metadata.node_layout import DRAFT, PROTOCOL
from zarrdask.tools.cli.nodes import Location, Options
from zarrdask.tools.cli.output import print_report

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def interruptible(message: str = "run the same command again to resume") -> Iterator[None]:
    """Print how to continue if the user interrupts the work."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise click.Abort(f"interrupted; {message}") from error


def key_value(text: str) -> tuple[str, Any]:
    """Return the key and the value of ``key=value``; the value is JSON (true, 3), or else text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not of the form key=value, without spaces")
    return key, parse_value(value)


def lengths(value: str) -> Any:
    """Return the lengths of chunks or shards: ``256,64,64``, one for all axes, a size, or auto.

    >>> lengths("(256,64)"), lengths("-1"), lengths("1MiB"), lengths("time=-1,0=30")
    ((256, 64), -1, '1MiB', {'time': -1, 0: 30})
    """
    text = value.strip("()[], ")
    if "=" in text:
        return _lengths_by_name(text)
    with suppress(ZarrdaskError):
        if text == "auto" or (text[-1:].isalpha() and parse_size(text, "size")):
            return text
    try:
        numbers = tuple(int(n) for n in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither lengths, like 256,64,64 or time=-1,lat=30, nor a size, like "
            "1MiB, nor auto"
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]


def _lengths_by_name(text: str) -> dict[str | int, int]:
    """Return lengths by dimension, from ``time=-1,lat=30``; a number stands for an axis."""
    by_name: dict[str | int, int] = {}
    for item in text.split(","):
        name, _, length = item.strip().rpartition("=")
        axis = int(name) if name.removeprefix("-").isdecimal() else name
        if not name or axis in by_name:
            raise click.BadParameter(f"{item!r} is not a dimension and its length, like lat=30")
        try:
            by_name[axis] = int(length)
        except ValueError:
            raise click.BadParameter(f"{item!r} has no length after the dimension") from None
    return by_name


def region(value: str) -> Any:
    """Return the region that a text represents: an index, or a dict of dimensions to indices.

    >>> region("0:24, :, 10"), region("time=0:24,lon=10")
    ((slice(0, 24, None), slice(None, None, None), 10), {'time': slice(0, 24, None), 'lon': 10})
    """
    items = [item.strip() for item in value.strip("()[] ").split(",")]
    try:
        if "=" in value:
            pairs = (item.rpartition("=") for item in items)
            return {name.strip(): _index(text) for name, _, text in pairs}
        return tuple(map(_index, items))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither slices and positions, like 0:24,:,10, nor such by dimension, "
            "like time=0:24,lon=10"
        ) from None


def _index(text: str) -> Any:
    if text.strip() == "...":
        return ...
    if ":" not in text:
        return int(text)
    parts = [int(part) if part.strip() else None for part in text.split(":")]
    if len(parts) > 3:
        raise ValueError(text)
    return slice(*parts)


region_option = click.option(
    "--region",
    type=region,
    metavar="START:STOP,...",
    help="The part of the array: a slice for each axis, or by dimension, as in time=0:24. By "
    "dimension, it also selects from all arrays of a group.",
)


def shard_lengths(value: str) -> Any:
    """Return the lengths of shards, or False for no shards."""
    return False if value == "none" else lengths(value)


def parse_value(text: str) -> Any:
    """Return the JSON value that a text represents, or else the text itself.

    >>> parse_value("true"), parse_value("3"), parse_value("eu-west-1")
    (True, 3, 'eu-west-1')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds several options, in the order of the help text."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def zarr_format(**attributes: Any) -> Callable[[F], F]:
    """Add the option for a format: 2, 3, or a dialect of the draft of 3."""
    return click.option(
        "--zarr-format",
        type=click.Choice(("2", "3", DRAFT, PROTOCOL)),
        callback=lambda ctx, param, value: int(value) if value in ("2", "3") else value,
        **attributes,
    )


def _pairs(kind: str, text: str) -> Callable[[F], F]:
    return click.option(
        f"--{kind}-option",
        f"{kind}_options",
        type=key_value,
        metavar="KEY=VALUE",
        multiple=True,
        callback=lambda ctx, param, pairs: dict(pairs) or None,
        help=text,
    )


def location(name: str, *, required: bool = True) -> Callable[[F], F]:
    """Add a URL or a path as an argument; shells complete paths."""
    return click.argument(name, required=required, type=click.Path())


component = click.option(
    "--component",
    metavar="PATH",
    help="The path of the node within the store; of two URLs, within the first.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
storage = _pairs("storage", "An option of fsspec, such as anon=true; may be repeated.")
restart = click.option("--restart", is_flag=True, help="Discard the work of an interrupted run.")
dry_run = click.option(
    "--dry-run", is_flag=True, help="Check everything, print what would be done, and stop."
)
#: The options of commands that run for long. A progress bar is the default on a terminal.
long_work = _together(
    click.option(
        "--progress/--no-progress",
        default=None,
        callback=lambda ctx, param, value: sys.stderr.isatty() if value is None else value,
        help="Show a progress bar on standard error. The default on a terminal.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help='The address of a Dask cluster, such as tcp://host:8786; or "threads" (the '
        'default), "processes", "sync".',
    ),
)
#: The options of commands with two URLs, which all run for long.
_BOTH_STORES = (
    _pairs("storage", "An option of fsspec for all URLs, such as anon=true; may be repeated."),
    _pairs("source", "The same for the first URL alone, instead of --storage-option."),
    _pairs("target", "The same for the second URL alone, instead of --storage-option."),
)
two_nodes = _together(as_json, long_work, *_BOTH_STORES)
#: The options of commands that run no tasks.
two_copies = _together(as_json, *_BOTH_STORES)


#: The options of commands that print a plan and execute it.
_PLANNED = _together(
    click.option(
        "--max-mem",
        default="256MiB",
        show_default=True,
        help="The maximum memory that a process may use in addition, such as 1GiB.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace the node at TARGET."),
    restart,
    dry_run,
    two_nodes,
)


def planned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command whose function returns a plan, which is printed and executed."""

    @wraps(function)
    def call(
        *, progress: bool, restart: bool, dry_run: bool, as_json: bool, **arguments: Any
    ) -> None:
        plan = function(**arguments)
        print_report(plan, as_json=as_json)
        if not dry_run:
            with interruptible():
                plan.execute(arguments["scheduler"], progress=progress, restart=restart)

    return _PLANNED(call)


def _refuse_in_place(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        raise click.UsageError("--in-place is a command of its own: zarrdask upgrade URL")


#: The options for which nodes a copy or an upgrade selects.
selecting = _together(
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Paths of arrays to select, such as '*/temperature'; may be repeated.",
    ),
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="Paths of nodes to leave out; may be repeated.",
    ),
)
skip_unsupported = click.option(
    "--skip-unsupported", is_flag=True, help="Leave out nodes that the format can't represent."
)
#: The options for what a copy leaves out, and where it goes.
copying = _together(
    skip_unsupported,
    click.option("--overwrite", is_flag=True, help="Replace the node at TARGET."),
    # Of earlier releases; eager, as TARGET was left out.
    click.option(
        "--in-place",
        is_flag=True,
        hidden=True,
        is_eager=True,
        expose_value=False,
        callback=_refuse_in_place,
    ),
)
#: The options for the properties of a new array.
new_array = _together(
    click.option(
        "--chunks",
        type=lengths,
        metavar="N,N,...",
        help="Lengths of chunks, one for each axis, one for all, or by dimension: "
        "time=-1,lat=30; -1 for a whole axis; a size, such as 1MiB; or auto.",
    ),
    click.option(
        "--shards",
        type=shard_lengths,
        metavar="N,N,...",
        help="Lengths of shards, which are multiples of the lengths of chunks, also by dimension; "
        "a size; auto; or none.",
    ),
    zarr_format(help="The format of Zarr."),
    click.option("--fill-value", help="The fill value as JSON; null leaves it undefined (v2)."),
    click.option("--dtype", help="The data type."),
    click.option(
        "--compressor",
        "compressors",
        multiple=True,
        metavar="CODEC",
        help='A name or JSON; several in the order of encoding; "none" for none.',
    ),
)


def one_node(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments of a command about one node: its `Location`, and ``--json``."""

    @wraps(function)
    def call(url: str, component: str | None, storage_options: Options, **arguments: Any) -> Any:
        return function(Location(url, component, storage_options), **arguments)

    return _together(location("url"), component, as_json, storage)(call)


def passed(values: dict[str, Any]) -> dict[str, Any]:
    """Return those options that the user passed, as arguments of the package."""
    arguments = {name: value for name, value in values.items() if value not in (None, ())}
    if "compressors" in arguments:
        names = [name for name in arguments["compressors"] if name != "none"]
        arguments["compressors"] = [parse_value(name) for name in names]
    if "fill_value" in arguments:
        fill_value = parse_value(arguments["fill_value"])
        arguments["fill_value"] = NO_FILL_VALUE if fill_value is None else fill_value
    return arguments


def examples(*lines: str) -> str:
    """Return the end of the help text of a command: examples, one a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
