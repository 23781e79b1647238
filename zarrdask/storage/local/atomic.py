"""Temporary names, for files and directories that are renamed when they are complete.

No listing of a store shows them. The names contain the machine and the process, so that another
process can remove the files of a process that was killed. Files of other machines, and of this one
before it was restarted, are kept.
"""

import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import count
from pathlib import Path
from secrets import token_hex

from zarrdask.storage.file_calls import flags

_NAME = re.compile(r"\.zarrdask-[0-9a-f-]+\.partial")
_OWN = re.compile(r"\.zarrdask-([0-9a-f]{16})-([0-9a-f]+)-[0-9a-f-]+\.partial")
_CREATE = flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_BINARY")
_RUN = token_hex(6)
_SERIAL = count()


class _Thread(threading.local):
    """The directory of the last file that a thread wrote, and whether it was a new one.

    Then the directory of the next file is probably new as well, as for an array's chunks.
    """

    def __init__(self) -> None:
        self.directory = ""
        self.is_new = False


_THREAD = _Thread()

#: A temporary directory to which nothing was added for this number of seconds is abandoned. Tasks
#: of other processes may still be writing to a younger one.
ABANDONED_AFTER = 3600


def is_temporary(name: str) -> bool:
    """Whether a name is temporary, so that listings leave it out."""
    return _NAME.fullmatch(name) is not None


def beside(path: str) -> str:
    """Return a new temporary path in the directory that contains a path."""
    name = f".zarrdask-{machine_token()}-{os.getpid():x}-{_RUN}-{next(_SERIAL):x}.partial"
    return os.path.join(os.path.dirname(path), name)


def put_file(
    path: str,
    write: Callable[[int], None],
    move: Callable[[str, str], None],
    make_directory: Callable[[str], bool],
    mode: int = 0o666,
) -> None:
    """Write a temporary file, and move it to its path when it is complete.

    `write` takes its descriptor. `move` takes both paths. `make_directory` is called if the
    directory is missing, or may be, and returns whether it was. `mode` is the file's, before the
    umask. After an error, neither file is there that was not there before.
    """
    temporary, directory = beside(path), os.path.dirname(path)
    if _THREAD.is_new and directory != _THREAD.directory:
        # To make it takes less time than to find that it is missing.
        with suppress(FileExistsError):
            _THREAD.is_new = make_directory(directory)
    try:
        fd = os.open(temporary, _CREATE, mode)
    except FileNotFoundError:
        _THREAD.is_new = make_directory(directory)
        fd = os.open(temporary, _CREATE, mode)
    _THREAD.directory = directory
    try:
        try:
            write(fd)
        finally:
            os.close(fd)
        move(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def link(temporary: str, path: str) -> None:
    """Rename a file unless there is a file of the new name."""
    os.link(temporary, path)
    os.unlink(temporary)


@cache
def machine_token() -> str:
    """Return a text that differs between machines (and containers) with own process numbers."""
    parts = [socket.gethostname()]
    for read in (_boot, _namespace):
        with suppress(OSError):
            parts.append(read())
    return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()


def _namespace() -> str:
    # A container may have the host name of its machine.
    return os.readlink("/proc/self/ns/pid")


def tidy(path: str) -> None:
    """Remove, from a directory, temporary files of processes of this machine that have ended."""
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if _is_abandoned(entry):
                with suppress(OSError):
                    (shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink)(
                        entry.path
                    )


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    parts = _OWN.fullmatch(entry.name)
    if parts is None or parts[1] != machine_token() or is_alive(int(parts[2], 16)):
        return False
    return not entry.is_dir(follow_symlinks=False) or _is_unchanged(entry.path)


def is_alive(process: int) -> bool:
    """Whether a process of this machine is running."""
    # Not ``os.kill(process, 0)``, which interrupts processes on Windows. Loaded on demand, as files
    # of other processes are rare.
    import psutil

    return bool(psutil.pid_exists(process))


def _is_unchanged(path: str) -> bool:
    """Whether nothing was added to a directory, at any depth, for `ABANDONED_AFTER` seconds."""
    last = max((os.stat(each).st_mtime for each, _, _ in os.walk(path)), default=0.0)
    return time.time() - last > ABANDONED_AFTER
