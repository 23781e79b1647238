"""Jobs of the table in one warm process, the contestants in turns: ``python -m benchmarks.warm``.

Two processes often differ by more than a change of the code gains, for example in where their
memory lies. Here all contestants share one process, and the median of the rounds counts.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import dask

from benchmarks import data, machine
from benchmarks.packages import missing
from benchmarks.rows import ROWS, Row
from benchmarks.worker import prepare


class Times(NamedTuple):
    """What one round of a job took, in seconds."""

    wall: float
    cpu: float


def measure(row: Row, tools: list[str], root: Path, planes: int, rounds: int) -> dict[str, Times]:
    """Return the medians of the times of each contestant; the first round is a warm-up."""
    layout = row.layout.sized(planes)
    found: dict[str, list[Times]] = {tool: [] for tool in tools}
    for number in range(rounds + 1):
        # Each is the first one in every other round.
        for tool in tools if number % 2 else reversed(tools):
            run, is_right = prepare(row, tool, root, layout)
            begun = Times(time.perf_counter(), time.process_time())
            result = run()
            spent = Times(time.perf_counter() - begun.wall, time.process_time() - begun.cpu)
            if not is_right(result):
                raise RuntimeError(f"row {row.name}: wrong result of {tool}")
            if number:
                found[tool].append(spent)
    return {tool: Times(*map(median, zip(*times, strict=True))) for tool, times in found.items()}


def line(row: Row, found: dict[str, Times]) -> str:
    """Return a row of the table: Markdown. Ratios are zarrdask's times to another's."""
    ours = found["zarrdask"]
    cells = [
        f"{tool} {times.wall * 1e3:.0f} ms, CPU {times.cpu * 1e3:.0f} ms"
        + ("" if times is ours else f": {ours.wall / times.wall:.2f}, {ours.cpu / times.cpu:.2f}")
        for tool, times in found.items()
    ]
    return " | ".join((row.name, row.title, *cells))


def main() -> None:
    """Make the data, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm", description=__doc__)
    parser.add_argument("--rows", default="1,2,4a,6,7b", help="default: 1,2,4a,6,7b")
    parser.add_argument(
        "--only", default="zarrdask,limit,limit+sum", help="contestants, zarrdask first"
    )
    parser.add_argument("--planes", type=int, default=256, help="of 4 MiB each; default: 256")
    parser.add_argument("--repeat", type=int, default=9, help="rounds; default: 9")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir(), "zarrdask-bench"))
    options = parser.parse_args()
    root = options.data.resolve() / f"planes-{options.planes}"
    rows = [row for row in ROWS if row.name in options.rows.split(",")]
    data.main(root, options.planes, [row.layout.name for row in rows])
    dask.config.set(scheduler="threads", num_workers=2)
    print(machine.about(), f"median of {options.repeat} rounds", sep="; ")
    try:
        for row in rows:
            tools = [each for each in options.only.split(",") if each in row.tools]
            tools = [each for each in tools if not missing(each)]
            found = measure(row, tools, root, options.planes, options.repeat)
            print(line(row, found), flush=True)
    finally:
        shutil.rmtree(root / "written", ignore_errors=True)


if __name__ == "__main__":
    main()
