"""The passes of a rewrite, run on a scheduler, and remembered, so that a killed run can go on."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import pairwise
from typing import Any

import cloudpickle

from zarrdask.chunkio import Chunks
from zarrdask.graph.progress import Progress
from zarrdask.graph.run import Workers, run
from zarrdask.graph.source import Handle
from zarrdask.journal import Journal
from zarrdask.plan.scheme import Stage
from zarrdask.rewriting import AnyPass, Moving, Packed, Pass, Source, Stored
from zarrdask.slots import release
from zarrdask.storage.base import Store


class PassTask:
    """A pass as workers get it: made of its pickle once a process, not once a task."""

    def __init__(self, do: AnyPass) -> None:
        self.do = do

    def __call__(self, number: int) -> int:
        """Rewrite one region."""
        return self.do(number)

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
def _unpack(packed: bytes) -> PassTask:
    return PassTask(cloudpickle.loads(packed))


def passes(
    stages: Sequence[Stage], source: Stored, target: Stored, temp: tuple[Store, str]
) -> list[AnyPass]:
    """Return the passes of a scheme.

    Parameters
    ----------
    stages : sequence of Stage
    source, target : Stored
    temp : (Store, str)
        Where a pass leaves what the next one reads: a store, and a prefix.
    """
    first = stages[0]
    if first.moves:
        return [Moving(first.regions, source.chunks, target.chunks, first.moves, first.threads)]
    store, prefix = temp
    between = [
        Packed(store, f"{prefix}{at}/", one.regions, next_.regions)
        for at, (one, next_) in enumerate(pairwise(stages))
    ]
    ends: list[Source] = [source, *between, target]
    dtype = source.chunks.metadata.dtype
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
        told.advance(len(done))

        def finished(number: int, _: int, at: int = stage, left: list[int] = left) -> None:
            journal.add(at, left[number])
            told.advance()

        try:
            # A process does no more at a time, but has the next ones at hand.
            on = on._replace(threads=do.at_once)
            run(PassTask(do), left, scheduler=on, finished=finished)
        finally:
            journal.store()
            _release(on)


def _release(on: Workers) -> None:
    """Let all processes give back the memory that tasks kept."""
    _clear()
    if on.everywhere is not None:
        on.everywhere(_clear)


def _clear() -> None:
    release()
    _unpack.cache_clear()
