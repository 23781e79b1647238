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

    def values(self, tasks: Mapping[Any, Any]) -> Callable[[Block], Any]:
        """Return the function of a block that returns its part, or the task, one of `tasks`."""
        source = self.source
        if isinstance(source, ArraySliceDep):
            return _slices(source, self.axes)
        if isinstance(source, str):
            return lambda block: tasks[source, *self.number(block)]
        return lambda block: source[self.number(block)]


def _slices(
    source: ArraySliceDep, axes: tuple[int | None, ...]
) -> Callable[[Block], tuple[slice, ...]]:
    """Return the function of a block that returns its slices: one object for each along an axis."""
    # The method of the source takes longer, for each of many small blocks.
    along = [(*pair, dict[int, slice]()) for pair in zip(axes, source.starts, strict=True)]

    def slices(block: Block) -> tuple[slice, ...]:
        picks = []
        for axis, starts, known in along:
            at = 0 if axis is None else block[axis]
            if at not in known:
                known[at] = slice(starts[at], starts[at + 1])
            picks.append(known[at])
        return tuple(picks)

    return slices


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
        return self.sources_among(self.constants)

    def sources_among(self, constants: Mapping[str, Any]) -> list[ArrayRegion]:
        """Return the `sources`, given the values of the constants."""
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

    def note(self, block: Block, results: Mapping[Any, Any]) -> str:
        """Return the note of an error that was raised while a block was computed."""
        keys = keys_of(BoundFunction(self, results, {}).reads(block))
        return f"raised for block {block} of {self.name}, read from {name_keys(keys)}"


class BoundFunction:
    """A function with what all blocks of a fused task share, which computes these blocks.

    `results` are those in `needs`, and `tasks` those that compute parts, by their keys.
    """

    def __init__(
        self, function: BlockFunction, results: Mapping[Any, Any], tasks: Mapping[Any, Any]
    ) -> None:
        constants = {k: resolve(v, results) for k, v in function.constants.items()}
        self._shared = {**results, **constants}
        self._compute = prepared(function.task)
        parts = [(part, part.key, part.values(tasks)) for part in function.parts]
        self._parts = [(key, of) for _, key, of in parts]
        #: The parts that are not computed by tasks.
        self._known = [
            (key, of) for part, key, of in parts if isinstance(part.source, BlockwiseDep)
        ]
        #: These parts of the blocks whose reads are planned.
        self._planned = dict[Block, dict[str, Any]]()
        reads = bool(function.sources_among(constants))
        self._slicings = [*slicings(function.task)] if reads else []

    def reads(self, block: Block) -> list[Read]:
        """Return the reads of a block, in order."""
        if not self._slicings:
            return []
        own = self._planned[block] = {key: of(block) for key, of in self._known}
        return sliced(self._slicings, {**self._shared, **own})

    def __call__(self, block: Block) -> Any:
        """Compute a block."""
        planned, values = self._planned.pop(block, {}), dict(self._shared)
        for key, of in self._parts:
            value = planned[key] if key in planned else of(block)
            values[key] = value if type(value) is tuple else resolve(value, {})
        return self._compute(values)
