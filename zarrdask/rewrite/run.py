"""The passes of a rewrite, run on a scheduler, and remembered, so that a killed run can go on."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from io import BytesIO
from itertools import pairwise
from math import prod
from typing import Any

import cloudpickle

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.counter import Counter, Report, Tasks, reports
from zarrdask.execution.executor import Workers, run
from zarrdask.execution.handle import Handle
from zarrdask.execution.progress import Progress
from zarrdask.hierarchy.journal import Journal
from zarrdask.indexing.selection import region_shape
from zarrdask.plan.strategies import Scheme
from zarrdask.rewrite.cluster import exchange
from zarrdask.rewrite.exchange import Exchange
from zarrdask.rewrite.passes import Moving, Packed, Pass, Source, Stored, ignore
from zarrdask.runtime.workspace import release
from zarrdask.storage.base import Store

AnyPass = Pass | Moving | Exchange


class Carried:
    """A pass as workers get it: made of its pickle once a process, not once a task."""

    def __init__(self, do: Any) -> None:
        self.do = do

    @cached_property
    def _packed(self) -> bytes:
        file = BytesIO()
        _Pickler(file, 5).dump(self.do)
        return file.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (self._packed,)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Packs stored arrays as read and write tasks carry them: without what tasks don't need."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, StoredChunks):
            return _chunks, (Handle(obj),)
        return super().reducer_override(obj)


def _chunks(handle: Handle) -> StoredChunks:
    return handle.chunks


@lru_cache(maxsize=4)
def _unpack(packed: bytes) -> Carried:
    return Carried(cloudpickle.loads(packed))


def passes(
    scheme: Scheme, source: Stored, target: Stored, temp: tuple[Store, str], processes: int
) -> list[AnyPass]:
    """Return the passes of a scheme.

    Parameters
    ----------
    scheme : Scheme
    source, target : Stored
    temp : (Store, str)
        Where a pass leaves what the next one reads: a store, and a prefix.
    processes : int
        How many there are to be.
    """
    stages, first, dtype = scheme.stages, scheme.stages[0], source.chunks.metadata.dtype
    if first.moves:
        return [Moving(first.regions, source.chunks, target.chunks, first.moves, first.threads)]
    if scheme.exchange is not None:
        boxes, read, written = scheme.cuttings
        return [
            Exchange(
                boxes, read, written, source, target, dtype, first.threads, first.slab, processes
            )
        ]
    store, prefix = temp
    between = [
        Packed(store, f"{prefix}{at}/", one.regions, next_.regions)
        for at, (one, next_) in enumerate(pairwise(stages))
    ]
    ends: list[Source] = [source, *between, target]
    return [
        Pass(
            stage.regions,
            ends[at],
            ends[at + 1],
            dtype,
            stage.threads,
            stage.slab,
            stage.at_once,
        )
        for at, stage in enumerate(stages)
    ]


def bytes_of(do: AnyPass) -> int:
    """Return how many bytes a pass reads and writes."""
    return 2 * do.itemsize * prod(int(edges[-1] - edges[0]) for edges in do.regions.edges)


def bytes_of_region(do: AnyPass, number: int) -> int:
    """Return how many bytes a pass reads and writes of one of its regions."""
    return 2 * do.itemsize * prod(region_shape(do.regions.region(number)))


def run_passes(todo: Sequence[AnyPass], journal: Journal, on: Workers, shown: Progress) -> None:
    """Run passes one after another, without the regions that are done according to the journal."""
    for stage, do in enumerate(todo):
        done = journal.done(stage)
        left = [n for n in range(do.regions.size) if n not in done]
        finished = partial(journal.add, stage)
        shown.advance(sum(bytes_of_region(do, number) for number in done))
        try:
            if isinstance(do, Exchange):
                exchange(do, Carried(do), left, on, shown, finished)
            else:
                _run_pass(do, left, on, shown, finished)
        finally:
            journal.store()
            _release(on)


def _run_pass(
    do: Pass | Moving,
    left: Sequence[int],
    on: Workers,
    shown: Progress,
    finished: Callable[[int], None],
) -> None:
    tasks = Tasks(shown)

    def end(at: int, _: int) -> None:
        finished(left[at])
        tasks.end(left[at], bytes_of_region(do, left[at]))

    # A process does no more at a time, but has the next tasks at hand.
    on = on._replace(threads=do.at_once)
    with reports(tasks, on) as report:
        run(partial(rechunk_region, Carried(do), report), left, scheduler=on, finished=end)


def rechunk_region(carried: Carried, report: Callable[[], Report] | None, number: int) -> int:
    """Rewrite a region: the task. Its name is seen on the dashboard of a cluster."""
    count = ignore if report is None else Counter(number, report())
    stored: int = carried.do(number, count)
    return stored


def _release(on: Workers) -> None:
    """Let all processes give back the memory that tasks kept."""
    _clear()
    if on.client is not None:
        on.client.run(_clear)


def _clear() -> None:
    release()
    _unpack.cache_clear()
