"""Chains: the function that computes any block of a symbolic layer, each from its own inputs.

Dask fuses element-wise operations, and all that it maps over blocks, to one symbolic layer. A chain
is what such a layer does, as a value: it computes blocks where it is sent to, so that neither this
process nor a scheduler does anything for a single block.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from dask._task_spec import Task, TaskRef, convert_legacy_task
from dask.blockwise import Blockwise, BlockwiseDep, blockwise_token
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.layers import ArrayBlockwiseDep

from zarrdask.chunks.region import ArrayRegion
from zarrdask.graph.fuse.culling import references_of
from zarrdask.graph.fuse.prefetch import Read, sliced, slicings
from zarrdask.graph.fuse.steps import prepared, resolve
from zarrdask.graph.missing import ReadSlices

#: The number of a block along each axis.
Block = tuple[int, ...]

#: The functions of chains, by their names.
Computed = dict[str, Callable[[Block], Any]]


class Part(NamedTuple):
    """An input of which each block has a part of its own."""

    #: The name of the input in the task of a block.
    key: str
    #: The parts by their numbers; the chain that computes them; or the name of a layer of tasks
    #: that do.
    source: "BlockwiseDep | Chain | str"
    #: For each axis of the source the axis of the blocks; None if the source has a single part
    #: along it.
    axes: tuple[int | None, ...]

    def number(self, block: Block) -> Block:
        """Return the number of the part that a block needs."""
        return tuple(0 if axis is None else block[axis] for axis in self.axes)

    def value(self, block: Block, tasks: Mapping[Any, Any], computed: Computed) -> Any:
        """Return the part that a block needs, or the task, of `tasks`, that computes it.

        `computed` are the functions of chains, by their names.
        """
        number, source = self.number(block), self.source
        if isinstance(source, Chain):
            return computed[source.name](number)
        return tasks[source, *number] if isinstance(source, str) else source[number]


@dataclass(frozen=True)
class Chain:
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
        below = (chain.needs for chain in self.below)
        return frozenset(self.task.dependencies - inputs).union(*references, *below)

    @property
    def below(self) -> list["Chain"]:
        """The chains that compute parts."""
        return [part.source for part in self.parts if isinstance(part.source, Chain)]

    @property
    def sources(self) -> list[ArrayRegion]:
        """The regions of stored arrays that blocks are read from."""
        return self._sources(self.constants)

    def _sources(self, constants: Mapping[str, Any]) -> list[ArrayRegion]:
        parts = (part.source for part in self.parts)
        stored = [each.source for each in parts if isinstance(each, ReadSlices)]
        return [*stored, *(each for each in constants.values() if isinstance(each, ArrayRegion))]

    @property
    def is_far(self) -> bool:
        """Whether blocks are read from a store with latency."""
        return any(source.is_far for source in self.sources)

    @property
    def block_bytes(self) -> int:
        """The bytes of the largest block that is read; 0 if nothing is."""
        itemsize = max((each.dtype.itemsize for each in self.sources), default=0)
        sources = (part.source for part in self.parts)
        lengths = [each.chunks for each in sources if isinstance(each, BlockwiseDep)]
        own = itemsize * max((prod(map(max, each)) for each in lengths), default=1)
        return max(own, *(chain.block_bytes for chain in self.below), 0)

    @property
    def layers(self) -> frozenset[str]:
        """The layers of the tasks that compute parts."""
        return frozenset(part.source for part in self.parts if isinstance(part.source, str))

    def tasks(self, graph: HighLevelGraph, blocks: Iterable[Block]) -> dict[Any, Any]:
        """Return the tasks in `layers`, or their values, that blocks need, by key."""
        found, blocks = dict[Any, Any](), list(blocks)
        for part in self.parts:
            numbers = map(part.number, blocks)
            if isinstance(part.source, Chain):
                found.update(part.source.tasks(graph, numbers))
            elif isinstance(part.source, str):
                layer = graph.layers[part.source]
                for key in ((part.source, *number) for number in numbers):
                    found[key] = convert_legacy_task(key, layer[key], ())
        return found

    def given(
        self,
        results: Mapping[Any, Any],
        tasks: Mapping[Any, Any],
        computed: Computed | None = None,
    ) -> Callable[[Block], Any]:
        """Return the function of a block, given the results in `needs` and the `tasks`.

        `computed` gets the functions of chains below, which keep their results: other chains may
        need them.
        """
        computed = {} if computed is None else computed
        for part in self.parts:
            chain = part.source
            if isinstance(chain, Chain) and chain.name not in computed:
                computed[chain.name] = cache(chain.given(results, tasks, computed))
        compute = prepared(self.task)
        shared = {**results, **{k: resolve(v, results) for k, v in self.constants.items()}}

        def function(block: Block) -> Any:
            values = dict(shared)
            for part in self.parts:
                values[part.key] = resolve(part.value(block, tasks, computed), {})
            return compute(values)

        return function

    def note(self, block: Block) -> str:
        """Return the note of an error that was raised while a block was computed."""
        reads = self._reads(slicings(self.task), self.constants, block)
        keys = [key for source, region in reads for key in source.keys(region)]
        below = [(part.source, part.number(block)) for part in self.parts]
        for chain, number in below if not keys else ():
            if isinstance(chain, Chain):
                return chain.note(number)
        first, *others = dict.fromkeys(keys) or ["nothing"]
        more = f" and {len(others)} others" if others else ""
        return f"raised for block {block} of {self.name}, read from {first}{more}"

    def far_reads(self, results: Mapping[Any, Any]) -> Callable[[Block], Iterable[Read]]:
        """Return the function that tells what a block reads of stores with latency, in its order.

        What chains below read is not told.
        """
        constants = {key: resolve(value, results) for key, value in self.constants.items()}
        if not any(source.is_far for source in self._sources(constants)):
            return lambda _: ()
        pairs = [*slicings(self.task)]
        return lambda block: (r for r in self._reads(pairs, constants, block) if r[0].is_far)

    def _reads(
        self, pairs: Iterable[tuple[Any, Any]], constants: Mapping[str, Any], block: Block
    ) -> Iterator[Read]:
        parts = (part for part in self.parts if isinstance(part.source, BlockwiseDep))
        own = {part.key: part.value(block, {}, {}) for part in parts}
        return sliced(pairs, {**constants, **own})


def far_blocks(blocks: Iterable[tuple[Chain, Block]], results: Mapping[Any, Any]) -> Iterator[Read]:
    """Yield what blocks read of stores with latency, in the order in which they are computed.

    Blocks of chains below are computed once.
    """
    readers, seen, pending = dict[str, Any](), set[Any](), deque(blocks)
    while pending:
        chain, block = pending.popleft()
        if chain.name not in readers:
            readers[chain.name] = chain.far_reads(results)
        yield from readers[chain.name](block)
        for part in chain.parts:
            below, number = part.source, part.number(block)
            if isinstance(below, Chain) and (below.name, number) not in seen:
                seen.add((below.name, number))
                pending.appendleft((below, number))


def find_chain(
    graph: HighLevelGraph, name: str, below: Mapping[str, Chain] = MappingProxyType({})
) -> Chain | None:
    """Return the chain of a layer; None if its blocks are not independent of each other.

    Layers of Blockwise are fused. Parts may be computed by the chains `below`.
    """
    layer = graph.layers[name]
    if not isinstance(layer, Blockwise):
        return None
    constants, parts = dict[str, Any](), list[Part]()
    count = prod(layer.dims[index] for index in layer.output_indices)
    for number, (source, index) in enumerate(layer.indices):
        key = blockwise_token(number)
        if index is None:
            constants[key] = source
            continue
        counts, source = layer.numblocks[source], layer.io_deps.get(source, source)
        if isinstance(source, str) and source in below and prod(counts) == count:
            source = below[source]
        if not set(index) <= set(layer.output_indices):
            return None
        if isinstance(source, str) and prod(counts) == 1:
            constants[key] = TaskRef((source, *(0 for _ in counts)))
        elif _is_independent(graph, source, count) or isinstance(source, Chain):
            axes = map(layer.output_indices.index, index)
            pairs = zip(axes, counts, strict=True)
            parts.append(Part(key, source, tuple(None if n == 1 else axis for axis, n in pairs)))
        else:
            return None
    return Chain(name, layer.task, constants, tuple(parts))


def _is_independent(graph: HighLevelGraph, source: Any, count: int) -> bool:
    """Whether the parts of a source are computed without other tasks, and needed once."""
    if not isinstance(source, str):
        return isinstance(source, ArrayBlockwiseDep) and not source.produces_tasks
    layer = graph.layers.get(source)
    is_root = isinstance(layer, MaterializedLayer) and not graph.dependencies[source]
    if not is_root or len(layer) != count:
        return False
    if sum(source in needs for needs in graph.dependencies.values()) > 1:
        return False
    return not any(references_of(convert_legacy_task(k, v, ())) for k, v in layer.items())
