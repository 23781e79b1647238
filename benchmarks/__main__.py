"""Measure zarrdask and others, and print a table of ratios: ``python -m benchmarks``."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from string import ascii_lowercase
from typing import Any

from benchmarks import machine
from benchmarks.packages import missing, release
from benchmarks.rows import ROWS, Row
from benchmarks.timing import rounds

HERE = Path(__file__).resolve().parents[1]
TOOLS = (
    "zarrdask",
    "dask+zarr",
    "dask+zarr+fused",
    "dask+zarr+zarrs",
    "dask+zarr+zarrdask",
    "dask+verbs",
    "dask+tensorstore",
    "dask+p2p",
    "cubed",
    "tensorstore",
    "zarr+zarrs",
    "zarr+zarrdask",
    "zarr",
    "zarr+fused",
    "zarr+obstore",
    "limit",
    "limit+sum",
)
PACKAGES = (
    "zarrdask",
    "zarr",
    "zarrs",
    "obstore",
    "tensorstore",
    "dask",
    "cubed",
    "numpy",
    "numcodecs",
    "isal",
)
#: Row -> contestant -> what the worker tells, once a round.
Results = dict[str, dict[str, list[dict[str, float]]]]


def run(module: str, *arguments: Any) -> str:
    """Run a module in a process of its own and return what it prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def measure(
    row: Row, tools: list[str], options: argparse.Namespace, seconds: float
) -> dict[str, list[Any]]:
    """Measure a row, the contestants in turn, in rounds that end in time."""
    for file in filter(Path.is_file, (options.root / row.layout.name).rglob("*")):
        file.read_bytes()  # so that it lies in the page cache
    found: dict[str, list[Any]] = {tool: [] for tool in tools}
    for _ in rounds(options.repeat, seconds):
        for tool in tools:
            machine.wait()
            try:
                result = json.loads(run("worker", row.name, tool, options.root, options.planes))
                found[tool].append(result)
            except subprocess.CalledProcessError:
                print(f"row {row.name}: {tool} failed", file=sys.stderr)
    return found


# ---- the table


def seconds(results: Results, row: str, tool: str) -> float | None:
    """Return the median of a contestant's times, or None if there are none."""
    found = [result["seconds"] for result in results.get(row, {}).get(tool, ())]
    return median(found) if found else None


def cell(results: Results, row: str, tool: str) -> str:
    """Return a contestant's time and its ratio to zarrdask's."""
    time, ours = seconds(results, row, tool), seconds(results, row, "zarrdask")
    if time is None:
        return ""
    factor, unit = (1, "s") if time >= 1 else (1e3, "ms") if time >= 1e-3 else (1e6, "µs")
    ratio = f" ({time / ours:.2f})" if ours and tool != "zarrdask" else ""
    # Ticks of a clock are too coarse for what is short.
    shares = [one["others"] for one in results[row][tool] if one["seconds"] > 0.1]
    mark = "~" if shares and median(shares) > machine.TOLERATED else ""
    return f"{mark}{time * factor:.3g} {unit}{ratio}{memory(results, row, tool)}"


def memory(results: Results, row: str, tool: str) -> str:
    """Return what a write took of memory at most, above what was there when it began."""
    if not next(each.writes for each in ROWS if each.name == row):
        return ""
    return f", {mebibytes(results, row, tool):.0f} MiB"


def mebibytes(results: Results, row: str, tool: str) -> float:
    """Return the median of what a contestant took of memory."""
    return median(one["memory"] for one in results[row][tool]) / 2**20


def verdict(results: Results, row: Row, other: str, most: float) -> str:
    """Return whether a bar is met, and what was reached."""
    ours = seconds(results, row.name, "zarrdask")
    name, tool = (other[4:], "zarrdask") if other.startswith("row ") else (row.name, other)
    time = 1 if other in ("second", "MiB") else seconds(results, name, tool)
    if ours is not None and other == "MiB":
        ours = mebibytes(results, row.name, "zarrdask")
    if ours is None or time is None:
        return f"{other}: not measured"
    reached = f"{ours / time:.3g} {'<=' if ours <= most * time else '> (missed)'} {most:.3g}"
    return f"{other}: {reached}"


def line(results: Results, row: Row, tools: list[str]) -> str:
    """Return a row of the table: Markdown."""
    bars = "; ".join(verdict(results, row, *bar) for bar in row.bars.items())
    return " | ".join((row.name, row.title, *(cell(results, row.name, t) for t in tools), bars))


def main() -> None:
    """Make the data, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", help="such as 1,4b,8 (with 8: all of its parts); default: all")
    parser.add_argument("--only", help=f"contestants, of {','.join(TOOLS)}; default: all")
    parser.add_argument("--planes", type=int, default=256, help="of 4 MiB each; default: 256")
    parser.add_argument("--repeat", type=int, default=3, help="rounds at most; default: 3")
    parser.add_argument("--minutes", type=float, default=27, help="for all rows; default: 27")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir(), "zarrdask-bench"))
    parser.add_argument("--json", type=Path, help="write all results to this file")
    options = parser.parse_args()
    options.root = options.data.resolve() / f"planes-{options.planes}"
    names = options.rows.split(",") if options.rows else [row.name for row in ROWS]
    rows = [row for row in ROWS if row.name in names or row.name.rstrip(ascii_lowercase) in names]
    tools = [tool for tool in TOOLS if not options.only or tool in options.only.split(",")]
    if not release("tensorstore") and any(row.writes for row in rows):
        parser.error("tensorstore, which checks what is written, is not installed")

    end = time.monotonic() + 60 * options.minutes
    for tool in tools:
        if lacks := missing(tool):
            print(f"{tool}: not installed ({', '.join(lacks)})")
    tools = [tool for tool in tools if not missing(tool)]
    print(run("data", options.root, options.planes, *{row.layout.name for row in rows}), end="")
    versions = ", ".join(f"{name} {found}" for name in PACKAGES if (found := release(name)))
    about = {"machine": machine.about(), "versions": versions, "planes": options.planes}
    print(*about.values(), sep="; ", end=f" planes; median of {options.repeat} rounds at most\n\n")
    print(" | ".join(("#", "job", *tools, "bars: zarrdask's time to another's")))
    print("|".join(["---"] * (len(tools) + 3)), flush=True)
    results: Results = {}
    try:
        for number, row in enumerate(rows):
            # What a row leaves of its time is that of the rows after it.
            seconds = (end - time.monotonic()) / (len(rows) - number)
            taking_part = [tool for tool in tools if tool in row.tools]
            results[row.name] = measure(row, taking_part, options, seconds)
            print(line(results, row, tools), flush=True)
    finally:
        shutil.rmtree(options.root / "written", ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps({**about, "rows": results}, indent=1))


if __name__ == "__main__":
    main()
