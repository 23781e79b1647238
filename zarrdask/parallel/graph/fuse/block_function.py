"""The function that computes any block of a symbolic layer, each from its own inputs.

Dask fuses element-wise operations, and all that it maps over blocks, to one symbolic layer. The
function of such a layer is sent to where its blocks are computed, so that neither this process nor
a scheduler does anything for a single block.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from dask.blockwise import BlockwiseDep
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.parallel.execution.dask_private import Task, convert_legacy_task
from zarrdask.parallel.graph.fuse.culling import references_of
from zarrdask.parallel.graph.fuse.task_reads import Read, keys_of, name_keys, sliced, slicings
from zarrdask.parallel.graph.fuse.task_steps import prepared, resolve
from zarrdask.parallel.graph.missing_blocks import ReadSlices

#: The number of a block along each axis.
Block = tuple[int, ...]


class Part(NamedTuple):
    """An input that has a part for each block."""

    #: The name of the input in the task of a block.
    key: str
    #: The parts by their numbers, or the name of a layer of tasks that compute them.
    source: BlockwiseDep | str
    #: For each axis of the source the axis of the blocks; None if the source has a single part
    #: along it.
    axes: tuple[int | None, ...]

    def number(self, block: Block) -> Block:
        """Return the number of the part that a block needs."""
        return tuple([0 if axis is None else block[axis] for axis in self.axes])

    def value(self, block: Block, tasks: Mapping[Any, Any]) -> Any:
        """Return the part that a block needs, or the task, of `tasks`, that computes it."""
        number, source = self.number(block), self.source
        if isinstance(source, ArraySliceDep):
            # Its own method takes longer, for each of many small blocks.
            pairs = zip(source.starts, number, strict=True)
            return tuple([slice(starts[at], starts[at + 1]) for starts, at in pairs])
        return tasks[source, *number] if isinstance(source, str) else source[number]


@dataclass(frozen=True)
class BlockFunction:
    """The function that computes any block of a layer."""

    #: The name of the layer.
    name: str
    #: The task of a block, whose inputs have the names of `constants` and `parts`.
    task: Task
    #: The inputs that all blocks share: values, or references to results of other tasks.
    constants: Mapping[str, Any]
    #: The other inputs.
    parts: tuple[Part, ...]

    @property
    def needs(self) -> frozenset[Any]:
        """The keys of other tasks whose results all blocks need."""
        inputs = {*self.constants, *(part.key for part in self.parts)}
        references = map(references_of, self.constants.values())
        return frozenset(self.task.dependencies - inputs).union(*references)

    @property
    def sources(self) -> list[ArrayRegion]:
        """The regions of stored arrays that blocks are read from."""
        return self._sources(self.constants)

    def _sources(self, constants: Mapping[str, Any]) -> list[ArrayRegion]:
        parts = (part.source for part in self.parts)
        stored = [each.source for each in parts if isinstance(each, ReadSlices)]
        return [*stored, *(each for each in constants.values() if isinstance(each, ArrayRegion))]

    @property
    def block_bytes(self) -> int:
        """The bytes of the largest block that is read; 0 if nothing is."""
        itemsize = max((each.dtype.itemsize for each in self.sources), default=0)
        sources = (part.source for part in self.parts)
        lengths = [each.chunks for each in sources if isinstance(each, BlockwiseDep)]
        return itemsize * max((prod(map(max, each)) for each in lengths), default=1)

    @property
    def layers(self) -> frozenset[str]:
        """The layers of the tasks that compute parts."""
        return frozenset(part.source for part in self.parts if isinstance(part.source, str))

    def tasks(self, graph: HighLevelGraph, blocks: Iterable[Block]) -> dict[Any, Any]:
        """Return the tasks in `layers`, or their values, that blocks need, by key."""
        computed, blocks = dict[Any, Any](), list(blocks)
        for part in self.parts:
            if isinstance(part.source, str):
                layer = graph.layers[part.source]
                for key in ((part.source, *part.number(block)) for block in blocks):
                    computed[key] = convert_legacy_task(key, layer[key], ())
        return computed

    def bound(self, results: Mapping[Any, Any], tasks: Mapping[Any, Any]) -> Callable[[Block], Any]:
        """Return the function of a block, given the results in `needs` and the `tasks`."""
        compute = prepared(self.task)
        shared = {**results, **{k: resolve(v, results) for k, v in self.constants.items()}}

        def function(block: Block) -> Any:
            values = dict(shared)
            for part in self.parts:
                value = part.value(block, tasks)
                values[part.key] = value if type(value) is tuple else resolve(value, {})
            return compute(values)

        return function

    def note(self, block: Block, results: Mapping[Any, Any]) -> str:
        """Return the note of an error that was raised while a block was computed."""
        keys = keys_of(self.reads(results)(block))
        return f"raised for block {block} of {self.name}, read from {name_keys(keys)}"

    def reads(self, results: Mapping[Any, Any]) -> Callable[[Block], Iterable[Read]]:
        """Return the function of a block that returns its reads, in order."""
        constants = {k: resolve(v, results) for k, v in self.constants.items()}
        parts = [part for part in self.parts if isinstance(part.source, BlockwiseDep)]
        pairs = [*slicings(self.task)]

        def reads(block: Block) -> Iterable[Read]:
            own = {part.key: part.value(block, {}) for part in parts}
            return sliced(pairs, {**constants, **own})

        return reads if self._sources(constants) else lambda _: ()
