"""Cost as work grows: with the number of chunks, of arrays, of processes, and with latency.

Each point is the least of a few fresh processes, as of all benchmarks. Lines should be straight,
or flat; the page says how steep they are.
"""

import atexit
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import zarrdask
from benchmarks import plots
from benchmarks.data import made
from benchmarks.object_server import serving
from benchmarks.plots import Panel
from benchmarks.published.jobs import Outcome, Results, Runner, best
from benchmarks.published.openings import bucket, delay
from benchmarks.published.zarr_benchmarks import make, sized
from benchmarks.timing import Job, outcome

#: Files that are links to one, at most: ext4 has 65,000.
LINKS = 50_000
#: The length of a chunk along both axes.
LENGTH = 4
#: Chunks of a slice, whatever the size of the array.
SLICED = 10


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Jobs of zarrdask whose work grows: a series of points for each."""

    name: str
    title: str
    definition: str
    x_label: str
    sizes: tuple[float, ...]
    #: The label of each job -> the function that returns it, for a size and a folder.
    jobs: dict[str, Callable[[float, Path], Job]]
    #: Job -> the largest size that it is measured with.
    largest: dict[str, float]
    logarithmic: bool = True
    make: Callable[[Path, float], None] | None = None
    remarks: tuple[str, ...] = ()
    budget: float = 40

    def prepare(self, case: str, tool: str, root: Path, *, tiny: bool) -> Job:
        """Return the job of a size; the tiny one is the smallest."""
        return self.jobs[tool](min(self.sizes) if tiny else float(case), root)

    def measure(self, runner: Runner) -> Results:
        """Measure all jobs at all sizes; of tiny ones, at the two smallest."""
        sizes = self.sizes[:2] if runner.tiny else self.sizes
        for size in sizes:
            if self.make is not None:
                self.make(runner.root, size)
        cases = {
            f"{size:.0f}": [job for job in self.jobs if size <= self.largest.get(job, size)]
            for size in sizes
        }

        def one(case: str, tool: str) -> Outcome:
            what = (self.name, case, tool, runner.root)
            return outcome("published.worker", *what, timeout=120)

        return runner.rounds(cases, self.budget, one)

    def description(self) -> str:
        """Return the definition."""
        return "\n\n".join([self.definition, *self.remarks])

    def table(self, results: Results) -> str:
        """Return the times, and how steep the lines are."""
        lines = [
            f"| {self.x_label} | {' | '.join(results)} | growth |",
            "|---|" + "---|" * (len(results) + 1),
        ]
        for job in self.jobs:
            times = (best(tools.get(job, [])) for tools in results.values())
            cells = ("" if time is None else plots.seconds(time) for time in times)
            lines.append(f"| {job} | {' | '.join(cells)} | {self.steepness(results, job)} |")
        return "\n".join(lines)

    def steepness(self, results: Results, job: str) -> str:
        """Return how a job's time grows: its power of the size, or its slope on linear axes."""
        line = points(results, job, "seconds")
        if len(line) < 2:
            return ""
        if self.logarithmic:
            return f"n^{plots.exponents(line)[-1]:.2f} at the end"
        slope, start = np.polyfit(*zip(*line, strict=True), 1)
        return f"{plots.seconds(max(start, 0))} + {slope * 1000:.1f} round trips"

    def picture(self, results: Results) -> str:
        """Return the lines of time, and of memory."""
        panels = [
            Panel(label, self.x_label, self._series(results, key, unit), self.logarithmic)
            for label, key, unit in (("seconds", "seconds", 1), ("memory, MiB", "memory", 2**20))
        ]
        return plots.lines(self.title, panels)

    def _series(self, results: Results, key: str, unit: float) -> dict[str, Any]:
        return {job: [(x, y / unit) for x, y in points(results, job, key)] for job in self.jobs}


def points(results: Results, job: str, key: str) -> list[tuple[float, float]]:
    """Return the least of a figure for each size."""
    least = {
        float(size): [found[key] for found in tools.get(job, []) if key in found]
        for size, tools in results.items()
    }
    return [(size, min(values)) for size, values in least.items() if values]


# ---- the number of chunks


def _chunked(root: Path, count: float) -> Path:
    return root / f"growth-{count:.0f}"


def make_chunks(root: Path, count: float) -> None:
    """Store an array of so many chunks: links to a few files, all of the same values."""
    rows, columns = _grid(count)
    shape, chunks = (rows * LENGTH, columns * LENGTH), (LENGTH, LENGTH)

    def store(path: Path) -> None:
        zarrdask.create_array(path, shape=shape, chunks=chunks, dtype="u1", compressors=[])
        original = path
        for row in range(rows):
            (path / "c" / str(row)).mkdir(parents=True)
            for column in range(columns):
                file = path / "c" / str(row) / str(column)
                if (row * columns + column) % LINKS == 0:
                    file.write_bytes(bytes([1] * LENGTH**2))
                    original = file
                else:
                    os.link(original, file)

    made(_chunked(root, count), store)


def _grid(count: float) -> tuple[int, int]:
    """Return the numbers of chunks along two axes."""
    rows = 10 ** (len(f"{count:.0f}") // 2)
    return rows, round(count) // rows


def open_array(count: float, root: Path) -> Job:
    path = _chunked(root, count)
    return partial(zarrdask.open_array, path), lambda z: z.nchunks == count


def graph(count: float, root: Path) -> Job:
    path = _chunked(root, count)
    return partial(zarrdask.from_zarr, path, chunks="stored"), lambda x: x.npartitions == count


def slice_of(count: float, root: Path) -> Job:
    path = _chunked(root, count)

    def run() -> np.ndarray:
        x = zarrdask.from_zarr(path, chunks="stored")
        return x[:LENGTH, : LENGTH * SLICED].compute(scheduler="threads")  # type: ignore[no-any-return]

    return run, lambda found: found.shape == (LENGTH, LENGTH * SLICED) and bool((found == 1).all())


def listing(count: float, root: Path) -> Job:
    z = zarrdask.open_array(_chunked(root, count))
    return z.nchunks_stored, lambda found: found == count


def total(count: float, root: Path) -> Job:
    path = _chunked(root, count)

    def run() -> int:
        x = zarrdask.from_zarr(path, chunks="stored")
        return int(x.sum(dtype="i8").compute(scheduler="threads"))

    return run, lambda found: found == count * LENGTH**2


# ---- the number of arrays of a group


def _group(root: Path, count: float) -> Path:
    return root / f"growth-group-{count:.0f}"


def make_group(root: Path, count: float) -> None:
    """Create a group of so many arrays, with consolidated metadata."""

    def store(path: Path) -> None:
        group = zarrdask.create_group(path)
        group.create_array("v00000", shape=1000, chunks=100, dtype="f4")
        document = (path / "v00000" / "zarr.json").read_bytes()
        for number in range(1, round(count)):
            folder = path / f"v{number:05}"
            folder.mkdir()
            (folder / "zarr.json").write_bytes(document)
        zarrdask.consolidate_metadata(path)

    made(_group(root, count), store)


def names(count: float, root: Path, **options: Any) -> Job:
    path = _group(root, count)
    return lambda: list(zarrdask.open_group(path, **options)), lambda found: len(found) == count


def arrays(count: float, root: Path, **options: Any) -> Job:
    path = _group(root, count)
    return (
        lambda: dict(zarrdask.open_group(path, **options).arrays()),
        lambda found: len(found) == count,
    )


# ---- the number of processes


def processes(count: float, root: Path) -> Job:
    """Return the sum of the array of "Read all" on a cluster, which is started before."""
    from distributed import Client, LocalCluster

    stack = ExitStack()
    atexit.register(stack.close)
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    cluster = stack.enter_context(LocalCluster(round(count), processes=True, **options))
    client = stack.enter_context(Client(cluster))
    client.run(lambda: __import__("zarrdask.parallel.graph.from_zarr"))
    path = root / sized("shards", tiny=False).name

    def run() -> int:
        return int(zarrdask.from_zarr(path).sum(dtype="i8").compute())

    return run, lambda found: found > 0


def make_shards(root: Path, count: float) -> None:
    """Store the array of "Read all"."""
    make(root, tiny=False)


# ---- latency

FEW, MANY, SIDE = 100, 256, 64


def late(prepare: Callable[[Any], Callable[[], Any]]) -> Callable[[float, Path], Job]:
    """Return a job on a server that answers each request so many milliseconds late."""

    def job(milliseconds: float, root: Path) -> Job:
        stack = ExitStack()
        atexit.register(stack.close)
        url = stack.enter_context(serving())
        run = prepare(bucket(url))
        delay(url, milliseconds / 1000)
        return run, lambda found: found is not None

    return job


def far_array(store: Any) -> Callable[[], Any]:
    _stored(store)
    return partial(zarrdask.open_array, store, "x")


def far_group(store: Any) -> Callable[[], Any]:
    group = zarrdask.create_group(store, "group")
    for number in range(FEW):
        group.create_array(f"v{number}", shape=10, dtype="f4")
    return lambda: dict(zarrdask.open_group(store, "group").arrays())


def far_read(store: Any) -> Callable[[], Any]:
    _stored(store)
    return lambda: zarrdask.open_array(store, "x")[...]


def far_write(store: Any) -> Callable[[], Any]:
    def run() -> bool:
        _stored(store, overwrite=True)
        return True

    return run


def _stored(store: Any, **options: Any) -> None:
    shape, chunks = (MANY * SIDE, SIDE), (SIDE, SIDE)
    z = zarrdask.create_array(store, "x", shape=shape, chunks=chunks, dtype="f4", **options)
    z[...] = 1


JOBS = (
    Growth(
        name="chunks",
        title="More chunks",
        definition="Arrays of 10² to 10⁶ chunks of 16 bytes on a local disk, a block for each"
        f" chunk: an array is opened, Dask's array is made of it, {SLICED} chunks are read, its"
        " stored chunks are listed, and all of them are summed.",
        x_label="chunks",
        sizes=(1e2, 1e3, 1e4, 1e5, 1e6),
        jobs={
            "open": open_array,
            "from_zarr": graph,
            "a slice of 10 chunks": slice_of,
            "nchunks_stored": listing,
            "sum": total,
        },
        largest={"sum": 1e4},
        make=make_chunks,
        remarks=(
            (
                "Opening reads one document, whatever the number of chunks. `from_zarr` and slices"
                " grow with the number of blocks along an axis, which Dask keeps as one number for"
                " each. The sum was measured up to 10⁴ chunks."
            ),
        ),
    ),
    Growth(
        name="arrays",
        title="More arrays in a group",
        definition="Groups of 10 to 10⁴ arrays on a local disk, with consolidated metadata and"
        " without: their names are listed, and all arrays are opened.",
        x_label="arrays",
        sizes=(1e1, 1e2, 1e3, 1e4),
        jobs={
            "names": names,
            "all arrays": arrays,
            "names, not consolidated": partial(names, consolidated=False),
            "all arrays, not consolidated": partial(arrays, consolidated=False),
        },
        largest={},
        make=make_group,
    ),
    Growth(
        name="workers",
        title="More processes",
        definition="The array of “Read all” in shards (256 MiB) is summed on clusters of 1 to 8"
        " processes with one thread each, on one machine. The time can fall only until there are as"
        " many processes as cores.",
        x_label="processes",
        sizes=(1, 2, 4, 8),
        jobs={"sum": processes},
        largest={},
        make=make_shards,
    ),
    Growth(
        name="latency",
        title="More latency",
        definition=f"A server on loopback answers each request 0 to 100 ms late. An array, and a"
        f" group of {FEW} arrays with all of them, are opened; an array of {MANY} chunks of 16 KiB"
        " is opened and read, and is created and written. The slope of a line is the number of"
        " round trips, each of which waits for the one before.",
        x_label="latency, ms",
        sizes=(0, 10, 25, 50, 100),
        jobs={
            "open an array": late(far_array),
            "open a group of 100 arrays": late(far_group),
            "open and read 256 chunks": late(far_read),
            "create and write 256 chunks": late(far_write),
        },
        largest={},
        logarithmic=False,
    ),
)
