"""The evaluator: compute a fused task, one result after another."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.region import reading_ahead
from zarrdask.parallel.execution.dask_private import GraphNode
from zarrdask.parallel.graph.block_writes import BlockTarget
from zarrdask.parallel.graph.fuse.block_function import Block, BlockFunction
from zarrdask.parallel.graph.fuse.find import FusedTask
from zarrdask.parallel.graph.fuse.task_reads import Read, keys_of, name_keys, reads_of
from zarrdask.parallel.graph.fuse.task_steps import ordered, steps
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.remote.in_flight import Requests

#: The time in seconds for one block above which threads do not take turns: to compute and write a
#: small block holds the GIL for a part of it.
_SLOW_SECONDS = 400e-6


def run_fused(
    fused: FusedTask, inputs: Mapping[Any, Any], needs: tuple[Any, ...], *results: Any
) -> Any:
    """Compute the result of a fused task, or the list of its results: the task.

    `inputs` are tasks that only its blocks need. `results` are those of the tasks `needs`, among
    them the functions of blocks.
    """
    evaluation = _Evaluation(fused, inputs, dict(zip(needs, results, strict=True)))
    with reading_ahead(evaluation.remote_reads()):
        try:
            values = [evaluation.compute(root) for root in fused.roots]
        except BaseException as error:
            for note in evaluation.notes():
                error.add_note(note)
            raise
    return values[0] if len(values) == 1 else values


def write_fused(
    targets: Mapping[str, BlockTarget],
    fused: FusedTask,
    inputs: Mapping[Any, Any],
    needs: tuple[Any, ...],
    *results: Any,
) -> np.ndarray:
    """Compute and write blocks, and return the receipt, a number of units for each: a task.

    The arguments are the same as for `run_fused`; `targets` are by the names of the roots' layers.
    Threads take turns, unless a store is remote: its requests are in flight together.
    """
    evaluation = _Evaluation(fused, inputs, dict(zip(needs, results, strict=True)))
    requests, counts = Requests(), list[int]()
    # Numbers of blocks without stored chunks: they hold the fill value only.
    blank = set[Any]()

    def write(root: Any) -> int:
        name, *number = root
        target, block = targets[name], tuple(number)
        repeat = -1 if target.equal_blocks is None else int(target.equal_blocks[block])
        if (name, repeat) in blank:
            return 0
        try:
            count: int = evaluation.compute(root).item()
        except BaseException as error:
            if error is not requests.error:  # which is one of an earlier block
                error.add_note(target.note(block))
            raise
        if repeat >= 0 and not count:
            blank.add((name, repeat))
        return count

    def run(roots: Iterator[Any]) -> int:
        before = len(counts)
        for root in roots:
            counts.append(write(root))
        return len(counts) - before

    name, *block = fused.roots[0]
    nbytes = targets[name].nbytes(tuple(block))
    writers = [targets[name].writer for name in {root[0]: None for root in fused.roots}]
    with ExitStack() as stack:
        stack.enter_context(reading_ahead(evaluation.remote_reads()))
        changes = [stack.enter_context(writer.joining(requests)) for writer in writers]
        stack.enter_context(requests)
        if any(writer.region.is_remote for writer in writers):
            run(iter(fused.roots))
        else:
            in_turns(
                run,
                iter(fused.roots),
                count=len(fused.roots),
                nbytes=nbytes,
                slow=_SLOW_SECONDS,
                pace=writers[0].pace,
            )
    merged = [each for every in changes for each in every]
    if not merged:
        return np.array(counts, np.intp)
    receipt = np.array(counts, object)
    receipt[: len(merged)] = merged  # There is a block of each writer.
    return receipt


class _Block:
    """A function that computes a block, instead of a task."""

    __slots__ = ("function", "number")

    dependencies = frozenset[Any]()

    def __init__(self, function: Callable[[Block], Any], number: Block) -> None:
        self.function = function
        self.number = number

    def __call__(self, values: Mapping[Any, Any]) -> Any:
        return self.function(self.number)


class _Evaluation:
    """The computation of a fused task.

    A block is computed when it is needed, and released when nothing else needs it.
    """

    def __init__(
        self, fused: FusedTask, inputs: Mapping[Any, Any], results: dict[Any, Any]
    ) -> None:
        self._fused, self._values = fused, dict(results)
        values = results.values()
        self._functions = {each.name: each for each in values if isinstance(each, BlockFunction)}
        self._bound = {
            name: function.bound(results, inputs) for name, function in self._functions.items()
        }
        blocks = {key: _Block(self._bound[key[0]], tuple(key[1:])) for key in fused.blocks}
        #: The tasks of all that is not a block among the roots, by key.
        self._tasks: dict[Any, Any] = {**fused.tasks, **blocks}
        self._in_tasks = [root for root in fused.roots if root in self._tasks]
        self._steps = steps(self._tasks, self._in_tasks)
        self._results = results
        #: The key of what is being computed.
        self._key: Any = None

    def compute(self, root: Any) -> Any:
        """Compute a result."""
        self._key = root
        if root not in self._tasks:
            return self._bound[root[0]](tuple(root[1:]))
        while root not in self._values:
            self._key, compute, finished = next(self._steps)
            self._values[self._key] = compute(self._values)
            for each in finished:
                del self._values[each]
        return self._values[root]

    def notes(self) -> Iterator[str]:
        """Yield the note of an error: which block was computed, or what was read by a task."""
        key, task = self._key, self._tasks.get(self._key)
        if isinstance(task, GraphNode):
            reads = reads_of(task)
            if reads:
                yield f"raised for {key}, read from {name_keys(keys_of(reads))}"
        elif key is not None:
            yield self._functions[key[0]].note(tuple(key[1:]))

    def remote_reads(self) -> Iterator[Read]:
        """Yield what is read, in order, by functions and tasks that read from remote stores.

        The first task that reads stands for all of them.
        """
        functions = self._functions.items()
        reads = ((name, each.remote_reads(self._results)) for name, each in functions)
        readers = {name: reader for name, reader in reads if reader is not None}
        every_read = map(reads_of, self._fused.tasks.values())
        first = next(filter(None, every_read), [])
        has_remote_tasks = any(source.is_remote for source, _ in first)
        if not readers and not has_remote_tasks:
            return
        for key in self._order():
            task = self._tasks.get(key)
            if isinstance(task, GraphNode):
                yield from reads_of(task) if has_remote_tasks else ()
            elif key[0] in readers:
                yield from readers[key[0]](tuple(key[1:]))

    def _order(self) -> Iterator[Any]:
        """Yield the keys of blocks and tasks in the order in which they are computed."""
        remaining, done = ordered(self._tasks, self._in_tasks), set[Any]()
        for root in self._fused.roots:
            if root not in self._tasks:
                yield root
                continue
            while root not in done:
                key = next(remaining)
                done.add(key)
                yield key
