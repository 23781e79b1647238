"""One timed job of a fresh process, which has done the same on a tiny array before."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine

HERE = Path(__file__).resolve().parents[1]

#: What is timed, and whether its result is right.
Job = tuple[Callable[[], Any], Callable[[Any], bool]]


def timed(
    title: str, tiny: Callable[[], Job], full: Callable[[], Job], nbytes: int
) -> dict[str, float]:
    """Do the tiny job and then the full one on an array of `nbytes`, and return what it took."""
    run, is_right = tiny()
    if not is_right(run()):
        raise RuntimeError(f"{title}: wrong result of the tiny job")
    run, is_right = full()
    machine.touch(2 * nbytes)
    machine.forget_peak()
    held, _ = machine.memory()
    before, start = (machine.busy(), time.process_time()), time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    cpu = time.process_time() - before[1]
    others = (machine.busy() - before[0] - cpu) / (seconds * machine.CORES)
    # Of the job and what it is given, not of the check.
    _, peak = machine.memory()
    if not is_right(found):
        raise RuntimeError(f"{title}: wrong result")
    return {
        "seconds": seconds,
        "peak_rss": peak,
        "memory": peak - held,
        "cpu": cpu,
        "others": others,
    }


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Yield the numbers of rounds: the first, and those that are expected to end in time."""
    end = time.monotonic() + seconds
    for number in range(most):
        began = time.monotonic()
        yield number
        now = time.monotonic()
        if now + (now - began) > end:
            return


def outcome(module: str, *arguments: Any, timeout: float) -> dict[str, Any]:
    """Run a module in a process of its own; return what it prints as JSON, or why it failed."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    try:
        done = subprocess.run(
            command, cwd=HERE, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {timeout:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        errors = [line for line in lines if "Error" in line] or lines
        return {"failed": errors[-1][:200] if errors else f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
