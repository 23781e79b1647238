"""One measurement: a fresh process that warms up, does a job once and checks the result."""

import json
import operator
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks import data, machine
from benchmarks.rows import ROWS, Layout, Row, Shape

#: What is timed, and whether its result is right.
Job = tuple[Callable[[], Any], Callable[[Any], bool]]

# Of a sum in float32; one chunk that is missing makes more.
PRECISION = 2e-5


def prepare(row: Row, name: str, root: Path, layout: Layout) -> Job:
    """Return the job of a row for a contestant, on an array of a layout."""
    tool = import_module("benchmarks.contestants." + name.replace("+", "_"))
    if row.job == "write":
        return _write(row, tool, root, layout)
    if row.job == "points":
        return _points(row, tool, root, layout)
    store = root / layout.name
    if hasattr(tool, "prepare_read"):
        run = tool.prepare_read(store, layout)
        return run, partial(operator.eq, 4 * prod(layout.shape))
    return partial(_read, row, tool, str(store), layout), partial(_is_right, row, store)


def _read(row: Row, tool: ModuleType, path: str, layout: Layout) -> Any:
    """Read what the row wants; Dask computes it where the contestant is lazy."""
    if row.job == "region" and hasattr(tool, "region"):
        return tool.region(path, np.s_[:10]).compute()
    lazy = hasattr(tool, "lazy") and row.job != "read"
    x = tool.lazy(path, layout, row.chunks) if lazy else tool.eager(path)
    match row.job:
        case "graph":
            return x
        case "read":
            return x[...]
        case "sum":
            return x.sum().compute() if lazy else x[...].sum()
    return x[:10].compute() if lazy else x[:10]


def _is_right(row: Row, store: Path, found: Any) -> bool:
    if row.job == "graph":
        return isinstance(found, da.Array)
    return bool(np.isclose(found.sum(), data.total(store), rtol=PRECISION))


def _points(row: Row, tool: ModuleType, root: Path, layout: Layout) -> Job:
    """Return reads of single elements of an array that is open, in a few of its chunks."""
    corner = tuple(min(n, 128) for n in layout.shape)
    at = np.random.default_rng(1).integers(0, corner, (row.count, len(corner)))
    places = list(map(tuple, at.tolist()))
    z = tool.eager(str(root / layout.name))
    expected = data.values(root, layout.shape)[tuple(at.T)].tolist()
    return lambda: [float(z[place]) for place in places], partial(operator.eq, expected)


def _write(row: Row, tool: ModuleType, root: Path, layout: Layout) -> Job:
    """Return a write to a fresh directory, of what lies in memory as the contestant likes it."""
    given = data.values(root, layout.shape)
    (root / "written").mkdir(exist_ok=True)
    store = Path(tempfile.mkdtemp(dir=root / "written"), "array")
    if hasattr(tool, "prepare_write"):
        run = tool.prepare_write(given, store, layout)
    else:
        x = blocks(given, row.chunks) if hasattr(tool, "lazy") else np.array(given)
        run = partial(tool.save, x, str(store), layout)

    def is_right(_: Any) -> bool:
        # By other software than ours.
        from benchmarks.contestants.tensorstore import TensorStore

        found = TensorStore(str(store))[...]
        # The runner deletes files when all is done: ext4 makes new ones slowly for half a minute
        # after it has deleted others.
        for file in filter(Path.is_file, store.rglob("*")):
            os.truncate(file, 0)
        return np.array_equal(found, given)

    # What others wrote shall not be flushed on this one's time.
    os.sync()
    return run, is_right


def blocks(a: np.ndarray, shape: Shape) -> da.Array:
    """Return a Dask array of contiguous blocks in memory, as if they had just been computed."""
    counts = [-(-n // length) for n, length in zip(a.shape, shape, strict=True)]
    graph = {
        ("blocks", *index): np.array(
            a[tuple(slice(i * n, i * n + n) for i, n in zip(index, shape, strict=True))]
        )
        for index in np.ndindex(*counts)
    }
    return da.Array(graph, "blocks", da.core.normalize_chunks(shape, a.shape), dtype=a.dtype)


def measure(row: Row, name: str, root: Path, planes: int) -> dict[str, float]:
    """Do a row's job on a tiny array, then on the array."""
    run, is_right = prepare(row, name, root, row.layout.tiny())
    if not is_right(run()):
        raise RuntimeError(f"row {row.name}, {name}: wrong result of the tiny job")
    run, is_right = prepare(row, name, root, row.layout.sized(planes))
    machine.touch(2 * 4 * prod(row.layout.sized(planes).shape))
    before, start = (machine.busy(), time.process_time()), time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    cpu = time.process_time() - before[1]
    others = (machine.busy() - before[0] - cpu) / (seconds * machine.CORES)
    # Of the job and what it is given, not of the check. In kibibytes, but on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if not is_right(found):
        raise RuntimeError(f"row {row.name}, {name}: wrong result")
    peak *= 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds / row.count, "peak_rss": peak, "cpu": cpu, "others": others}


if __name__ == "__main__":
    wanted = next(row for row in ROWS if row.name == sys.argv[1])
    with dask.config.set(scheduler="threads", num_workers=2):
        print(json.dumps(measure(wanted, sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
