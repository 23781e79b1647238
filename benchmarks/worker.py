"""One measurement: a fresh process that warms up, does a job once and checks the result."""

import json
import operator
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import cycle
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import dask.array as da
import numpy as np

import zarrdask
from benchmarks import data
from benchmarks.rows import ROWS, Layout, Row
from benchmarks.timing import Job, timed

# Of a sum in float32; one chunk that is missing makes more.
PRECISION = 2e-5


def prepare(row: Row, name: str, root: Path, layout: Layout) -> Job:
    """Return the job of a row for a contestant, on an array of a layout."""
    tool = import_module("benchmarks.contestants." + name.replace("+", "_"))
    if row.writes:
        return _write(row, tool, root, layout)
    if row.job == "points":
        return _points(row, tool, root, layout)
    if row.job == "crops":
        return _crops(row, tool, root, layout)
    store = root / layout.name
    if hasattr(tool, "prepare_sum"):
        return tool.prepare_sum(store, layout), partial(_is_right, row, store)
    if hasattr(tool, "prepare_read"):
        run = tool.prepare_read(store, layout)
        return run, partial(operator.eq, 4 * prod(layout.shape))
    return partial(_read, row, tool, str(store), layout), partial(_is_right, row, store)


def _read(row: Row, tool: ModuleType, path: str, layout: Layout) -> Any:
    """Read what the row wants; Dask computes it where the contestant is lazy."""
    if row.job == "region" and hasattr(tool, "region"):
        return tool.region(path, np.s_[:10]).compute()
    if row.job == "overlap":
        options = {"depth": 4, "boundary": "reflect"}
        return tool.overlap(path, layout, _blurred, row.chunks, **options).sum().compute()
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


def _blurred(block: np.ndarray) -> np.ndarray:
    """Return a block of the same sum, nearly, for which each element needs its neighbours."""
    return (np.roll(block, 1, 0) + np.roll(block, -1, 0)) / 2


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


def _crops(row: Row, tool: ModuleType, root: Path, layout: Layout) -> Job:
    """Return reads of cubes at random places of an array that is open, in batches."""
    last = [max(n - 64, 0) for n in layout.shape]
    starts = np.random.default_rng(2).integers(0, last, (row.count, len(last)), endpoint=True)
    crops = [tuple(slice(n, n + 64) for n in start) for start in starts.tolist()]
    z = tool.eager(str(root / layout.name))
    field = data.values(root, layout.shape)
    read = getattr(tool, "read_many", lambda z, crops: [z[crop] for crop in crops])

    def run() -> list[list[np.ndarray]]:
        return [read(z, crops[at : at + 32]) for at in range(0, len(crops), 32)]

    def is_right(batches: list[list[np.ndarray]]) -> bool:
        found = [crop for batch in batches for crop in batch]
        return all(
            np.array_equal(values, field[crop]) for values, crop in zip(found, crops, strict=True)
        )

    return run, is_right


def _write(row: Row, tool: ModuleType, root: Path, layout: Layout) -> Job:
    """Return a write of what lies in memory as the contestant likes it, in a fresh directory."""
    given = data.values(root, layout.shape)
    (root / "written").mkdir(exist_ok=True)
    store = Path(tempfile.mkdtemp(dir=root / "written"), "array")
    kinds = {
        "write": _create,
        "replace": _replace,
        "append": _append,
        "rechunk": _rechunk,
        "map": _map,
    }
    run, expected = kinds[row.job](row, tool, root, layout, store)

    def is_right(_: Any) -> bool:
        # By other software than ours.
        from benchmarks.contestants.tensorstore import TensorStore

        found = TensorStore(str(store))[...]
        # The runner deletes files when all is done: ext4 makes new ones slowly for half a minute
        # after it has deleted others.
        for file in filter(Path.is_file, store.rglob("*")):
            os.truncate(file, 0)
        return np.array_equal(found, expected(given))

    # What others wrote shall not be flushed on this one's time.
    os.sync()
    return run, is_right


#: What is timed, and what is there then, of the field.
Writing = tuple[Callable[[], Any], Callable[[np.ndarray], np.ndarray]]


def _create(row: Row, tool: ModuleType, root: Path, layout: Layout, store: Path) -> Writing:
    """Return the write of an array."""
    given = data.values(root, layout.shape)
    if hasattr(tool, "prepare_write"):
        return tool.prepare_write(given, store, layout), np.asarray
    x = blocks(given, row.chunks) if hasattr(tool, "lazy") else np.array(given)
    return partial(tool.save, x, str(store), layout), np.asarray


def _replace(row: Row, tool: ModuleType, root: Path, layout: Layout, store: Path) -> Writing:
    """Return the write of a region, with other values, to a copy of the array that was made."""
    shutil.copytree(root / layout.name, store)
    region = tuple(slice(*(int(n * share) for share in row.part)) for n in layout.shape)
    x = blocks(-data.values(root, layout.shape)[region], row.chunks)

    def expected(given: np.ndarray) -> np.ndarray:
        found = np.array(given)
        found[region] *= -1
        return found

    return partial(tool.replace, x, str(store), region), expected


def _append(row: Row, tool: ModuleType, root: Path, layout: Layout, store: Path) -> Writing:
    """Return ten writes at the end of an array, of some planes each: not whole chunks."""
    given = data.values(root, layout.shape)
    step = (len(given) - 1) // 10
    first = len(given) - 10 * step
    z = zarrdask.create_array(
        store, shape=(first, *given.shape[1:]), dtype=given.dtype, **layout.options()
    )
    z[...] = given[:first]
    parts = [blocks(given[at : at + step], row.chunks) for at in range(first, len(given), step)]

    def run() -> None:
        for part in parts:
            tool.append(part, str(store))

    return run, np.asarray


def _rechunk(row: Row, tool: ModuleType, root: Path, layout: Layout, store: Path) -> Writing:
    """Return how an array is rewritten with other chunks."""
    if row.onto is None:
        raise ValueError(f"row {row.name}: onto what?")
    onto = replace(row.onto, shape=layout.shape)
    source = str(root / layout.name)
    return partial(tool.rechunk, source, str(store), layout, onto, row.memory), np.asarray


def _map(row: Row, tool: ModuleType, root: Path, layout: Layout, store: Path) -> Writing:
    """Return the write of a stored array plus one, a block for each chunk."""
    scheduler: Any = "threads"
    if row.cluster:
        from benchmarks.contestants.dask_p2p import client

        scheduler = client()

    def run() -> None:
        with dask.config.set(scheduler=scheduler):
            tool.save(tool.lazy(str(root / layout.name), layout, "stored") + 1, str(store), layout)

    return run, lambda given: given + 1


def blocks(a: np.ndarray, chunks: Any) -> da.Array:
    """Return a Dask array of contiguous blocks in memory, as if they had just been computed.

    `chunks` has a length for each axis, or lengths that come again and again.
    """
    axes = [cycle((axis,) if isinstance(axis, int) else axis) for axis in chunks]
    lengths = tuple(tuple(_cut(n, axis)) for n, axis in zip(a.shape, axes, strict=True))
    ends = [np.cumsum((0, *axis)) for axis in lengths]
    graph = {
        ("blocks", *index): np.array(
            a[tuple(slice(end[i], end[i + 1]) for i, end in zip(index, ends, strict=True))]
        )
        for index in np.ndindex(*map(len, lengths))
    }
    return da.Array(graph, "blocks", lengths, dtype=a.dtype)


def _cut(size: int, lengths: Iterator[int]) -> Iterator[int]:
    while size:
        length = min(next(lengths), size)
        yield length
        size -= length


def measure(row: Row, name: str, root: Path, planes: int) -> dict[str, float]:
    """Do a row's job on a tiny array, then on the array."""
    layout = row.layout.sized(planes)
    found = timed(
        f"row {row.name}, {name}",
        partial(prepare, row, name, root, row.layout.tiny()),
        partial(prepare, row, name, root, layout),
        4 * prod(layout.shape),
    )
    return {**found, "seconds": found["seconds"] / row.count}


if __name__ == "__main__":
    wanted = next(row for row in ROWS if row.name == sys.argv[1])
    with dask.config.set(scheduler="threads", num_workers=2):
        print(json.dumps(measure(wanted, sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
