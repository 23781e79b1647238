"""Run the benchmarks that others publish, and write the page of their results.

``python -m benchmarks.published`` runs all of them in about 25 minutes.
"""

import argparse
import json
import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zarrdask
from benchmarks import machine
from benchmarks.packages import NEEDS, missing, release
from benchmarks.published import page
from benchmarks.published.jobs import Runner
from benchmarks.published.registry import BENCHMARKS
from benchmarks.timing import HERE

RESULTS = HERE / "benchmarks" / "published" / "results.json"
PAGE = HERE / "docs" / "published-benchmarks.md"
PACKAGES = (*NEEDS.values(), "dask", "distributed", "numpy", "numcodecs", "isal")


def about(tools: list[str], runner: Runner) -> dict[str, Any]:
    """Return what a reader of the results wants to know of the machine and the packages."""
    return {
        "date": datetime.now(UTC).strftime("%d %B %Y").lstrip("0"),
        "machine": machine.about(),
        "versions": {
            "zarrdask": zarrdask.__version__,
            **{name: found for name in PACKAGES if (found := release(name))},
        },
        "missing": {tool: ", ".join(lacks) for tool in tools if (lacks := missing(tool))},
        "trial": runner.tiny,
    }


def main() -> None:
    """Measure, keep the results, and write the page."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument("--only", default=",".join(names), help="parts, separated by commas")
    parser.add_argument("--contestants", help="some of them, separated by commas; default: all")
    parser.add_argument("--repeat", type=int, default=3, help="rounds at most; default: 3")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir(), "zarrdask-bench"))
    parser.add_argument("--results", type=Path, default=RESULTS, help="a JSON file")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the page")
    parser.add_argument("--tiny", action="store_true", help="try the programs with tiny arrays")
    parser.add_argument("--render", action="store_true", help="measure nothing, write the page")
    options = parser.parse_args()
    root = options.data.resolve() / "published"
    root.mkdir(parents=True, exist_ok=True)
    tools = tuple(options.contestants.split(",")) if options.contestants else ()
    runner = Runner(root, options.repeat, tiny=options.tiny, tools=tools)
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    selected = [] if options.render else options.only.split(",")
    if unknown := set(selected) - set(names):
        parser.error(f"unknown parts {sorted(unknown)}; there are {', '.join(names)}")
    start = time.monotonic()
    try:
        for benchmark in BENCHMARKS:
            if benchmark.name not in selected:
                continue
            facts = about(getattr(benchmark, "tools", []), runner)
            print(f"{benchmark.name}, at {time.monotonic() - start:.0f} s", flush=True)
            for tool, lacks in facts["missing"].items():
                print(f"  {tool}: not installed ({lacks})")
            results[benchmark.name] = {"about": facts, "results": benchmark.measure(runner)}
            options.results.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        shutil.rmtree(root / "written", ignore_errors=True)
    page.write(results, options.page, options.page.parent / "images" / "published")
    print(f"done after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
