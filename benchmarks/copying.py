"""Measure `zarrdask.copy` beside ``cp -r``: ``python -m benchmarks.copying``.

Bytes that are moved as they are: from v2 to v3, out of shards, and into them. ``cp -r`` copies what
the copy is to be, so it makes as many files of the same sizes. Both in turn, in each round, from
the page cache, to the same disk; each is given a clean one.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import zarrdask
from benchmarks import machine

PLANES, SIDE = 256, 1024
#: What is copied, and what it becomes.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "v2 to v3": (
        {"zarr_format": 2, "chunks": (1, SIDE, SIDE)},
        {"zarr_format": 3},
    ),
    "out of shards": (
        {"chunks": (1, SIDE // 2, SIDE // 2), "shards": (32, SIDE, SIDE)},
        {"shards": False},
    ),
    "into shards": (
        {"chunks": (1, SIDE // 2, SIDE // 2)},
        {"shards": (32, SIDE, SIDE)},
    ),
}


def make(path: Path, options: dict[str, Any], planes: int) -> None:
    """Make an array of float32 that Blosc makes a little smaller."""
    rng = np.random.default_rng(0)
    shape = (planes, SIDE, SIDE)
    z = zarrdask.create_array(path, shape=shape, dtype="f4", compressors="blosc", **options)
    for at in range(0, planes, 32):
        values = rng.normal(size=(min(32, planes - at), SIDE, SIDE)).astype("f4")
        z[at : at + 32] = values.round(2)


def timed(work: Any, target: Path) -> float:
    """Return how many seconds it takes to make something that is not there yet."""
    shutil.rmtree(target, ignore_errors=True)
    os.sync()
    machine.wait()
    start = perf_counter()
    work()
    return perf_counter() - start


def measure(root: Path, name: str, planes: int, rounds: int) -> None:
    """Measure one case, and print a line of a table."""
    source, model, target = root / "source", root / "model", root / "target"
    options, changes = CASES[name]
    make(source, options, planes)
    report = zarrdask.copy(source, model, **changes)
    for path in filter(Path.is_file, root.rglob("*")):
        path.read_bytes()  # so that it lies in the page cache
    ours, theirs = [], []
    for _ in range(rounds):
        command = ["cp", "-r", str(model), str(target)]
        theirs.append(timed(lambda: subprocess.run(command, check=True), target))  # noqa: B023
        ours.append(timed(lambda: zarrdask.copy(source, target, **changes), target))
    mib, files = report.bytes_written / 2**20, report.objects
    ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
    print(
        f"| {name} | {files} files, {mib:.0f} MiB | {median(theirs):.2f} s | {median(ours):.2f} s |"
        f" {ratio:.0%} |"
    )
    for path in (source, model, target):
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="where to; a temporary directory, if absent")
    parser.add_argument("--planes", type=int, default=PLANES, help="of 4 MiB each")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print("| copy | of | cp -r | zarrdask | speed of cp |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.root) as root:
        for name in CASES:
            measure(Path(root), name, options.planes, options.rounds)


if __name__ == "__main__":
    main()
