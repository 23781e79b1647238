"""The evaluator: compute a fused task, one result after another."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.region import planned_reads
from zarrdask.parallel.execution.dask_private import GraphNode
from zarrdask.parallel.graph.fuse.block_function import Block, BlockFunction, BoundFunction
from zarrdask.parallel.graph.fuse.find import FusedTask
from zarrdask.parallel.graph.fuse.task_reads import Read, keys_of, name_keys, reads_of
from zarrdask.parallel.graph.fuse.task_steps import computed, steps
from zarrdask.parallel.graph.writing.block_writes import BlockTarget
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.turns import in_turns

#: The time in seconds for one block above which threads do not take turns: to compute and write a
#: small block holds the GIL for a part of it.
_SLOW_SECONDS = 400e-6


def run_fused(
    fused: FusedTask, inputs: Mapping[Any, Any], needs: tuple[Any, ...], *results: Any
) -> Any:
    """Compute the result of a fused task, or the list of its results: the task.

    `inputs` are tasks that only its blocks need. `results` are the results of the tasks `needs`,
    among them the functions of blocks.
    """
    evaluation = _Evaluation(fused, inputs, dict(zip(needs, results, strict=True)))
    with planned_reads(evaluation.reads()):
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
        stack.enter_context(planned_reads(evaluation.reads()))
        changes = [stack.enter_context(writer.joining(requests)) for writer in writers]
        stack.enter_context(requests)
        if any(writer.region.costs.overlaps for writer in writers):
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
    receipt = np.array(counts, np.result_type(*(writer.receipt_dtype for writer in writers)))
    receipt[: len(merged)] = merged  # There is a block of each writer.
    return receipt


class _Block:
    """A function that computes a block, instead of a task."""

    __slots__ = ("function", "number")

    dependencies = frozenset[Any]()

    def __init__(self, function: BoundFunction, number: Block) -> None:
        self.function = function
        self.number = number


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
            name: BoundFunction(function, results, inputs)
            for name, function in self._functions.items()
        }
        blocks = {key: _Block(self._bound[key[0]], key[1:]) for key in fused.blocks}
        #: The tasks of all that is not a block among the roots, by key.
        self._tasks: dict[Any, Any] = {**fused.tasks, **blocks}
        roots = [root for root in fused.roots if root in self._tasks]
        self._steps = deque(steps(self._tasks, roots))
        self._results = results
        #: The key of what is being computed.
        self._key: Any = None

    def compute(self, root: Any) -> Any:
        """Compute a result."""
        self._key = root
        if root not in self._tasks:
            return self._bound[root[0]](root[1:])
        values = self._values
        while root not in values:
            key, task, finished = self._steps.popleft()
            self._key = key
            is_block = type(task) is _Block
            values[key] = task.function(task.number) if is_block else computed(task, values)
            for each in finished:
                del values[each]
        return values[root]

    def notes(self) -> Iterator[str]:
        """Yield the note of an error: which block was computed, or what was read by a task."""
        key, task = self._key, self._tasks.get(self._key)
        if isinstance(task, GraphNode):
            reads = reads_of(task)
            if reads:
                yield f"raised for {key}, read from {name_keys(keys_of(reads))}"
        elif key is not None:
            yield self._functions[key[0]].note(tuple(key[1:]), self._results)

    def reads(self) -> list[Read]:
        """Return the reads of functions and tasks, in the order in which they are computed."""
        reads = list[Read]()
        for key in self._order():
            task = self._tasks.get(key)
            is_task = isinstance(task, GraphNode)
            reads += reads_of(task) if is_task else self._bound[key[0]].reads(key[1:])
        return reads

    def _order(self) -> list[Any]:
        """Return the keys of blocks and tasks in the order in which they are computed."""
        keys, order, done = iter([key for key, *_ in self._steps]), list[Any](), set[Any]()
        for root in self._fused.roots:
            if root not in self._tasks:
                order.append(root)
                continue
            while root not in done:
                key = next(keys)
                done.add(key)
                order.append(key)
        return order
