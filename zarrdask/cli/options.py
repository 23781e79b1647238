"""Arguments and options that several commands have, and how their values are parsed."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from zarrdask.config import parse_size
from zarrdask.dtypes.fill_values import NO_FILL_VALUE
from zarrdask.errors import ZarrdaskError
from zarrdask.storage.v3_draft import DRAFT, PROTOCOL

F = TypeVar("F", bound=Callable[..., Any])

# The parameter types below have no type argument: ParamType of click 8.1 takes none.


class Interrupted(click.ClickException):
    """Long work was interrupted; the message says how to continue."""

    exit_code = 130


@contextmanager
def interruptible(message: str = "run the same command again to resume") -> Iterator[None]:
    """Print how to continue if the user interrupts the work."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted; {message}") from error


class Format(click.Choice):  # type: ignore[type-arg]
    """A format: 2, 3, or a dialect of the draft of 3."""

    def __init__(self) -> None:
        super().__init__(("2", "3", DRAFT, PROTOCOL))

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return a number or the name of a dialect."""
        name: str = super().convert(str(value), param, ctx)
        return int(name) if name.isdecimal() else name


class KeyValue(click.ParamType):  # type: ignore[type-arg]
    """``key=value``; the value is parsed as JSON (true, 3), or else it is text."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Return the key and the value."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not of the form key=value, without spaces", param, ctx)
        return key, parse_value(text)


class Lengths(click.ParamType):  # type: ignore[type-arg]
    """The lengths of chunks or shards: ``256,64,64``, one for all axes, a size, or ``auto``."""

    name = "n,n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, ...] | str | bool:
        """Return lengths, a text that the package understands, or False for no shards."""
        text = str(value).strip("()[], ")
        if text == "none" and param is not None and param.name == "shards":
            return False
        if text == "auto" or _is_size(text):
            return text
        try:
            lengths = tuple(int(n) for n in text.split(","))
        except ValueError:
            self.fail(
                f"{value!r} is neither lengths, like 256,64,64, nor a size, like 1MiB, nor auto",
                param,
                ctx,
            )
        return lengths if len(lengths) > 1 else lengths[0]


def _is_size(text: str) -> bool:
    """Whether a text is a number of bytes with a unit."""
    try:
        return text[-1:].isalpha() and bool(parse_size(text, "size"))
    except ZarrdaskError:
        return False


def parse_value(text: str) -> Any:
    """Return the JSON value that a text represents, or else the text itself.

    >>> parse_value("true"), parse_value("3"), parse_value("eu-west-1")
    (True, 3, 'eu-west-1')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def place(name: str, *, required: bool = True) -> Callable[[F], F]:
    """Add a URL or a path as an argument; shells complete paths."""
    return click.argument(name, required=required, type=click.Path())


def component(function: F) -> F:
    """Add the option ``--component`` to a command."""
    return click.option(
        "--component",
        metavar="PATH",
        help="The path of the node within the store; of two URLs, within the first.",
    )(function)


def storage_options(function: F) -> F:
    """Add the option ``--storage-option`` to a command; its parameter is a dict, or None."""
    return _pairs("storage", "An option of fsspec, such as anon=true; may be repeated.")(function)


def options_of_each(function: F) -> F:
    """Add options of fsspec to a command with two URLs: for both, and for each of them."""
    for kind, text in (
        ("target", "The same for the second URL alone, instead of --storage-option."),
        ("source", "The same for the first URL alone, instead of --storage-option."),
        ("storage", "An option of fsspec for all URLs, such as anon=true; may be repeated."),
    ):
        function = _pairs(kind, text)(function)
    return function


def _pairs(kind: str, text: str) -> Callable[[F], F]:
    name = f"--{kind}-option"
    return click.option(
        name,
        f"{kind}_options",
        type=KeyValue(),
        multiple=True,
        callback=lambda ctx, param, pairs: dict(pairs) or None,
        help=text,
    )


def scheduler(function: F) -> F:
    """Add the option ``--scheduler`` to a command."""
    return click.option(
        "--scheduler",
        metavar="ADDRESS",
        help='The address of a Dask cluster, such as tcp://host:8786; or "threads" (the '
        'default), "processes", "sync".',
    )(function)


def progress(function: F) -> F:
    """Add the option ``--progress`` to a command; the default is True on a terminal."""
    return click.option(
        "--progress/--no-progress",
        default=None,
        callback=lambda ctx, param, value: sys.stderr.isatty() if value is None else value,
        help="Show a progress bar on standard error. The default on a terminal.",
    )(function)


def as_json(function: F) -> F:
    """Add the option ``--json`` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def restart(function: F) -> F:
    """Add the option ``--restart`` to a command."""
    return click.option("--restart", is_flag=True, help="Discard the work of an interrupted run.")(
        function
    )


def dry_run(function: F) -> F:
    """Add the option ``--dry-run`` to a command."""
    return click.option(
        "--dry-run", is_flag=True, help="Check everything, print what would be done, and stop."
    )(function)


def copying(function: F) -> F:
    """Add the options for what a copy leaves out, and where it goes, to a command."""
    for option in (
        click.option(
            "--in-place", is_flag=True, help="Write v3 metadata beside those of v2; touch no chunk."
        ),
        click.option("--overwrite", is_flag=True, help="Replace the node at TARGET."),
        click.option(
            "--skip-unsupported",
            is_flag=True,
            help="Leave out nodes that the format can't represent.",
        ),
    ):
        function = option(function)
    return function


def chunks_and_shards(function: F) -> F:
    """Add the options ``--chunks`` and ``--shards`` to a command; one length is for all axes."""
    for option in (
        click.option(
            "--shards",
            type=Lengths(),
            help="Lengths of shards, multiples of those of chunks; a size; auto; or none.",
        ),
        click.option(
            "--chunks",
            type=Lengths(),
            help="Lengths of chunks, one for each axis, or one for all; -1 for a whole axis; a "
            "size, such as 1MiB; or auto.",
        ),
    ):
        function = option(function)
    return function


def changes(function: F) -> F:
    """Add the options for the properties of a new array to a command."""
    for option in (
        click.option(
            "--compressor",
            "compressors",
            multiple=True,
            metavar="CODEC",
            help='A name or JSON; several in the order of encoding; "none" for none.',
        ),
        click.option("--dtype", help="The data type."),
        click.option("--fill-value", help="The fill value as JSON; null leaves it open (v2)."),
        click.option("--zarr-format", type=Format(), help="The format of Zarr."),
    ):
        function = option(function)
    return function


def of_source(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the options of fsspec for the source, of `options_of_each`."""
    return arguments.get("source_options") or arguments.get("storage_options")


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
