"""Find the command, run it, and turn what goes wrong into one line and an exit code."""

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from zarrdask import __version__
from zarrdask.errors import ComplianceWarning, ZarrdaskError

#: In the order in which they are listed. Each is a module with a `command`, loaded when it is
#: asked for: to look into a store must not cost the import of Dask.
COMMANDS = {
    "info": "Show what an array or group is.",
    "tree": "Show the hierarchy below a group.",
    "rechunk": "Rewrite an array with other chunks, shards or codecs.",
    "copy": "Copy or convert an array or hierarchy.",
    "consolidate": "Write a group's consolidated metadata.",
    "verify": "Check that all can be read, or that two hold the same.",
}
#: What a command exits with.
FINE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Commands(click.Group):
    """The commands, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"zarrdask.cli.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of them, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="zarrdask", message="%(prog)s %(version)s")
def app() -> None:
    """Look at Zarr arrays, check, copy and rewrite them. URLs are paths or of any fsspec scheme.

    Exit codes: 0 all is well; 1 a check failed, or an error; 2 wrong usage; 130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process, if absent.
    """
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # Names that the terminal can't show are no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _one_line_warnings():
            found = app.main(args=arguments, prog_name="zarrdask", standalone_mode=False)
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()
    except click.Abort:
        _say("interrupted")
        return INTERRUPTED
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        _say(error.format_message())
        return error.exit_code
    except BrokenPipeError:
        # Who read our output has seen enough; nothing is left to say it to.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return FAILED
    except (ZarrdaskError, OSError) as error:
        _say(_line(error))
        return FAILED
    return found if isinstance(found, int) else FINE


def _line(error: BaseException) -> str:
    """Return an error as one line."""
    text = " ".join(str(error).split())
    # What a function is told to do, a command is by an option of that name.
    text = re.sub(r"\b(\w+)=True\b", lambda told: f"--{told[1].replace('_', '-')}", text)
    return text or type(error).__name__


def _say(text: str) -> None:
    click.echo(f"zarrdask: {text}", err=True)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"warning: {_line(message) if isinstance(message, Warning) else message}")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=ComplianceWarning)
        warnings.showwarning = show
        yield
