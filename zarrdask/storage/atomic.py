"""Files and directories that are being written beside their place: nothing shows them.

Their names tell the machine and the process, so that another one can remove what a process that
was killed left. Names of other machines, and of this one before it was started again, are left.
"""

import os
import re
import shutil
import socket
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import count
from pathlib import Path
from secrets import token_hex

_NAME = re.compile(r"\.zarrdask-[0-9a-f-]+\.partial")
_OWN = re.compile(r"\.zarrdask-([0-9a-f]{16})-([0-9a-f]+)-[0-9a-f-]+\.partial")
_RUN = token_hex(6)
_SERIAL = count()
#: Seconds in which nothing was added to a directory before it is taken for left: tasks of other
#: processes may be writing to it.
_QUIET = 3600


def is_temporary(name: str) -> bool:
    """Whether a name is one that nothing shows."""
    return _NAME.fullmatch(name) is not None


def temporary() -> str:
    """Return such a name, which no other one has."""
    return f".zarrdask-{_machine()}-{os.getpid():x}-{_RUN}-{next(_SERIAL):x}.partial"


@cache
def _machine() -> str:
    """Return what tells apart those whose processes have numbers of their own."""
    parts = [socket.gethostname()]
    for read in (_boot, _namespace):
        with suppress(OSError):
            parts.append(read())
    return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()


def _namespace() -> str:
    # Containers may have the name of their host.
    return os.readlink("/proc/self/ns/pid")


def tidy(path: str) -> None:
    """Remove what processes of this machine that are gone left right in a directory."""
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if _is_left(entry):
                with suppress(OSError):
                    (shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink)(
                        entry.path
                    )


def _is_left(entry: "os.DirEntry[str]") -> bool:
    found = _OWN.fullmatch(entry.name)
    if found is None or found[1] != _machine() or _is_alive(int(found[2], 16)):
        return False
    return not entry.is_dir(follow_symlinks=False) or _is_quiet(entry.path)


def _is_alive(process: int) -> bool:
    # Not ``os.kill(process, 0)``, which interrupts processes on Windows. Loaded on demand, as files
    # of other processes are rare.
    import psutil

    return bool(psutil.pid_exists(process))


def _is_quiet(path: str) -> bool:
    """Whether nothing was added to a directory, at any depth, for a while."""
    last = max((os.stat(place).st_mtime for place, _, _ in os.walk(path)), default=0.0)
    return time.time() - last > _QUIET
