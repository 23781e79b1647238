"""The page of results and its plots, from a file of results."""

from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.published.jobs import Benchmark
from benchmarks.published.registry import BENCHMARKS

INTRODUCTION = """\
# Benchmarks of others

These are benchmarks that other projects publish, with zarrdask among their contestants, scaled to
a small machine. Each contestant is used as its authors would use it. All of them are repeated, and
this page and its plots written, in about 25 minutes by

```sh
python -m pip install -e ".[bench]"
python -m benchmarks.published
```

and some by `--only read_all,slabs`. The least time of up to three rounds counts. In brackets is
its ratio to the time of zarrdask in the same group of contestants: zarrdask is slower where it is
below 1. After it is how much the memory of the process grew. Contestants whose names begin with
`dask+` read and write with Dask and two threads; the others return a NumPy array, and use their
own threads. [Our own benchmarks](../benchmarks/README.md) have more rows.
"""
ELSEWHERE = """\
## Chunks of several sizes in S3

"I/O-maxing" of Earthmover
([source](https://github.com/earth-mover/cloud-tensor-storage-benchmarks)) reads 3.2 GB of random
int64 in chunks of 0.8 to 200 MB from S3. The results of `python -m benchmarks.chunk_sizes`, with
400 MB and a server on loopback, are on
[the page about cloud storage](cloud.md#fewer-and-larger-requests).
"""


def write(results: dict[str, Any], page: Path, images: Path) -> None:
    """Write the page, and the plots of all benchmarks that have results."""
    images.mkdir(parents=True, exist_ok=True)
    parts = [INTRODUCTION]
    for benchmark in BENCHMARKS:
        parts += [f"## {benchmark.title}\n", wrapped(benchmark.description()), ""]
        if benchmark.name not in results:
            parts.append(f"{command(benchmark)} measures it; there are no results yet.\n")
            continue
        about, measured = (results[benchmark.name][key] for key in ("about", "results"))
        (images / f"{benchmark.name}.svg").write_text(benchmark.picture(measured))
        picture = f"![{benchmark.title}, drawn](images/published/{benchmark.name}.svg)"
        parts += [picture, "", benchmark.table(measured), "", wrapped(details(benchmark, about))]
        parts.append("")
    page.write_text("\n".join([*parts, ELSEWHERE]))


def command(benchmark: Benchmark) -> str:
    """Return how to repeat a benchmark."""
    return f"`python -m benchmarks.published --only {benchmark.name}`"


def details(benchmark: Benchmark, about: dict[str, Any]) -> str:
    """Return how to repeat a benchmark, and what it ran with."""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    text = [f"{command(benchmark)} repeats it."]
    text.append(f"Measured on {about['date']}: {about['machine']}; {versions}.")
    if about.get("trial"):
        text.append("**These numbers are of a trial with tiny arrays: they mean nothing.**")
    text += [f"{tool} could not run: {lacks} is not installed." for tool, lacks in lacking(about)]
    return " ".join(text)


def lacking(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the contestants that could not run, and the packages that they lacked."""
    return list((about.get("missing") or {}).items())


def wrapped(text: str) -> str:
    """Return paragraphs in lines as long as those of other pages."""
    options = {"width": 108, "break_long_words": False, "break_on_hyphens": False}
    return "\n\n".join(fill(paragraph, **options) for paragraph in text.split("\n\n"))
