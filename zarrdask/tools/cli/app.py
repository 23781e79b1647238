"""Find the command, run it, and turn errors into one line and an exit code."""

import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from zarrdask import __version__
from zarrdask.display.words import did_you_mean
from zarrdask.errors import ComplianceWarning, ZarrdaskError, printable
from zarrdask.tools.cli.output import one_line

#: The commands in the order of the help text. Each is a module with a `command`, which is imported
#: when the command runs: looking into a store must not cost the import of Dask.
COMMANDS = {
    "info": "Show the properties of an array or a group.",
    "tree": "Show the hierarchy below a group.",
    "ls": "List the members of a group.",
    "attrs": "Show or change attributes.",
    "concat": "Show many arrays or groups as one, and save the list of them.",
    "rechunk": "Rewrite an array with other chunks, shards or codecs.",
    "pyramid": "Write an array at several resolutions.",
    "copy": "Copy or convert an array or a hierarchy.",
    "manifest": "List all stored objects, with sizes, versions and digests.",
    "sync": "Make a copy equal to its source, by moving what differs.",
    "convert": "Convert an array or a hierarchy into another format.",
    "upgrade": "Write v3 metadata for v2 arrays, without copying chunks.",
    "consolidate": "Write the consolidated metadata of a group.",
    "verify": "Check that everything stored can be read.",
    "inventory": "Count what is stored, and find what is missing.",
    "repair": "Replace what can't be read, from another array or hierarchy.",
    "diff": "Compare two arrays or hierarchies.",
    "plan-read": "Show what a read would fetch and decode.",
    "plan-write": "Show what storing an array elsewhere would write.",
    "stats": "Show the range, the mean and the missing values of arrays.",
    "completion": "Print a script that completes commands in a shell.",
}
#: The folders of commands that are not in this one.
_FOLDERS = {
    **dict.fromkeys(("verify", "inventory", "repair", "diff", "manifest", "stats"), "checks."),
    **dict.fromkeys(("plan-read", "plan-write"), "plans."),
}
#: The exit codes, as of `diff` and `grep`: a command that checks returns 0 or 1, errors are 2.
SUCCESS, FAILED, ERROR, INTERRUPTED = 0, 1, 2, 130


class Commands(click.Group):
    """Commands; the error for an unknown one suggests the nearest name."""

    #: The command that other arguments than a name are for, if there is one.
    default: str | None = None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that arguments begin with."""
        names = self.list_commands(ctx)
        if args[0] not in names:
            hint = did_you_mean(args[0], names)
            if hint:
                ctx.fail(f"No such command {args[0]!r}{hint}")
            args = [self.default, *args] if self.default else args
        return super().resolve_command(ctx, args)


class _AllCommands(Commands):
    """The commands, each imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        folder = _FOLDERS.get(cmd_name, "")
        module = import_module(f"zarrdask.tools.cli.{folder}{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_AllCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="zarrdask", message="%(prog)s %(version)s")
def app() -> None:
    """Inspect, check, copy and rewrite Zarr arrays. A URL is a path, or an fsspec URL.

    Exit codes: 0 success; 1 a check failed; 2 an error, or wrong usage; 130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments of the command line; by default the arguments of the process.
    """
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # A name that the terminal can't display must not make the command fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _one_line_warnings(), _one_line_retries():
            code = app.main(args=arguments, prog_name="zarrdask", standalone_mode=False)
            if sys.stdout is not None:  # the process may have been started without it
                sys.stdout.flush()
    except click.Abort as error:
        _print_error(str(error) or "interrupted")
        return INTERRUPTED
    except click.UsageError as error:
        if re.search(r"extra arguments? \([\d, -]+\)", error.message):
            text = f"{error.message}; lengths are separated by commas alone, like 256,64,64"
            error = click.UsageError(text, error.ctx)
        error.show()
        return ERROR
    except click.ClickException as error:
        _print_error(error.format_message())
        return ERROR
    except BrokenPipeError:
        # The reader of the output has closed it; any further output would fail again.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return ERROR
    except (ZarrdaskError, OSError) as error:
        _print_error(one_line(error))
        return ERROR
    except Exception:  # noqa: BLE001 - Python itself would exit with 1, as if a check had failed
        traceback.print_exc()
        return ERROR
    return code if isinstance(code, int) else SUCCESS


def _print_error(text: str) -> None:
    click.echo(f"zarrdask: {printable(text)}", err=True)


@contextmanager
def _one_line_retries() -> Iterator[None]:
    """Report that a store does not answer once, not with each of many retries."""
    log, handler = logging.getLogger("zarrdask"), _FirstRetry(logging.WARNING)
    is_passed_on = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = is_passed_on


class _FirstRetry(logging.Handler):
    """Prints the first warning."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setLevel(logging.CRITICAL)
        text = " ".join(record.getMessage().split())
        _print_error(f"{text}; further retries are not shown (Ctrl-C gives up)")


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = one_line(message) if isinstance(message, Warning) else message
        _print_error(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=ComplianceWarning)
        warnings.showwarning = show
        yield
