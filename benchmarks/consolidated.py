"""Measure how long a group of many arrays takes to open: ``python -m benchmarks.consolidated``.

With consolidated metadata and without, in v2 and v3, on a local disk; zarr-python beside it, if it
is there. The best of several rounds in one process counts: what is measured is work, not the disk.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import zarrdask

#: What is measured, of a group that was opened.
JOBS: dict[str, Callable[[Any], Any]] = {
    "open the group": lambda root: root,
    "and list its names": lambda root: len(sorted(root)),
    "and open all arrays": lambda root: [root[name] for name in root],
}


def make(path: Path, arrays: int, zarr_format: int) -> None:
    """Make a group of arrays as a data set of a climate model might have them."""
    root = zarrdask.create_group(path, zarr_format=zarr_format)
    for n in range(arrays):
        root.create_array(
            f"variable-{n:04}",
            shape=(1200, 180, 360),
            dtype="f4",
            chunks=(12, 90, 90),
            dimension_names=("time", "lat", "lon"),
            attributes={"units": "K", "long_name": f"quantity {n}", "cell_methods": "time: mean"},
        )
    zarrdask.consolidate_metadata(path)


def openers(path: Path) -> dict[str, Callable[[], Any]]:
    """Return the ways to open a group."""
    found: dict[str, Callable[[], Any]] = {
        "zarrdask": partial(zarrdask.open_group, path),
        "zarrdask, bypassed": partial(zarrdask.open_group, path, consolidated=False),
    }
    if find_spec("zarr"):
        import zarr

        warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
        found["zarr-python"] = partial(zarr.open_group, path, mode="r", use_consolidated=True)
    return found


def best(work: Callable[[], Any], rounds: int) -> float:
    """Return the shortest time, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arrays", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(f"{options.arrays} arrays, milliseconds, best of {options.rounds}\n")
    print(f"| format | with | {' | '.join(JOBS)} |")
    print(f"|---|---|{'---|' * len(JOBS)}")
    with tempfile.TemporaryDirectory() as folder:
        for zarr_format in (2, 3):
            path = Path(folder) / f"v{zarr_format}"
            make(path, options.arrays, zarr_format)
            for tool, opener in openers(path).items():
                times = [
                    best(lambda job=job, opener=opener: job(opener()), options.rounds)
                    for job in JOBS.values()
                ]
                print(f"| v{zarr_format} | {tool} | {' | '.join(f'{t:.1f}' for t in times)} |")


if __name__ == "__main__":
    main()
