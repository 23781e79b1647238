"""Counts of other processes on this machine, which write them to files of a directory."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from zarrdask.runtime import measuring
from zarrdask.runtime.counters import Counts, Labels, total
from zarrdask.runtime.system import after_fork, renewed_after_fork

#: The environment variable that names the directory; processes inherit it.
VARIABLE = "ZARRDASK_MEASURED"
_SHARING = renewed_after_fork(threading.Lock())
#: The directory that this process has made, and the number of blocks that use it.
_made: str | None = None
_users = 0


@contextmanager
def directory() -> Iterator[str]:
    """Yield the directory to which processes that are started here write their counts.

    It is shared by all blocks of a process, and of the processes that it starts.
    """
    global _made, _users  # noqa: PLW0603
    with _SHARING:
        outer = os.environ.get(VARIABLE)
        if outer is None or not os.path.isdir(outer):
            os.environ[VARIABLE] = outer = _made = mkdtemp(prefix="zarrdask-measured-")
        _users += 1
    try:
        yield outer
    finally:
        with _SHARING:
            _users -= 1
            if not _users and _made is not None:
                os.environ.pop(VARIABLE, None)
                shutil.rmtree(_made, ignore_errors=True)
                _made = None


def _write(labels: Labels, counts: Counts) -> None:
    """Append counts to the file of this process, unless the measurement has ended."""
    directory = os.environ.get(VARIABLE)
    if directory:
        line = json.dumps([*labels, counts]) + "\n"
        with suppress(OSError):
            os.write(_opened(f"{directory}/{os.getpid()}"), line.encode())


@lru_cache(maxsize=1)
def _opened(path: str) -> int:
    """Open the file of this process; opening it takes longer than writing a line."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def read(directory: str) -> dict[Labels, Counts]:
    """Return the sums of what all other processes have written to a directory."""
    rows, own = dict[Labels, Counts](), str(os.getpid())
    for path in (each for each in Path(directory).iterdir() if each.name != own):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # A process may have been killed while it wrote a line.
                *labels, counts = json.loads(line)
                key = Labels(*labels)
                rows[key] = total((rows.get(key, {}), counts))
    return rows


def begin() -> None:
    """Write the counts of this process to a file, if a process that started it measures."""
    global _made, _users
    # A forked process does not remove the directory of its parent.
    _made, _users = None, 0
    measuring.clear()
    if os.environ.get(VARIABLE):
        measuring.begin(_write)


def end() -> None:
    """Write the counts of this process no longer."""
    measuring.end(_write)


# In a process that was started while another one measures, the variable is set already.
begin()
after_fork(begin)
