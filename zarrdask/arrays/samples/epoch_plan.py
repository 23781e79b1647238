"""Plans of epochs: the order in which samples are read, and the chunks that are kept. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.arrays.samples.kept_columns import Kept, Uses, keep, uses_of
from zarrdask.arrays.samples.sample_order import Mixing, epoch_order
from zarrdask.arrays.samples.windows import ArrayWindows

Shuffle = bool | Literal["full"] | int

#: How often each byte may be decoded so that samples are shuffled from more chunks.
_MAX_REPEATED = 1.2
#: How many samples are looked at to choose how to shuffle.
_MAX_SEARCHED = 2**17
#: How many lengths of runs are tried that do not decode more often than that.
_TRIED_RUNS = 3


class Layout(NamedTuple):
    """How the samples of an epoch are divided."""

    #: The number of samples in a batch.
    batch: int
    #: The number of batches that are read together, as a step.
    together: int
    rank: int
    world_size: int
    drop_last: bool

    def thinned(self, step: int) -> "Layout":
        """Return the layout of every n-th sample."""
        return self._replace(batch=self.batch // step, drop_last=False)

    def used(self, order: np.ndarray, count: int) -> np.ndarray:
        """Return the samples that are in batches; each rank has as many batches if some are not."""
        if not self.drop_last:
            return order
        return order[: count // self.world_size // self.batch * self.batch]


class SampleTable(NamedTuple):
    """Which columns the samples of an epoch overlap."""

    #: For each sample the number of its cell: the number of a column it begins in.
    cells: np.ndarray
    #: For each sample the numbers of the columns that it overlaps, one row a sample; -1 is none.
    columns: np.ndarray
    #: The size in bytes of each column.
    sizes: np.ndarray

    def thinned(self, step: int) -> "SampleTable":
        """Return the table of every n-th sample."""
        return SampleTable(self.cells[::step], self.columns[::step], self.sizes)


class Columns:
    """The columns of all arrays, numbered consecutively, and the columns of each sample."""

    def __init__(self, arrays: Sequence[ArrayWindows]) -> None:
        self.arrays = arrays
        samples = np.arange(int(np.prod(arrays[0].counts, dtype=np.int64)))
        tables, sizes, start = [], list[np.ndarray](), 0
        #: The number that the columns of each array begin with, and the columns in them.
        self.starts, self.own = list[int](), list[np.ndarray]()
        for windows in arrays:
            table = windows.columns(samples)
            own, inverse = np.unique(table, return_inverse=True)
            skipped = int(len(own) > 0 and own[0] < 0)
            tables.append(np.where(table < 0, -1, inverse.reshape(table.shape) - skipped + start))
            self.starts.append(start)
            self.own.append(own[skipped:])
            sizes.append(windows.column_bytes(own[skipped:]))
            start += len(own) - skipped
        # Cells are cells of the array with the most bytes.
        main = max(range(len(arrays)), key=lambda n: int(sizes[n].sum()))
        cells = np.unique(tables[main][:, 0], return_inverse=True)[1].reshape(-1)
        self.table = SampleTable(cells, np.concatenate(tables, axis=1), np.concatenate(sizes))

    def numbers(self, array: int) -> dict[int, int]:
        """Return the number of each column of an array."""
        return {int(n): at for at, n in enumerate(self.own[array], self.starts[array])}


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The order of the samples of an epoch, and the columns that are kept between its steps."""

    order: np.ndarray
    layout: Layout
    uses: Uses
    kept: Kept

    @property
    def batches(self) -> int:
        """The number of batches."""
        return -(-len(self.order) // self.layout.batch)

    def samples(self, batch: int) -> np.ndarray:
        """Return the samples of a batch."""
        start = batch * self.layout.batch
        return self.order[start : start + self.layout.batch]

    @cached_property
    def _kept_by_step(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns that are kept after their uses, by step; and the first of each step."""
        steps = self.uses.steps[self.kept.is_kept]
        order = np.argsort(steps, kind="stable")
        columns = self.uses.columns[self.kept.is_kept][order]
        return columns, np.searchsorted(steps[order], np.arange(self.steps + 1))

    @property
    def steps(self) -> int:
        """The number of steps."""
        return -(-self.batches // self.layout.together)

    def kept_after(self, step: int) -> set[int]:
        """Return the columns, of those that a step uses, that are kept after it."""
        columns, edges = self._kept_by_step
        return set(columns[edges[step] : edges[step + 1]].tolist())


def plan_epoch(
    table: SampleTable, layout: Layout, mixing: Mixing | None, seed: int, epoch: int, limit: int
) -> EpochPlan:
    """Return the plan of an epoch; `limit` is how many bytes of columns may be kept."""
    order = epoch_order(table.cells, mixing, seed, epoch, layout.rank, layout.world_size)
    order = layout.used(order, len(table.cells))
    steps = np.arange(len(order)) // (layout.batch * layout.together)
    uses = uses_of(table.columns[order], table.sizes, steps)
    return EpochPlan(order, layout, uses, keep(uses, limit))


def choose_mixing(
    table: SampleTable, layout: Layout, shuffle: Shuffle, seed: int, limit: int
) -> Mixing | None:
    """Return how to shuffle: from as many cells as can be kept without decoding them again.

    Where windows overlap several columns, these are decoded up to 1.2 times. Longer runs of cells
    need fewer columns twice.
    """
    cells = int(table.cells.max(initial=0)) + 1
    if shuffle is False:
        return None
    if shuffle == "full":
        return Mixing(1, None)
    if shuffle is not True:
        wanted = shuffle / max(len(table.cells) / cells, 1)
        return Mixing(1, None if wanted >= cells else wanted)
    # All ranks must choose the same.
    layout = layout._replace(rank=0)
    # Ranks share the cells at the ends of their parts.
    shared = 2 * layout.world_size / cells if layout.world_size > 1 else 0
    search = _Search(table, layout, seed, limit)
    if search.repeated(Mixing(1, None)) <= 1 + shared:
        return Mixing(1, None)
    step = min(-(-len(table.cells) // _MAX_SEARCHED), layout.batch)
    thinned = _Search(table.thinned(step), layout.thinned(step), seed, limit)
    levels, mixings, lowest = list(_levels(cells)), list[Mixing](), list[tuple[float, Mixing]]()
    most = 1.0
    for run, most in [(1, 1.0), *((run, _MAX_REPEATED) for run in _runs(cells))]:
        least = Mixing(run, levels[0])
        lowest.append((thinned.repeated(least), least))
        if lowest[-1][0] <= most + shared:
            low, high = 0, len(levels) - 1
            while low < high:
                middle = (low + high + 1) // 2
                if thinned.repeated(Mixing(run, levels[middle])) <= most + shared:
                    low = middle
                else:
                    high = middle - 1
            mixings.append(Mixing(run, levels[low]))
        # Slightly longer runs may allow many more cells.
        if mixings and (most == 1 or len(mixings) == _TRIED_RUNS):
            break
    if not mixings:
        return min(lowest, key=lambda pair: pair[0])[1]
    best = max(mixings, key=lambda mixing: (mixing.cells or 0, -mixing.run))
    # If there are fewer samples, the first and the last one of a cell are nearer to each other.
    at = levels.index(best.cells or 0.0)
    while step > 1 and at and search.repeated(best) > most + shared:
        at -= 1
        best = Mixing(best.run, levels[at])
    return best


class _Search(NamedTuple):
    """The costs of the first epoch, with different ways to shuffle."""

    table: SampleTable
    layout: Layout
    seed: int
    limit: int

    def repeated(self, mixing: Mixing) -> float:
        """Return how often each byte is decoded on average."""
        table, layout = self.table, self.layout
        needed = int(table.sizes[np.unique(table.columns[table.columns >= 0])].sum())
        plan = plan_epoch(table, layout, mixing, self.seed, 0, self.limit)
        return plan.kept.nbytes * layout.world_size / max(needed, 1)


def _runs(cells: int) -> Iterator[int]:
    run = 1
    while run < cells:
        yield run
        run += max(run // 2, 1)
    yield cells


def _levels(cells: int) -> Iterator[float]:
    """Yield numbers of cells to draw from, each larger by about an eighth."""
    yield from (0.0, 0.25, 0.5)
    level = 1
    while level < cells:
        yield float(level)
        level += max(level // 8, 1)


def mean_cells(plan: EpochPlan, cells: np.ndarray) -> tuple[float, float]:
    """Return from how many cells a batch is on average; and if all samples were permuted."""
    count, batch = len(plan.order), plan.layout.batch
    if not count:
        return 0.0, 0.0
    numbers = np.arange(count) // batch
    pairs = cells[plan.order] + numbers * (int(cells.max()) + 1)
    sizes = np.bincount(cells[plan.order])
    chances = 1 - (1 - sizes / count) ** min(batch, count)
    return len(np.unique(pairs)) / plan.batches, float(chances.sum())
