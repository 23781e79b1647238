"""How an array is rewritten with other chunks, within a bound of memory. Pure.

A task owns a region: it reads all of it, then writes all of it. In one pass, regions are whole
units of the target, and what they meet of the source is read as often as they meet it. In more
passes, regions of the first are whole pieces of the source, each read once; what they hold is
packed into one object each, cut where the regions of the next pass will want it, so that those
read ranges of it. In a cluster, workers may hand these pieces to each other instead. The cheapest
way is taken, by bytes and requests.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from zarrdask.display.words import byte_size as in_words
from zarrdask.errors import MetadataError
from zarrdask.plan.align import auto_block, join
from zarrdask.plan.cost import (
    TASK,
    cheapest,
    cost_of,
    count,
    cutting,
    idle,
    joined,
    outer,
    to_read,
    to_write,
)
from zarrdask.plan.regions import Choice, Cutting, choice, edges_within, pieces_between
from zarrdask.plan.shuffle import exchanges
from zarrdask.plan.strategies import PART, Costs, Grids, Scheme, Stage, lengths_of

#: Bytes, decoded, that a task moves as they are stored.
_BATCH = 2**26
#: Rounds in which the regions of two passes are fitted to each other.
_ROUNDS = 3
#: Lengths between those of two passes that a middle one tries.
_BETWEEN = 9


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
    reading, writing = to_read(grids, costs), to_write(grids)
    once = _one_pass(grids, costs, max(reading, writing))
    yield once
    if not costs.packs or once.moved <= 2 * grids.nbytes:
        return
    if costs.exchanges and costs.processes > 1 and costs.at_once == 1:
        yield from exchanges(grids, costs)
    room = costs.room - grids.largest("source") - max(reading, costs.copies * costs.slab)
    if room >= 0:
        source, target = _two_passes(grids, costs)
        yield _passes(grids, costs, (source, target))
        yield _passes(grids, costs, (source, _middle(grids, costs, source, target), target))


def _least(grids: Grids, costs: Costs) -> int:
    """Return the least memory of a task: for one unit of the target, and to read and write."""
    piece, unit = grids.largest("source"), grids.largest("target")
    least = unit + max((1 + costs.copies) * piece, to_write(grids))
    return max(least, -(-(unit + piece) * PART // (PART - costs.copies)))


def as_blocks(grids: Grids, costs: Costs) -> Scheme:
    """Return how blocks of a Dask array are written that have no unit in common."""
    edges = map(edges_within, grids.source, grids.shape)
    units = count(grids.target, grids.shape)
    stage = Stage(
        Cutting(tuple(edges)),
        "blocks",
        "target",
        units,
        0,
        grids.nbytes,
        grids.largest("source") + to_write(grids),
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
    units = count(grids.owners, grids.shape)
    parts = units if grids.moves == "units" else count(grids.source, grids.shape)
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


# --------------------------------------------------------------------------------------------
# One pass


def _one_pass(grids: Grids, costs: Costs, once: int) -> Scheme:
    threads, room = _share(costs, once)
    axes = joined(grids.target, grids.shape, grids.source)
    tasks = outer(axes, "count")
    longest = outer(axes, "longest") * grids.itemsize
    moved = outer(axes, "covered") * grids.itemsize + grids.nbytes
    requests = outer(axes, "met")
    cost = moved + requests * costs.request + tasks * TASK
    at = cheapest(cost * idle(tasks, costs.tasks), longest, room)
    chosen = [axis[i] for axis, i in zip(axes, at, strict=True)]
    regions = Cutting(tuple(c.edges for c in chosen))
    units = count(grids.target, grids.shape)
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


# --------------------------------------------------------------------------------------------
# Several passes


def _two_passes(grids: Grids, costs: Costs) -> tuple[Cutting, Cutting]:
    """Return regions of the source's pieces and of the target's units: few pieces between them."""
    reading = min(_share(costs, to_read(grids, costs))[1], costs.room // costs.copies)
    once = max(to_write(grids), costs.copies * costs.slab)
    writing = _share(costs, once)[1]
    sources = joined(grids.source, grids.shape, grids.target)
    targets = joined(grids.target, grids.shape, grids.source)
    target = [axis[0] for axis in targets]
    source = [axis[0] for axis in sources]
    for _ in range(_ROUNDS):
        source = _fitted(sources, target, grids.itemsize, reading, costs)
        target = _fitted(targets, source, grids.itemsize, writing, costs)
    return cutting(source), cutting(target)


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
    tasks = outer(axes, "count")
    cost = (pieces * costs.request + tasks * TASK) * idle(tasks, costs.tasks)
    at = cheapest(cost, outer(axes, "longest") * itemsize, room)
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
    cost = (pieces[0] + pieces[1]) * costs.request + outer(axes, "count") * TASK
    room = min(costs.room - costs.copies * costs.slab, costs.room // costs.copies)
    best = cheapest(cost, outer(axes, "longest") * grids.itemsize, room)
    return cutting([axis[i] for axis, i in zip(axes, best, strict=True)])


def _passes(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Scheme:
    name = "two passes" if len(cuttings) == 2 else "three passes"
    return _scheme(name, tuple(_stages(grids, costs, cuttings)), costs)


def _stages(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Iterator[Stage]:
    last = len(cuttings) - 1
    for at, regions in enumerate(cuttings):
        before = cuttings[at - 1] if at else None
        if before is None:
            once = to_read(grids, costs)
            parts = count(grids.source, grids.shape)
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
            once = max(once, to_write(grids))
            written = count(grids.target, grids.shape)
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
    return Scheme(name, stages, sum(cost_of(stage, costs) for stage in stages))
