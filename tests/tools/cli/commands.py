"""Run commands in this process, or in one of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.processes import Done, Program
from zarrdask.tools.cli.app import run

ROOT = Path(__file__).parents[3]


def call(capsys, *arguments):
    """Run a command here."""
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    return Done(code, *capsys.readouterr())


def start(*arguments, code="from zarrdask.tools.cli import main; main()", **options):
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


def fork(*arguments, code):
    """Run Python, as `spawn` does, in a process that is forked: it has imported everything."""
    return Program(code, *arguments).finish()


def lines(done):
    assert (done.code, done.err) == (0, "")
    return dict(line.split(None, 1) for line in done.out.splitlines() if not line[0].isspace())
