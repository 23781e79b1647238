"""The output of commands: plain lines or JSON; on a terminal, tables and trees by rich.

Nothing is coloured if standard output is not a terminal, or if the variable NO_COLOR is set.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import click

from zarrdask.display.tree import Tree
from zarrdask.errors import printable, printable_lines


def one_line(error: BaseException) -> str:
    """Return an error as one line, in which arguments of functions are options of commands."""
    text = " ".join(str(error).split())
    text = re.sub(r"storage_options=\{'(\w+)': True\}", r"--storage-option \1=true", text)
    text = re.sub(r"\b(\w+)=True\b", lambda match: f"--{match[1].replace('_', '-')}", text)
    return text or type(error).__name__


def echo(text: str) -> None:
    """Print lines, in which names and attributes can't control the terminal."""
    click.echo(printable_lines(text))


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    echo(json.dumps(value, indent=2))


def print_report(report: Any, *, as_json: bool) -> None:
    """Print a report or a plan: as text, or as JSON by its method `to_dict`."""
    if as_json:
        print_json(report.to_dict())
        return
    *lines, last = str(report).splitlines()
    for line in lines:
        click.echo(line)
    ok = getattr(report, "ok", None)
    colour = "green" if ok else "red"
    is_plain = ok is None or not is_coloured()
    click.echo(last if is_plain else click.style(last, fg=colour, bold=True))


def print_tree(tree: Tree) -> None:
    """Print the drawing of a hierarchy."""
    console = _console()
    if console is None:
        echo(str(tree))
    else:
        console.print(_rich_tree(tree), soft_wrap=True)


def _rich_tree(tree: Tree) -> Any:
    from rich.text import Text
    from rich.tree import Tree as RichTree

    def label(node: Tree) -> Text:
        name, space, details = node.line.partition(" ")
        style = "bold blue" if not details else "bold"
        return Text.assemble((name, style), (space + details, "dim"))

    root = RichTree(label(tree), guide_style="dim")
    pending = [(root, tree)]
    while pending:
        branch, node = pending.pop()
        pending += [(branch.add(label(member)), member) for member in node.branches]
    return root


def print_table(rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> None:
    """Print a table. A header is shown on a terminal only; without one, names come first."""
    rows = [[*map(printable, row)] for row in rows]
    console = _console()
    if console is None:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            echo("  ".join(cells).rstrip())
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False) if header else Table.grid(padding=(0, 2))
    for name in header:
        table.add_column(name, overflow="fold")
    for first, *others in rows:
        table.add_row(Text(first, "" if header else "bold"), *map(Text, others))
    console.print(table)


def is_coloured() -> bool:
    """Whether the output is coloured."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _console() -> Any:
    """Return a console of rich, or None where lines are plain."""
    if not is_coloured() or find_spec("rich") is None:
        return None
    from rich.console import Console

    return Console(highlight=False)
