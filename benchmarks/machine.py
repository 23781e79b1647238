"""The machine: what it is, and what makes times worth little: others at work, cold memory."""

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CORES = os.cpu_count() or 1
#: The part of the machine's time that others may take before a measurement counts as disturbed.
TOLERATED = 0.1


def about() -> str:
    """Return what a reader of the table wants to know."""
    return f"{CORES} cores, {platform.machine()}, Python {platform.python_version()}"


def busy() -> float:
    """Return how many seconds all cores have worked up to now; 0 where that isn't told."""
    if not Path("/proc/stat").exists():
        return 0
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def wait(most: float = 60) -> None:
    """Wait until nobody else is at work, but not for ever."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.2)
        if busy() - before <= 0.2 * CORES * TOLERATED:
            return


def memory() -> tuple[int, int]:
    """Return how many bytes are in memory, and the most since `forget_peak`.

    Of this process and those that it has started; the sum of what each had at most.
    """
    if not Path("/proc/self/status").exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (most, most) if sys.platform == "darwin" else (most * 1024, most * 1024)
    found = [_memory(process) for process in _family(Path("/proc/self"))]
    return sum(now for now, _ in found), sum(most for _, most in found)


def _memory(process: Path) -> tuple[int, int]:
    with suppress(OSError, KeyError):  # it may have ended
        text = (process / "status").read_text()
        lines = dict(line.split(":", 1) for line in text.splitlines())
        now, most = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        return now, most
    return 0, 0


def _family(process: Path) -> Iterator[Path]:
    """Yield a process and all that it has started, and these in turn."""
    yield process
    with suppress(OSError):
        for children in list(process.glob("task/*/children")):
            for child in children.read_text().split():
                yield from _family(Path("/proc", child))


def forget_peak() -> None:
    """Let the most that was in memory be what there is now; where that can't be, nothing."""
    for process in _family(Path("/proc/self")):
        with suppress(OSError):
            (process / "clear_refs").write_text("5")


def touch(nbytes: int) -> None:
    """Use so much memory for a moment, in a process of its own.

    A virtual machine gives memory that is free back to its host, and to get it again takes longer
    than many a job: seconds for a GiB. That would be measured instead.
    """
    code = f"import numpy; numpy.ones({nbytes}, 'u1')"
    subprocess.run([sys.executable, "-c", code], check=True)
