"""Run the passes of a plan on a scheduler, and record what is done, so that a run can resume."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import cloudpickle

from zarrdask.execution.counter import Counter, Reporter, Tasks, reports
from zarrdask.execution.executor import Workers, run
from zarrdask.hierarchy.journal import Journal
from zarrdask.indexing.selection import region_shape
from zarrdask.plan.strategies import Scheme
from zarrdask.rewrite.cluster import run_exchange
from zarrdask.rewrite.exchange import Exchange
from zarrdask.rewrite.passes import (
    PackedRegions,
    Pass,
    RegionReader,
    StoredRegion,
    TransferPass,
)
from zarrdask.runtime.progress import Progress
from zarrdask.runtime.workspace import release
from zarrdask.storage.base import Store

AnyPass = Pass | TransferPass | Exchange


class SharedPass:
    """A pass as it is sent to workers: unpickled once per process, not once per task."""

    def __init__(self, work: Any) -> None:
        self.work = work

    @cached_property
    def _pickled(self) -> bytes:
        return cloudpickle.dumps(self.work, 5)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._pickled,)


@lru_cache(maxsize=4)
def _unpickle(data: bytes) -> SharedPass:
    return SharedPass(cloudpickle.loads(data))


def build_passes(
    scheme: Scheme,
    source: StoredRegion,
    target: StoredRegion,
    temp: tuple[Store, str],
    processes: int,
) -> list[AnyPass]:
    """Return the passes that a strategy consists of."""
    stages, first, dtype = scheme.stages, scheme.stages[0], source.chunks.metadata.dtype
    if first.moves:
        return [TransferPass(first.regions, source, target, first.moves, first.threads)]
    if scheme.exchange is not None:
        boxes, read, written = scheme.cuttings
        return [
            Exchange(
                boxes, read, written, source, target, dtype, first.threads, first.slab, processes
            )
        ]
    store, prefix = temp
    packed = [
        PackedRegions(store, f"{prefix}{number}/", one.regions, following.regions)
        for number, (one, following) in enumerate(pairwise(stages))
    ]
    readers: list[RegionReader] = [source, *packed]
    writers: list[StoredRegion | PackedRegions] = [*packed, target]
    return [
        Pass(stage.regions, reader, writer, dtype, stage.threads, stage.slab, stage.at_once)
        for stage, reader, writer in zip(stages, readers, writers, strict=True)
    ]


def pass_bytes(work: AnyPass) -> int:
    """Return how many bytes a pass reads and writes."""
    return 2 * work.dtype.itemsize * prod(int(edges[-1] - edges[0]) for edges in work.regions.edges)


def region_bytes(work: AnyPass, number: int) -> int:
    """Return how many bytes a pass reads and writes for one of its regions."""
    return 2 * work.dtype.itemsize * prod(region_shape(work.regions.region(number)))


def run_passes(passes: Sequence[AnyPass], journal: Journal, on: Workers, shown: Progress) -> None:
    """Run passes one after another, without the regions that the journal records as done."""
    for stage, work in enumerate(passes):
        done = journal.done(stage)
        remaining = [number for number in range(work.regions.size) if number not in done]
        finished = partial(journal.add, stage)
        shown.advance(sum(region_bytes(work, number) for number in done))
        try:
            with journal.kept():
                if isinstance(work, Exchange):
                    run_exchange(work, SharedPass(work), remaining, on, shown, finished)
                else:
                    _run_pass(work, remaining, on, shown, finished)
        finally:
            _free_memory(on)


def _run_pass(
    work: Pass | TransferPass,
    numbers: Sequence[int],
    on: Workers,
    shown: Progress,
    finished: Callable[[int], None],
) -> None:
    tasks = Tasks(shown)

    def end(position: int, _: int) -> None:
        number = numbers[position]
        finished(number)
        tasks.end(number, region_bytes(work, number))

    # The executor keeps the next tasks ready; a process still runs only this many at a time.
    on = on._replace(threads=work.at_once)
    with reports(tasks, on) as report:
        run(partial(rechunk_region, SharedPass(work), report), numbers, on=on, finished=end)


def rechunk_region(shared: SharedPass, report: Callable[[], Reporter] | None, number: int) -> int:
    """Rewrite a region. This is the task: dashboards of clusters show its name."""
    count = None if report is None else Counter(number, report())
    stored: int = shared.work(number, count)
    return stored


def _free_memory(on: Workers) -> None:
    """Let all processes free the memory that they keep from task to task."""
    _clear()
    if on.client is not None:
        on.client.run(_clear)


def _clear() -> None:
    release()
    _unpickle.cache_clear()
