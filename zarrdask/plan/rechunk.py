"""How an array is rewritten with other chunks, within a bound of memory. Pure.

A task owns a region: it reads all of it, then writes all of it. In one pass, regions are whole
units of the target, and what they meet of the source is read as often as they meet it. In more
passes, regions of the first are whole pieces of the source, each read once; what they hold is
packed into one object each, cut where the regions of the next pass will want it, so that those
read ranges of it. The cheapest way is taken, by bytes and requests.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.grids import Axis, Shape
from zarrdask.plan.align import auto_block, join
from zarrdask.plan.regions import Choice, Cutting, choice, choices, edges_within, pieces_between
from zarrdask.plan.scheme import PART, Costs, Grids, Scheme, Stage, lengths_of
from zarrdask.render import size as in_words

#: How many combinations of lengths are looked at.
_COMBINATIONS = 100_000
#: What a task costs besides, as bytes that could be moved meanwhile.
_TASK = 2**20
#: Bytes, decoded, that a task moves as they are stored.
_BATCH = 2**26
#: How much of a task is done by one thread: an object of packed pieces is stored in one call.
_SERIAL = {"packed": 0.25, "target": 0.05}
#: Rounds in which the regions of two passes are fitted to each other.
_ROUNDS = 3
#: Lengths between those of two passes that a middle one tries.
_BETWEEN = 9
#: What a thread holds to write a unit, in its size: cut out, before a codec and after it.
_WRITING = 3


def schemes(grids: Grids, costs: Costs) -> list[Scheme]:
    """Return the ways to rewrite an array within the memory of a task, the best first.

    Parameters
    ----------
    grids : Grids
    costs : Costs

    Raises
    ------
    MetadataError
        If there is none: it names the smallest memory for which there is.
    """
    least = _least(grids, costs)
    if costs.memory < least:
        raise MetadataError(
            "too little memory for a task: a unit of the target, and what it takes to read and "
            "write",
            key="max_mem",
            found=in_words(costs.memory),
            expected=f"at least {least} bytes ({in_words(least)}) a process",
        )
    if grids.moves and _moving_once(grids) <= costs.memory:
        return [_moving(grids, costs)]
    found: dict[str, Scheme] = {}
    at_once = 1
    while at_once <= costs.threads and costs.memory // at_once >= least:
        for scheme in _ways(grids, costs._replace(at_once=at_once)):
            other = found.get(scheme.name)
            if other is None or scheme.cost < other.cost:
                found[scheme.name] = scheme
        at_once *= 2
    return sorted(found.values(), key=lambda scheme: scheme.cost)


def _ways(grids: Grids, costs: Costs) -> Iterator[Scheme]:
    reading, writing = _reading(grids, costs), _WRITING * grids.largest("target")
    once = _one_pass(grids, costs, max(reading, writing))
    yield once
    room = costs.room - grids.largest("source") - max(reading, costs.copies * costs.slab)
    if costs.packs and once.moved > 2 * grids.nbytes and room >= 0:
        source, target = _two_passes(grids, costs)
        yield _passes(grids, costs, (source, target))
        yield _passes(grids, costs, (source, _middle(grids, costs, source, target), target))


def _reading(grids: Grids, costs: Costs) -> int:
    """Return what a thread holds to read: a piece as it is stored, and what it decodes."""
    piece = grids.largest("source")
    return piece + costs.copies * max(piece, min(costs.slab, grids.nbytes))


def _least(grids: Grids, costs: Costs) -> int:
    """Return the least memory of a task: for one unit of the target, and to read and write."""
    piece, unit = grids.largest("source"), grids.largest("target")
    least = unit + max((1 + costs.copies) * piece, _WRITING * unit)
    return max(least, -(-(unit + piece) * PART // (PART - costs.copies)))


def as_blocks(grids: Grids, costs: Costs) -> Scheme:
    """Return how blocks of a Dask array are written that have no unit in common."""
    edges = map(edges_within, grids.source, grids.shape)
    units = _count(grids.target, grids.shape)
    block, unit = grids.largest("source"), grids.largest("target")
    stage = Stage(
        Cutting(tuple(edges)),
        "blocks",
        "target",
        units,
        0,
        grids.nbytes,
        block + _WRITING * unit,
        1,
        costs.slab,
        costs.at_once,
    )
    return _scheme("blocks as they are", (stage,), costs)


# --------------------------------------------------------------------------------------------
# Bytes only


def _moving_once(grids: Grids) -> int:
    """Return what a thread holds to move a unit: a shard is in memory in parts, and as a whole."""
    unit = prod(lengths_of(grids.owners)) * grids.itemsize
    return unit if grids.moves == "units" else 2 * unit


def _moving(grids: Grids, costs: Costs) -> Scheme:
    """Return how encoded bytes are moved: some units a task, one a thread in memory."""
    lengths = lengths_of(grids.owners)
    block = auto_block(grids.shape, lengths, lengths, grids.itemsize, _BATCH)
    axes = join(grids.owners, block)
    edges = tuple(edges_within(a, n) for a, n in zip(axes, grids.shape, strict=True))
    units = _count(grids.owners, grids.shape)
    parts = units if grids.moves == "units" else _count(grids.source, grids.shape)
    held = _moving_once(grids)
    threads = max(1, min(costs.share, costs.room // max(held, 1)))
    stage = Stage(
        Cutting(edges),
        "source",
        "target",
        parts + units,
        grids.nbytes,
        grids.nbytes,
        threads * held,
        threads,
        costs.slab,
        moves=grids.moves,
    )
    return _scheme("bytes as they are", (stage,), costs)


def _count(axes: Sequence[Axis], shape: Shape) -> int:
    """Return how many chunks a grid has."""
    return prod(len(edges_within(axis, size)) - 1 for axis, size in zip(axes, shape, strict=True))


# --------------------------------------------------------------------------------------------
# One pass


def _one_pass(grids: Grids, costs: Costs, once: int) -> Scheme:
    threads, room = _share(costs, once)
    axes = _axes(grids.target, grids.shape, grids.source)
    tasks = _outer(axes, "count")
    longest = _outer(axes, "longest") * grids.itemsize
    moved = _outer(axes, "covered") * grids.itemsize + grids.nbytes
    requests = _outer(axes, "met")
    cost = moved + requests * costs.request + tasks * _TASK
    at = _cheapest(cost * _idle(tasks, costs.tasks), longest, room)
    chosen = [axis[i] for axis, i in zip(axes, at, strict=True)]
    regions = Cutting(tuple(c.edges for c in chosen))
    units = _count(grids.target, grids.shape)
    stage = Stage(
        regions,
        "source",
        "target",
        prod(c.met for c in chosen) + units,
        prod(c.covered for c in chosen) * grids.itemsize,
        grids.nbytes,
        prod(regions.longest) * grids.itemsize + threads * once,
        threads,
        costs.slab,
        costs.at_once,
    )
    return _scheme("one pass", (stage,), costs)


def _share(costs: Costs, once: int) -> tuple[int, int]:
    """Return how many threads read and write, and the bytes that are left for a region.

    Parameters
    ----------
    once : int
        What each thread holds.
    """
    threads = max(1, min(costs.share, costs.room // (2 * once) if once else costs.share))
    return threads, costs.room - threads * once


def _axes(units: Sequence[Axis], shape: Shape, pieces: Sequence[Axis]) -> list[list[Choice]]:
    """Return how the units of each axis may be joined to regions."""
    edges = [edges_within(axis, size) for axis, size in zip(pieces, shape, strict=True)]
    several = sum(len(edges_within(a, n)) > 2 for a, n in zip(units, shape, strict=True))
    limit = max(4, int(_COMBINATIONS ** (1 / max(several, 1))))
    return [
        choices(axis, size, met, min(limit, 60))
        for axis, size, met in zip(units, shape, edges, strict=True)
    ]


def _outer(axes: Sequence[Sequence[Choice]], name: str) -> np.ndarray:
    """Return the product of a property, for each combination of choices along the axes."""
    found = np.ones((), float)
    for axis in axes:
        found = np.multiply.outer(found, np.array([getattr(c, name) for c in axis], float))
    return found


def _idle(tasks: np.ndarray, at_once: int) -> np.ndarray:
    """Return by how much longer it takes as some workers have nothing to do at the end."""
    tasks = np.maximum(tasks, 1)
    rounds = np.ceil(tasks / at_once)
    idle: np.ndarray = rounds * at_once / tasks
    return idle


def _cheapest(cost: np.ndarray, memory: np.ndarray, room: int) -> tuple[int, ...]:
    """Return which combination costs the least of those that fit; the smallest if none does."""
    fits = memory <= room
    found = np.where(fits, cost, np.inf) if fits.any() else memory
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(found)), found.shape))


# --------------------------------------------------------------------------------------------
# Several passes


def _two_passes(grids: Grids, costs: Costs) -> tuple[Cutting, Cutting]:
    """Return regions of the source's pieces and of the target's units: few pieces between them."""
    reading = min(_share(costs, _reading(grids, costs))[1], costs.room // costs.copies)
    once = max(_WRITING * grids.largest("target"), costs.copies * costs.slab)
    writing = _share(costs, once)[1]
    sources = _axes(grids.source, grids.shape, grids.target)
    targets = _axes(grids.target, grids.shape, grids.source)
    target = [axis[0] for axis in targets]
    source = [axis[0] for axis in sources]
    for _ in range(_ROUNDS):
        source = _fitted(sources, target, grids.itemsize, reading, costs)
        target = _fitted(targets, source, grids.itemsize, writing, costs)
    return _cutting(source), _cutting(target)


def _cutting(axes: Sequence[Choice]) -> Cutting:
    return Cutting(tuple(c.edges for c in axes))


def _fitted(
    axes: Sequence[Sequence[Choice]],
    others: Sequence[Choice],
    itemsize: int,
    room: int,
    costs: Costs,
) -> list[Choice]:
    """Return the regions that share the fewest pieces with others, of those that fit."""
    pieces = np.ones((), float)
    for axis, other in zip(axes, others, strict=True):
        between = [pieces_between(c.edges, other.edges) for c in axis]
        pieces = np.multiply.outer(pieces, np.array(between, float))
    tasks = _outer(axes, "count")
    cost = (pieces * costs.request + tasks * _TASK) * _idle(tasks, costs.tasks)
    at = _cheapest(cost, _outer(axes, "longest") * itemsize, room)
    return [axis[i] for axis, i in zip(axes, at, strict=True)]


def _middle(grids: Grids, costs: Costs, source: Cutting, target: Cutting) -> Cutting:
    """Return regions between those of two passes, so that pieces are neither tiny nor many."""
    axes, pieces = [], [np.ones((), float), np.ones((), float)]
    for size, one, other in zip(grids.shape, source.edges, target.edges, strict=True):
        low, high = (max(int(np.diff(e).max(initial=1)), 1) for e in (one, other))
        lengths = np.unique(np.geomspace(low, high, _BETWEEN).astype(np.int64)).tolist()
        tried = [one, other, *(edges_within(int(n), size) for n in lengths)]
        axes.append([choice(edges, edges) for edges in tried])
        for at, edges in enumerate((one, other)):
            between = np.array([pieces_between(c.edges, edges) for c in axes[-1]], float)
            pieces[at] = np.multiply.outer(pieces[at], between)
    cost = (pieces[0] + pieces[1]) * costs.request + _outer(axes, "count") * _TASK
    room = min(costs.room - costs.copies * costs.slab, costs.room // costs.copies)
    best = _cheapest(cost, _outer(axes, "longest") * grids.itemsize, room)
    return _cutting([axis[i] for axis, i in zip(axes, best, strict=True)])


def _passes(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Scheme:
    name = "two passes" if len(cuttings) == 2 else "three passes"
    return _scheme(name, tuple(_stages(grids, costs, cuttings)), costs)


def _stages(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Iterator[Stage]:
    last = len(cuttings) - 1
    for at, regions in enumerate(cuttings):
        before = cuttings[at - 1] if at else None
        if before is None:
            once = _reading(grids, costs)
            parts = _count(grids.source, grids.shape)
        else:
            piece = prod(
                _longest_piece(a, b) for a, b in zip(before.edges, regions.edges, strict=True)
            )
            once = costs.copies * min(piece * grids.itemsize, costs.slab)
            parts = prod(
                pieces_between(a, b) for a, b in zip(before.edges, regions.edges, strict=True)
            )
        written = regions.size
        if at == last:
            once = max(once, _WRITING * grids.largest("target"))
            written = _count(grids.target, grids.shape)
        held = prod(regions.longest) * grids.itemsize
        threads = max(1, min(costs.share, (costs.room - held) // max(once, 1)))
        yield Stage(
            regions,
            "packed" if at else "source",
            "target" if at == last else "packed",
            parts + written,
            grids.nbytes,
            grids.nbytes,
            max(held + threads * once, held if at == last else held * costs.copies),
            threads,
            costs.slab,
            costs.at_once,
        )


def _longest_piece(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.diff(np.union1d(one, other)).max(initial=0))


def _scheme(name: str, stages: tuple[Stage, ...], costs: Costs) -> Scheme:
    cost = 0.0
    for stage in stages:
        tasks = np.array(stage.tasks, float)
        moved = stage.bytes_read + stage.bytes_written + stage.requests * costs.request
        moved += stage.tasks * _TASK
        cost += moved * float(_idle(tasks, costs.tasks)) * _alone(stage, costs)
    return Scheme(name, stages, cost)


def _alone(stage: Stage, costs: Costs) -> float:
    """Return by how much longer it takes as some of a task is done by one thread."""
    part = _SERIAL[stage.writes]
    return costs.threads * (part + (1 - part) / stage.threads) / stage.at_once
