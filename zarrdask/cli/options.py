"""Options that several commands have."""

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from zarrdask.dtypes.fill_values import NO_FILL_VALUE

F = TypeVar("F", bound=Callable[..., Any])

# The types of parameters below name no type argument: ParamType of click 8.1 takes none.


class Interrupted(click.ClickException):
    """Long work was interrupted, and there is something to say of it."""

    exit_code = 130


class Format(click.ParamType):  # type: ignore[type-arg]
    """A format: 2, 3, or a dialect of the draft of 3."""

    name = "format"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return it."""
        return int(value) if str(value).isdecimal() else str(value)


class KeyValue(click.ParamType):  # type: ignore[type-arg]
    """``key=value``; the value is JSON if it can be (true, 3), else text."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Return the pair."""
        key, equals, text = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not of the form key=value", param, ctx)
        return key, parse_value(text)


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Lengths, one an axis: ``256,64,64``."""

    name = "n,n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the lengths."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(n) for n in str(value).strip("()[]").split(",") if n.strip())
        except ValueError:
            self.fail(f"{value!r} is not a list of lengths, like 256,64,64", param, ctx)


def parse_value(text: str) -> Any:
    """Return a value of JSON, or else the text itself.

    >>> parse_value("true"), parse_value("3"), parse_value("eu-west-1")
    (True, 3, 'eu-west-1')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def component(function: F) -> F:
    """Give a command the option ``--component``."""
    return click.option(
        "--component", metavar="PATH", help="The path of the node within the store at URL."
    )(function)


def storage_options(function: F) -> F:
    """Give a command the option ``--storage-option``; its parameter is a dict, or None."""
    return _pairs("storage", "Passed to fsspec; may be given several times: {} anon=true")(function)


def options_of_each(function: F) -> F:
    """Give a command with two URLs options for both, and for one of them."""
    function = _pairs("target", "Passed to fsspec for the second URL, instead of those for both.")(
        function
    )
    function = _pairs("source", "Passed to fsspec for the first URL, instead of those for both.")(
        function
    )
    return _pairs("storage", "Passed to fsspec for all URLs; may be repeated: {} anon=true")(
        function
    )


def _pairs(kind: str, text: str) -> Callable[[F], F]:
    name = f"--{kind}-option"
    return click.option(
        name,
        f"{kind}_options",
        type=KeyValue(),
        multiple=True,
        callback=lambda ctx, param, pairs: dict(pairs) or None,
        help=text.format(name),
    )


def scheduler(function: F) -> F:
    """Give a command the option ``--scheduler``."""
    return click.option(
        "--scheduler",
        metavar="ADDRESS",
        help='Of a Dask cluster, such as tcp://host:8786; or "threads" (the default), '
        '"processes", "sync".',
    )(function)


def progress(function: F) -> F:
    """Give a command the option ``--progress``; by default on a terminal."""
    return click.option(
        "--progress/--no-progress",
        default=None,
        callback=lambda ctx, param, value: sys.stderr.isatty() if value is None else value,
        help="Whether to tell how far it has come, on standard error. By default on a terminal.",
    )(function)


def as_json(function: F) -> F:
    """Give a command the option ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def changes(function: F) -> F:
    """Give a command options for what is to be different in a new array."""
    for option in (
        click.option(
            "--compressor",
            "compressors",
            multiple=True,
            metavar="CODEC",
            help='By name or JSON; several, in the order of encoding; "none" for none.',
        ),
        click.option("--dtype", help="The data type."),
        click.option("--fill-value", help="The fill value, as JSON; null leaves it open (v2)."),
        click.option("--zarr-format", type=Format(), help="2, 3, v3-draft or v3-draft-protocol."),
    ):
        function = option(function)
    return function


def given(found: dict[str, Any]) -> dict[str, Any]:
    """Return which of the options of `changes` were given, as the package has them."""
    made = {name: value for name, value in found.items() if value not in (None, ())}
    if "compressors" in made:
        names = [name for name in made["compressors"] if name != "none"]
        made["compressors"] = [parse_value(name) for name in names]
    if "fill_value" in made:
        fill_value = parse_value(made["fill_value"])
        made["fill_value"] = NO_FILL_VALUE if fill_value is None else fill_value
    return made


def one_or_all(lengths: tuple[int, ...] | None) -> int | tuple[int, ...] | None:
    """Return lengths of chunks: one that stands alone is meant for all axes."""
    return lengths[0] if lengths is not None and len(lengths) == 1 else lengths


def examples(*lines: str) -> str:
    """Return examples as the end of a command's help, one a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
