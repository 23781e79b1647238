"""The passes of a rewrite, run on a scheduler, and remembered, so that a killed run can go on."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from io import BytesIO
from itertools import pairwise
from typing import Any

import cloudpickle

from zarrdask.chunkio import Chunks
from zarrdask.exchange import Exchange
from zarrdask.graph.exchange import exchange
from zarrdask.graph.progress import Progress
from zarrdask.graph.run import Workers, run
from zarrdask.graph.source import Handle
from zarrdask.journal import Journal
from zarrdask.plan.scheme import Scheme
from zarrdask.rewriting import Moving, Packed, Pass, Source, Stored
from zarrdask.slots import release
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
        if isinstance(obj, Chunks):
            return _chunks, (Handle(obj),)
        return super().reducer_override(obj)


def _chunks(handle: Handle) -> Chunks:
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


def run_passes(todo: Sequence[AnyPass], journal: Journal, on: Workers, told: Progress) -> None:
    """Run passes one after another, but for what the journal says is done."""
    for stage, do in enumerate(todo):
        done = journal.done(stage)
        left = [n for n in range(do.regions.size) if n not in done]
        finished = partial(journal.add, stage)
        try:
            if isinstance(do, Exchange):
                told.advance(sum(map(do.tasks_of, done)))
                exchange(do, Carried(do), left, on, told, finished)
            else:
                told.advance(len(done))
                _run_pass(do, left, on, told, finished)
        finally:
            journal.store()
            _release(on)


def _run_pass(
    do: Pass | Moving,
    left: Sequence[int],
    on: Workers,
    told: Progress,
    finished: Callable[[int], None],
) -> None:
    def count(at: int, _: int) -> None:
        finished(left[at])
        told.advance()

    # A process does no more at a time, but has the next ones at hand.
    on = on._replace(threads=do.at_once)
    run(partial(_do, Carried(do)), left, scheduler=on, finished=count)


def _do(carried: Carried, number: int) -> int:
    found: int = carried.do(number)
    return found


def _release(on: Workers) -> None:
    """Let all processes give back the memory that tasks kept."""
    _clear()
    if on.client is not None:
        on.client.run(_clear)


def _clear() -> None:
    release()
    _unpack.cache_clear()
