"""Classic cases of rechunking, and what each tool moves: ``python -m benchmarks.rechunk_cases``.

Prints the table of docs/rechunking.md. Nothing is measured: plans are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from time import perf_counter

import numpy as np

from benchmarks.rechunkers import Copy, Counted, TooLittleMemoryError, Work, count, cubed, rechunker
from benchmarks.rows import Shape
from zarrdask.display.words import byte_size, counted
from zarrdask.formats.grids.axis import Even
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.strategies import Costs, Grids, Scheme
from zarrdask.storage.capabilities import LOCAL_COSTS, REMOTE_COSTS, StoreCosts

MIB, GIB = 2**20, 2**30
THREADS = 2


@dataclass(frozen=True)
class Case:
    """An array, how it is stored, how it is to be stored, and the memory for it."""

    title: str
    shape: Shape
    source: Shape
    target: Shape
    memory: int
    itemsize: int = 4
    # The chunks in shards of the source can be read one by one; others can be read only whole.
    inner: Shape | None = None
    store: StoreCosts = LOCAL_COSTS
    processes: int = 1

    @property
    def work(self) -> Work:
        source = self.inner or self.source
        return Work(self.shape, self.itemsize, source, self.target, self.memory)


ERA5 = (350640, 721, 1440)
CUBE = (256, 1024, 1024)

CASES = (
    Case("time to space", CUBE, (1, 1024, 1024), (256, 64, 64), 256 * MIB),
    Case("space to time", CUBE, (256, 64, 64), (1, 1024, 1024), 256 * MIB),
    Case("time to space, in memory", CUBE, (1, 1024, 1024), (256, 64, 64), 2 * GIB),
    Case("ERA5 to 5 years", ERA5, (31, 721, 1440), (43800, 10, 10), GIB),
    Case("ERA5 to all years", ERA5, (31, 721, 1440), (350640, 10, 10), GIB),
    Case(
        "the same in object storage",
        ERA5,
        (31, 721, 1440),
        (350640, 10, 10),
        GIB,
        store=REMOTE_COSTS,
    ),
    Case("ERA5 back to space", ERA5, (350640, 10, 10), (31, 721, 1440), GIB),
    Case("rows to columns", (50000, 50000), (100, 50000), (50000, 100), 256 * MIB),
    Case("4-D", (50, 500, 1000, 1000), (50, 1, 1000, 1000), (50, 500, 10, 10), GIB),
    Case(
        "4-D, not aligned",
        (100, 60, 720, 1440),
        (7, 11, 100, 100),
        (10, 15, 130, 130),
        256 * MIB,
    ),
    Case("prime lengths", (997, 1009, 1013), (13, 211, 211), (101, 53, 59), 256 * MIB),
    Case("not aligned", (30000, 30000), (1000, 1000), (1500, 700), 256 * MIB, 8),
    Case("small chunks joined", (100_000, 100_000), (100, 100), (2000, 2000), 256 * MIB, 1),
    Case("into shards", (8760, 720, 1440), (24, 720, 1440), (1460, 120, 120), GIB),
    Case(
        "out of shards",
        (8760, 720, 1440),
        (1460, 120, 120),
        (24, 720, 1440),
        GIB,
        inner=(24, 40, 40),
    ),
    Case("tiny budget", (8760, 721, 1440), (1, 721, 1440), (8760, 16, 16), 64 * MIB),
)


YEAR = (8760, 721, 1440)
CLUSTERS = (
    Case("time to space", CUBE, (1, 1024, 1024), (256, 64, 64), 256 * MIB, processes=8),
    Case("time to space", CUBE, (1, 1024, 1024), (256, 64, 64), 256 * MIB, processes=4),
    *(
        Case(title, shape, (24, 721, 1440), target, 2 * GIB, store=REMOTE_COSTS, processes=40)
        for title, shape, target in (
            ("a year of ERA5 in object storage", YEAR, (8760, 10, 10)),
            ("40 years of it, a year a chunk", ERA5, (8760, 10, 10)),
            ("40 years of it, all in a chunk", ERA5, (350640, 10, 10)),
        )
    ),
)


def ours(case: Case) -> Scheme:
    """Return the plan of zarrdask."""
    return plans(case)[0]


def plans(case: Case) -> list[Scheme]:
    """Return the ways that zarrdask may go, the best first."""
    work, store = case.work, case.store
    axes = (tuple(map(Even, work.shape, chunks)) for chunks in (work.source, work.target))
    grids = Grids(work.itemsize, *axes)
    costs = Costs(work.memory, THREADS, case.processes, store.request)
    if case.processes > 1:
        costs = costs._replace(copies=store.copies, exchanges=True, network=store.network)
    return schemes(grids, costs)


def again(work: Work, plan: Scheme) -> int:
    """Return how often a plan reads a chunk of the source, at most."""
    found = 1
    for regions, length, n in zip(
        plan.stages[0].regions.edges, work.source, work.shape, strict=True
    ):
        chunks = Even(n, length).edges
        last = np.searchsorted(regions, chunks[1:], "left")
        found *= int((last - np.searchsorted(regions, chunks[:-1], "right") + 1).max())
    return found


def table(cases: Sequence[Case] = CASES) -> str:
    """Return the table: Markdown."""
    heads = (
        "case: shape, size",
        "chunks before",
        "chunks after",
        "`max_mem`",
        "zarrdask",
        "rechunker",
        "cubed",
    )
    return _markdown(heads, map(_row, cases))


def _markdown(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    both = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in both)


def _row(case: Case) -> Iterator[str]:
    work, plan = case.work, ours(case)
    shards = f" in shards of {_shape(case.source)}" if case.inner else ""
    yield f"{case.title}: {_shape(work.shape)}, {byte_size(work.nbytes)}"
    yield _shape(work.source) + shards
    yield _shape(work.target)
    yield byte_size(work.memory)
    found = Counted(plan.moved, plan.requests, plan.tasks, again(work, plan))
    yield f"{plan.name}: {_facts(work, found)}"
    yield _others(work, rechunker)
    yield _others(work, cubed)


def clusters(cases: Sequence[Case] = CLUSTERS) -> str:
    """Return the table of what workers do that may hand each other values: Markdown."""
    heads = (
        "case: shape, size",
        "chunks before",
        "chunks after",
        "workers",
        "strategy",
        "without an exchange",
    )
    return _markdown(heads, map(_cluster_row, cases))


def _cluster_row(case: Case) -> Iterator[str]:
    found = plans(case)
    yield f"{case.title}: {_shape(case.shape)}, {byte_size(case.work.nbytes)}"
    yield _shape(case.source)
    yield _shape(case.target)
    yield f"{case.processes} of {byte_size(case.memory)}"
    yield _way(case, found[0])
    yield _way(case, found[1]) if found[0].exchange else "-"


def _way(case: Case, plan: Scheme) -> str:
    told = f"{plan.name}: **{plan.moved / case.work.nbytes:.3g} S**"
    if plan.exchange is not None:
        handed = plan.exchange.nbytes / case.work.nbytes
        told += (
            f", and {handed:.3g} S from worker to worker in {_number(plan.exchange.pieces)} pieces"
        )
        return f"{told}, {counted(plan.exchange.boxes.size, 'box')}"
    return f"{told}, {_number(plan.requests)} requests"


def _others(work: Work, plan: Callable[[Work], list[Copy]]) -> str:
    try:
        copies = plan(work)
    except TooLittleMemoryError:
        return "refused: a chunk is too large"
    passes = f"{len(copies)} pass{'es' if len(copies) > 1 else ''}"
    return f"{passes}: {_facts(work, count(work, copies))}"


def _facts(work: Work, found: Counted) -> str:
    more = f", chunks read up to {found.again} times" if found.again > 1 else ""
    return (
        f"**{found.moved / work.nbytes:.3g} S**, {_number(found.requests)} requests, "
        f"{_number(found.tasks)} task{'s' if found.tasks != 1 else ''}{more}"
    )


def _number(number: int) -> str:
    """Return a number with three digits at most that count."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return str(number)


def _shape(lengths: Shape) -> str:
    return " x ".join(map(str, lengths)) if prod(lengths) else "0"


def scaling() -> Iterator[str]:
    """Yield how a plan grows with the array, and the time that it takes to make: Markdown."""
    yield "| array | requests | tasks | planned in |"
    yield "| --- | --- | --- | --- |"
    for days in (11_000, 110_000, 1_100_000):
        shape = (24 * days, *ERA5[1:])
        case = Case("", shape, (31, 721, 1440), (43800, 10, 10), GIB)
        start = perf_counter()
        plan = ours(case)
        time = f"{perf_counter() - start:.2f} s"
        facts = byte_size(case.work.nbytes), _number(plan.requests), _number(plan.tasks), time
        yield f"| {' | '.join(facts)} |"


if __name__ == "__main__":
    print(table(), "", clusters(), "", *scaling(), sep="\n")
