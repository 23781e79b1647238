"""Python programs in processes of their own, which are forked: everything is imported already.

A new interpreter spends one to three seconds of CPU time on imports. Start one, by `subprocess`,
only where the test is about imports, the command line or how an interpreter starts.
"""

import os
import select
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NamedTuple

#: Seconds after which the end of a program is no longer waited for.
PATIENCE = 100
_FORKING = get_context("forkserver")


class Done(NamedTuple):
    """How a program ended, and what it printed that was not read before."""

    code: int
    out: str
    err: str


class Program(_FORKING.Process):
    """A process that runs code as ``python -c CODE ARGUMENTS`` does, in a session of its own.

    Parameters
    ----------
    code : str
        The program.
    *arguments
        The rest of its ``sys.argv``, as strings.
    environment : dict, optional
        Environment variables besides the variables of this process.

    Attributes
    ----------
    stdin, stdout : TextIO
        Pipes to and from the process.
    stderr : TextIO
        A temporary file, so that a process with much to say need not wait for a reader.
    """

    def __init__(self, code, *arguments, environment=None):
        super().__init__()
        self._code, self._argv = code, ["-c", *map(str, arguments)]
        self._environment = {**os.environ, **(environment or {})}
        (stdin, given), (printed, stdout) = (_FORKING.Pipe(duplex=False) for _ in range(2))
        errors = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 - it is open as long as the pipes
        self._streams = stdin, stdout, errors.name
        self.start()
        stdin.close()
        stdout.close()
        self.stdin, self.stdout, self.stderr = _opened(given, "w"), _opened(printed, "r"), errors

    def run(self):
        stdin, stdout, errors = self._streams
        os.dup2(stdin.fileno(), 0)
        os.dup2(stdout.fileno(), 1)
        os.dup2(os.open(errors, os.O_WRONLY), 2)
        stdin.close()
        stdout.close()
        os.setsid()
        # The server that forks may have been started while an interrupt had to wait.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
        sys.argv = self._argv
        os.environ.clear()
        os.environ.update(self._environment)
        exec(compile(self._code, "<program>", "exec"), {"__name__": "__main__"})

    def tell(self, line=""):
        """Write a line to its input."""
        self.stdin.write(f"{line}\n")

    def finish(self, timeout=PATIENCE):
        """Close its input, and return how it ended."""
        self.stdin.close()
        with self.stdout, self.stderr:
            printed = self.stdout.read(), self.stderr.read()
        self.join(timeout)
        return Done(self.exitcode, *printed)


def _await_workers(program):
    """Wait until the processes that a program has started have ended: they have the same pipe."""
    end = time.monotonic() + PATIENCE
    while select.select([program.stdout], [], [], max(0, end - time.monotonic()))[0]:
        if not os.read(program.stdout.fileno(), 2**16):
            return
    os.killpg(program.pid, signal.SIGKILL)
    raise TimeoutError("the workers of a program run on after its end")


def _opened(connection, mode):
    """Return an end of a pipe as a file."""
    with connection:
        return os.fdopen(os.dup(connection.fileno()), mode, buffering=1)


@contextmanager
def running(code, *arguments, **options):
    """Return a context in which a program runs, which is killed at its end."""
    program = Program(code, *arguments, **options)
    try:
        yield program
    finally:
        sys.stderr.write("" if program.stderr.closed else program.stderr.read())
        program.kill()
        program.join(PATIENCE)
        if not program.stdout.closed:
            _await_workers(program)
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()
