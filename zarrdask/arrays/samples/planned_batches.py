"""`Batches`, the result of `zarrdask.batches`: an iterable with the plan of each epoch."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.samples.batch_reader import BatchReader, sampled_arrays
from zarrdask.arrays.samples.epoch_plan import (
    Columns,
    EpochPlan,
    Layout,
    Shuffle,
    choose_mixing,
    mean_cells,
    plan_epoch,
)
from zarrdask.arrays.samples.windows import window_axes
from zarrdask.display.report import Displayed
from zarrdask.display.words import aligned, byte_size, counted
from zarrdask.errors import SelectionError, UnsupportedError, printable
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import is_integer


def check_numbers(least: int = 1, **numbers: Any) -> None:
    """Check that arguments are integers that are not too small."""
    for key, number in numbers.items():
        if not is_integer(number) or number < least:
            raise SelectionError(
                "invalid number",
                key=key,
                found=number,
                expected=f"an integer from {least}",
            )


class Batches(Displayed):
    """The samples of arrays in batches; `batches` returns it.

    Each iteration is one epoch: the first one has number 0. An unfinished iteration begins again,
    unless its `state_dict` is loaded.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        window: Any,
        stride: Any,
        shuffle: Shuffle,
        memory: int,
        seed: int,
        out: Any,
        layout: Layout,
        *,
        is_single: bool,
    ) -> None:
        self._arrays, self._is_single = arrays, is_single
        self._windows = window_axes({k: a.metadata for k, a in arrays.items()}, window, stride)
        self._shuffle, self._memory, self._seed = shuffle, memory, seed
        self._epoch = self._start = self._next = 0
        self._columns = Columns(list(self._windows.values()))
        self._layout = self._together(layout)
        self._out = self._checked(out)
        mixing = choose_mixing(self._columns.table, self._layout, shuffle, seed, self._limit)
        self._mixing = mixing
        self._planned: tuple[int, EpochPlan] | None = None

    # ---- properties

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next iteration is, from 0; it can be set."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        check_numbers(least=0, epoch=epoch)
        self._epoch, self._start, self._next = int(epoch), 0, 0

    def __len__(self) -> int:
        return self._plan().batches

    @property
    def samples(self) -> int:
        """The number of samples of this rank in an epoch."""
        return len(self._plan().order)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of a full batch of each array, for memory to pass as `out`."""
        size = self._layout.batch
        return {name: (size, *w.sample_shape) for name, w in self._windows.items()}

    @property
    def decodes(self) -> int:
        """How many chunks are decoded in the epoch."""
        plan, columns = self._plan(), self._columns
        decoded = plan.uses.columns[plan.kept.is_decoded]
        return self._chunks(np.bincount(decoded, minlength=len(columns.table.sizes)))

    @property
    def chunks(self) -> int:
        """How many different chunks are needed in the epoch."""
        used = np.zeros(len(self._columns.table.sizes), int)
        used[self._plan().uses.columns] = 1
        return self._chunks(used)

    @property
    def peak(self) -> int:
        """The largest number of bytes of kept chunks and two batches."""
        return self._plan().kept.peak + self._batch_bytes(self._layout)

    def _chunks(self, columns: np.ndarray) -> int:
        """Return the number of chunks in columns, each as often as counted."""
        edges = [*self._columns.starts, len(columns)]
        return sum(
            int(columns[edges[n] : edges[n + 1]].sum()) * windows.column_chunks
            for n, windows in enumerate(self._columns.arrays)
        )

    # ---- plans

    def _batch_bytes(self, layout: Layout) -> int:
        sample = sum(windows.sample_bytes for windows in self._windows.values())
        return 2 * sample * layout.batch * layout.together

    @property
    def _limit(self) -> int:
        """The largest number of bytes of chunks that are kept."""
        return max(self._memory - self._batch_bytes(self._layout), 0)

    def _together(self, layout: Layout) -> Layout:
        """Return how many batches to read together: from remote stores, they share round trips."""
        if not any(chunks_of(array).costs.overlaps for array in self._arrays.values()):
            return layout
        total = max(-(-len(self._columns.table.cells) // layout.batch), 1)
        each = len(self._columns.table.sizes) / total
        ahead = min(int(config.get("requests") / max(each, 1e-9)), total)
        most = self._memory // 2 // max(self._batch_bytes(layout), 1)
        return layout._replace(together=max(min(ahead, most), 1))

    def _plan(self) -> EpochPlan:
        if self._planned is None or self._planned[0] != self._epoch:
            table, epoch = self._columns.table, self._epoch
            plan = plan_epoch(table, self._layout, self._mixing, self._seed, epoch, self._limit)
            self._planned = epoch, plan
        return self._planned[1]

    # ---- iteration

    def __iter__(self) -> Iterator[Any]:
        epoch, plan, start = self._epoch, self._plan(), self._start
        self._start, self._next = 0, start
        names, together = list(self._arrays), self._layout.together
        stored = [chunks_of(array) for array in self._arrays.values()]
        reader = BatchReader(
            sampled_arrays(stored, list(self._windows.values()), self._columns), plan
        )
        with ThreadPoolExecutor(1, "zarrdask-batches") as pool:
            step = start // together
            ahead = pool.submit(reader.read, step) if start < plan.batches else None
            while ahead is not None:
                ready, first = ahead.result(), step * together
                step += 1
                ahead = pool.submit(reader.read, step) if step < plan.steps else None
                ready = ready[max(start - first, 0) :]
                for number, blocks in enumerate(ready, max(start, first)):
                    if number + 1 < plan.batches:
                        self._next = number + 1
                    else:
                        self._epoch, self._next = epoch + 1, 0
                    yield self._delivered(dict(zip(names, blocks, strict=True)))

    def _delivered(self, blocks: dict[str, np.ndarray]) -> Any:
        """Return a batch as the user gets it."""
        for name, block in blocks.items():
            if self._windows[name].is_index:
                blocks[name] = block = block[:, 0]
            if self._out is not None:
                target = self._out[name][: len(block)]
                target[...] = block
                blocks[name] = target
        return blocks[""] if self._is_single else blocks

    def _checked(self, out: Any) -> dict[str, np.ndarray] | None:
        if out is None:
            return None
        if self._is_single:
            out = {"": out}
        if not isinstance(out, Mapping) or not self._arrays.keys() <= out.keys():
            raise SelectionError(
                "each array requires memory of its own",
                key="out",
                found=list(out) if isinstance(out, Mapping) else type(out).__name__,
                expected=f"a mapping with the keys {list(self._arrays)}",
            )
        for name, shape in self.shapes.items():
            memory, dtype = out[name], self._arrays[name].dtype
            fits = isinstance(memory, np.ndarray) and memory.flags.writeable
            if not fits or memory.shape != shape or memory.dtype != dtype:
                raise SelectionError(
                    "this memory does not fit a batch",
                    key=f"out[{name!r}]" if name else "out",
                    found=_described(memory),
                    expected=f"a writable ndarray of shape {shape} and data type {dtype}",
                )
        return {name: out[name] for name in self._arrays}

    # ---- state

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """The values that determine the order of samples."""
        return {
            "seed": self._seed,
            "shuffle": self._shuffle,
            "memory": self._memory,
            "batch": self._layout.batch,
            "rank": self._layout.rank,
            "world_size": self._layout.world_size,
            "drop_last": self._layout.drop_last,
            "samples": len(self._columns.table.cells),
            "cells": int(self._columns.table.cells.max(initial=0)) + 1,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return where the iteration is, as values that JSON can represent.

        The batch that was returned last counts as used.
        """
        return {"epoch": self._epoch, "next": self._next, **self._identity}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration continue where another one was.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, of batches with the same arguments.

        Raises
        ------
        SelectionError
            If the order of the samples is not the same.
        """
        if not isinstance(state, Mapping):
            raise SelectionError(
                "invalid state of batches",
                key="state",
                found=state,
                expected="the result of state_dict",
            )
        for key, value in self._identity.items():
            if key not in state or state[key] != value:
                raise SelectionError(
                    "the state belongs to batches with other arguments",
                    key=key,
                    found=state.get(key),
                    expected=repr(value),
                )
        epoch: Any = state.get("epoch")
        self.epoch = epoch
        following: Any = state.get("next")
        if not is_integer(following) or not 0 <= following <= len(self):
            raise SelectionError(
                "there is no such batch",
                key="next",
                found=following,
                expected=f"0 to {len(self)}",
            )
        self._start = self._next = int(following)

    def __getitem__(self, number: Any) -> Any:
        raise UnsupportedError(
            "batches are read in order; iterate over them, or use zarrdask.read_many to read "
            "samples that you choose",
            found=number,
        )

    # ---- text

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the text: a name and a description each."""
        plan = self._plan()
        for name, windows in self._windows.items():
            text = f"{windows.sample_shape} {windows.metadata.dtype}"
            yield (name or "sample"), f"{text}, chunks {windows.metadata.read_grid.chunk_shape}"
        rank = self._layout
        part = f", rank {rank.rank} of {rank.world_size}" if rank.world_size > 1 else ""
        samples = counted(len(plan.order), "sample")
        yield f"epoch {self._epoch}", f"{samples} in {_batches(plan.batches)} of {rank.batch}{part}"
        decoded, times = byte_size(plan.kept.nbytes), self.decodes / max(self.chunks, 1)
        yield "decoded", f"{counted(self.decodes, 'chunk')} ({times:.2f} times each), {decoded}"
        kept, size = plan.kept.peak, self._batch_bytes(rank)
        parts = f"chunks {byte_size(kept)}, batches {byte_size(size)}"
        yield "memory", f"up to {byte_size(self.peak)} of {byte_size(self._memory)}: {parts}"
        if size > self._memory:
            least = f"a smaller batch, or memory of at least {byte_size(size)}"
            yield "", f"two batches alone exceed it, so that no chunk is kept: pass {least}"
        if self._mixing is None:
            yield "shuffle", "no"
            return
        mean, full = mean_cells(plan, self._columns.table.cells)
        drawn = self._mixing.cells
        source = (
            "all chunks" if drawn is None else f"about {counted(round(drawn), 'chunk')} at a time"
        )
        yield "shuffle", f"samples are drawn from {source}"
        yield "", f"a batch has samples of {mean:.1f} chunks, of {full:.1f} if all were permuted"

    def _text(self) -> str:
        return aligned(self.facts(), line_width=100)

    def __repr__(self) -> str:
        count = counted(self.samples, "sample")
        return printable(f"<zarrdask.Batches {count} in {_batches(len(self))}>")


def _described(memory: Any) -> str:
    if not isinstance(memory, np.ndarray):
        return type(memory).__name__
    kind = "" if memory.flags.writeable else "read-only, "
    return f"{kind}shape {memory.shape}, {memory.dtype}"


def _batches(count: int) -> str:
    return f"{count} batch" if count == 1 else f"{count} batches"
