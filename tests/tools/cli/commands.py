"""Run commands in this process, or in one of their own."""

import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from zarrdask.tools.cli.app import run

ROOT = Path(__file__).parents[3]


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
    context = get_context("forkserver")
    reading, writing = zip(*(context.Pipe(duplex=False) for _ in range(2)), strict=True)
    process = context.Process(target=_execute, args=(code, list(map(str, arguments)), writing))
    process.start()
    printed = []
    for pipe in writing:
        pipe.close()
    for pipe in reading:
        with pipe, open(pipe.fileno(), closefd=False) as file:
            printed.append(file.read())
    process.join(60)
    return Done(process.exitcode, *printed)


def _execute(code, arguments, outputs):
    for number, pipe in enumerate(outputs, 1):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    os.setsid()
    # The server that forks may have been started while an interrupt had to wait.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout, sys.stderr = (os.fdopen(number, "w") for number in (1, 2))
    sys.argv = ["zarrdask", *arguments]
    exec(code, {"__name__": "__main__"})


def lines(done):
    assert (done.code, done.err) == (0, "")
    return dict(line.split(None, 1) for line in done.out.splitlines() if not line[0].isspace())
