"""Run commands in this process, or in one of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from zarrdask.cli.app import run

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def call(capsys, *arguments):
    """Run a command here."""
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    return Done(code, *capsys.readouterr())


def start(*arguments, code="from zarrdask.cli import main; main()", **options):
    """Start a command in a process of its own."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        **options,
    )


def spawn(*arguments, **options):
    """Run a command in a process of its own."""
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)
