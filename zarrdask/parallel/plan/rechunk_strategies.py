"""Strategies to rewrite an array with other chunks, within a limit of memory. Pure.

A task owns a region: it reads all of it, then writes all of it. With a single pass, regions consist
of whole units of the target, and a piece of the source is read once for each region that it
overlaps, or only the part of it that the region needs, if the codecs decode that by itself. With
several passes, the regions of the first consist of whole pieces of the source, which are read once;
each region is packed into one object, cut at the regions of the next pass, which reads ranges of
these objects. In a cluster, workers may exchange the pieces instead. The cheapest strategy is
chosen, by the number of bytes and requests.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from zarrdask.display.words import byte_size as in_words
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.axis import Even
from zarrdask.parallel.plan.align import auto_block
from zarrdask.parallel.plan.owned_regions import (
    Choice,
    Cutting,
    ReadEdges,
    choice,
    pieces_between,
)
from zarrdask.parallel.plan.shuffle import exchanges
from zarrdask.parallel.plan.strategies import (
    PART,
    TASK,
    Costs,
    Grids,
    Reads,
    Scheme,
    Stage,
    Writes,
    cheapest,
    cost_of,
    cutting,
    idle,
    joined,
    lengths_of,
    outer,
    outer_product,
    read_requests,
    to_read,
    to_write,
)

#: The decoded size of the encoded bytes that a task moves.
_BATCH_BYTES = 2**26
#: The number of rounds in which the regions of two passes are fitted to each other.
_FITTING_ROUNDS = 3
#: The number of lengths that are tried for a pass between two others.
_MIDDLE_LENGTHS = 9
#: The attributes of choices that count what is read: pieces, and objects that hold them.
_COUNTED = ("overlapped", "held")


def schemes(grids: Grids, costs: Costs) -> list[Scheme]:
    """Return the strategies to rewrite an array within the available memory, the cheapest first.

    `MetadataError` is raised if the memory is too small for a task.
    """
    least = _least_memory(grids, costs)
    if costs.memory < least:
        raise _too_little(
            costs, least, "a chunk or shard of the target and buffers to read and write it"
        )
    # To copy a unit, a thread holds it; to copy a shard, its parts and the whole.
    held = prod(lengths_of(grids.owners)) * grids.itemsize * (1 if grids.moves == "units" else 2)
    if grids.moves and held <= costs.memory:
        return [_moving(grids, costs, held)]
    cheapest_by_name: dict[str, Scheme] = {}
    at_once = 1
    while at_once <= costs.threads and costs.memory // at_once >= least:
        for scheme in _candidates(grids, costs._replace(at_once=at_once)):
            other = cheapest_by_name.get(scheme.name)
            if other is None or scheme.cost < other.cost:
                cheapest_by_name[scheme.name] = scheme
        at_once *= 2
    return sorted(cheapest_by_name.values(), key=lambda scheme: scheme.cost)


def _candidates(grids: Grids, costs: Costs) -> Iterator[Scheme]:
    reading, writing = to_read(grids, costs), to_write(grids)
    one_pass = _one_pass(grids, costs, max(reading, writing))
    yield one_pass
    if not costs.packs or one_pass.moved <= 2 * grids.nbytes:
        return
    if costs.exchanges and costs.processes > 1 and costs.at_once == 1:
        yield from exchanges(grids, costs)
    room = costs.room - grids.piece_bytes - max(reading, costs.copies * costs.slab)
    if room >= 0:
        source, target = _two_passes(grids, costs)
        yield _passes(grids, costs, (source, target))
        yield _passes(grids, costs, (source, _middle(grids, costs, source, target), target))


def _least_memory(grids: Grids, costs: Costs) -> int:
    """Return the least memory of a task: for one unit of the target, and buffers."""
    piece, unit = grids.piece_bytes, grids.unit_bytes
    least = unit + max((1 + costs.copies) * piece, to_write(grids))
    return max(least, -(-(unit + piece) * PART // (PART - costs.copies)))


def _too_little(costs: Costs, least: int, held: str) -> MetadataError:
    return MetadataError(
        f"there is not enough memory for a task, which holds {held}",
        key="max_mem",
        found=in_words(costs.memory),
        expected=f"at least {least} bytes ({in_words(least)}) per process",
    )


def as_blocks(grids: Grids, costs: Costs) -> Scheme:
    """Return the strategy for a Dask array whose blocks have no unit in common."""
    peak, units = grids.piece_bytes + to_write(grids), grids.units.size
    stage = Stage(grids.pieces, "blocks", "target", units, 0, grids.nbytes, peak, 1, costs)
    return _scheme("blocks as they are", (stage,), costs)


# --------------------------------------------------------------------------------------------
# Units that are read one by one


def packing(grids: Grids, costs: Costs, *, reads_units: bool) -> tuple[Stage, ...]:
    """Return the passes that pack pieces, before each unit of the target is read by itself.

    There is none if it costs less to read each unit from the source, as is possible if
    `reads_units`; then an error is raised if the memory is too small for a task. Otherwise, the
    pieces of the source are in memory anyway. The units are blocks of a Dask array, and not joined.
    """
    units = [choice(axis.edges, read) for axis, read in zip(grids.target, grids.read, strict=True)]
    moved = prod(c.covered for c in units) * grids.itemsize
    direct = moved + _requests(grids, units) * costs.request
    plans = list[tuple[float, tuple[Stage, ...]]]([(direct, ())] if reads_units else [])
    if not costs.packs or (plans and direct <= grids.nbytes + grids.pieces.size * costs.request):
        return ()
    least = -(-(2 + costs.copies) * grids.piece_bytes * PART // (PART - costs.copies))
    if reads_units and costs.memory < least:
        raise _too_little(costs, least, "a chunk of the source and buffers to read it")
    at_once = 1
    while at_once == 1 or (at_once <= costs.threads and costs.memory // at_once >= least):
        some = costs._replace(at_once=at_once)
        reading = to_read(grids, some)
        sources = joined(grids.source, grids.pieces.counts, _whole(grids.units))
        room = min(_share(some, reading)[1], some.room // some.copies)
        source = cutting(_fitted(sources, units, grids.itemsize, room, some))
        target = cutting(units)
        for cuttings in ((source, target), (source, _middle(grids, some, source, target), target)):
            *packed, last = _stages(grids, some, cuttings)
            cost = sum(cost_of(stage, some) for stage in packed)
            plans.append((cost + last.bytes_read + last.requests * costs.request, tuple(packed)))
        at_once *= 2
    return min(plans, key=lambda plan: plan[0])[1]


# --------------------------------------------------------------------------------------------
# Bytes only


def _moving(grids: Grids, costs: Costs, held: int) -> Scheme:
    """Return the strategy that moves encoded bytes: several units per task, one per thread."""
    lengths, nbytes = lengths_of(grids.owners), grids.nbytes
    block = auto_block(grids.shape, lengths, lengths, grids.itemsize, _BATCH_BYTES)
    owners = zip(grids.owners, block, strict=True)
    regions = Cutting.of([axis.join(length) for axis, length in owners])
    units = prod(axis.count for axis in grids.owners)
    parts = units if grids.moves == "units" else grids.pieces.size
    threads = max(1, min(costs.share, costs.room // max(held, 1)))
    peak, moves = threads * held, grids.moves
    stage = Stage(
        regions, "source", "target", parts + units, nbytes, nbytes, peak, threads, costs, moves
    )
    return _scheme("bytes as they are", (stage,), costs)


# --------------------------------------------------------------------------------------------
# One pass


def _one_pass(grids: Grids, costs: Costs, per_thread: int) -> Scheme:
    threads, room = _share(costs, per_thread)
    axes = joined(grids.target, grids.units.counts, grids.read)
    tasks = outer(axes, "count")
    longest = outer(axes, "longest") * grids.itemsize
    moved = outer(axes, "covered") * grids.itemsize + grids.nbytes
    numbers = ([[getattr(c, name) for c in axis] for axis in axes] for name in _COUNTED)
    requests = sum(map(outer_product, read_requests(grids, *numbers)))
    cost = moved + requests * costs.request + tasks * TASK
    chosen = cheapest(axes, cost * idle(tasks, costs.tasks), longest, room)
    regions = cutting(chosen)
    parts = _requests(grids, chosen) + grids.units.size
    read = prod(c.covered for c in chosen) * grids.itemsize
    peak = prod(regions.longest) * grids.itemsize + threads * per_thread
    stage = Stage(regions, "source", "target", parts, read, grids.nbytes, peak, threads, costs)
    return _scheme("one pass", (stage,), costs)


def _requests(grids: Grids, regions: Sequence[Choice]) -> int:
    """Return the number of requests that read what regions overlap of the source."""
    numbers = ([getattr(axis, name) for axis in regions] for name in _COUNTED)
    return sum(map(prod, read_requests(grids, *numbers)))


def _whole(pieces: Cutting) -> list[ReadEdges]:
    """Return the boundaries of pieces along each axis, which are read as a whole."""
    return [ReadEdges.whole(edges) for edges in pieces.edges]


def _share(costs: Costs, per_thread: int) -> tuple[int, int]:
    """Return the number of threads that read and write, and the bytes that remain for a region."""
    affordable = costs.room // (2 * per_thread) if per_thread else costs.share
    threads = max(1, min(costs.share, affordable))
    return threads, costs.room - threads * per_thread


# --------------------------------------------------------------------------------------------
# Several passes


def _two_passes(grids: Grids, costs: Costs) -> tuple[Cutting, Cutting]:
    """Return regions of source pieces and of target units that have few pieces in common."""
    reading = min(_share(costs, to_read(grids, costs))[1], costs.room // costs.copies)
    per_thread = max(to_write(grids), costs.copies * costs.slab)
    writing = _share(costs, per_thread)[1]
    sources = joined(grids.source, grids.pieces.counts, _whole(grids.units))
    targets = joined(grids.target, grids.units.counts, _whole(grids.pieces))
    target = [axis[0] for axis in targets]
    source = [axis[0] for axis in sources]
    for _ in range(_FITTING_ROUNDS):
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
    """Return the regions that have the fewest pieces in common with others, if they fit."""
    pieces = np.ones((), float)
    for axis, other in zip(axes, others, strict=True):
        between = [pieces_between(c.edges, other.edges) for c in axis]
        pieces = np.multiply.outer(pieces, np.array(between, float))
    tasks = outer(axes, "count")
    cost = (pieces * costs.request + tasks * TASK) * idle(tasks, costs.tasks)
    return cheapest(axes, cost, outer(axes, "longest") * itemsize, room)


def _middle(grids: Grids, costs: Costs, source: Cutting, target: Cutting) -> Cutting:
    """Return the regions of a pass between two others, so that pieces are neither tiny nor many."""
    axes, pieces = [], [np.ones((), float), np.ones((), float)]
    for size, one, other in zip(grids.shape, source.edges, target.edges, strict=True):
        low, high = (max(int(np.diff(e).max(initial=1)), 1) for e in (one, other))
        lengths = np.unique(np.geomspace(low, high, _MIDDLE_LENGTHS).astype(np.int64)).tolist()
        tried = [one, other, *(Even(size, n).edges for n in lengths)]
        axes.append([choice(edges, ReadEdges.whole(edges)) for edges in tried])
        for number, edges in enumerate((one, other)):
            between = np.array([pieces_between(c.edges, edges) for c in axes[-1]], float)
            pieces[number] = np.multiply.outer(pieces[number], between)
    cost = (pieces[0] + pieces[1]) * costs.request + outer(axes, "count") * TASK
    room = min(costs.room - costs.copies * costs.slab, costs.room // costs.copies)
    return cutting(cheapest(axes, cost, outer(axes, "longest") * grids.itemsize, room))


def _passes(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Scheme:
    name = "two passes" if len(cuttings) == 2 else "three passes"
    return _scheme(name, tuple(_stages(grids, costs, cuttings)), costs)


def _stages(grids: Grids, costs: Costs, cuttings: Sequence[Cutting]) -> Iterator[Stage]:
    last = len(cuttings) - 1
    for number, regions in enumerate(cuttings):
        before = cuttings[number - 1] if number else None
        if before is None:
            per_thread = to_read(grids, costs)
            axes = zip(regions.edges, grids.read, strict=True)
            parts = _requests(grids, [choice(*each) for each in axes])
        else:
            edges = list(zip(before.edges, regions.edges, strict=True))
            piece = prod(int(np.diff(np.union1d(a, b)).max(initial=0)) for a, b in edges)
            per_thread = costs.copies * min(piece * grids.itemsize, costs.slab)
            parts = prod(pieces_between(a, b) for a, b in edges)
        written = regions.size
        if number == last:
            per_thread = max(per_thread, to_write(grids))
            written = grids.units.size
        held = prod(regions.longest) * grids.itemsize
        threads = max(1, min(costs.share, (costs.room - held) // max(per_thread, 1)))
        peak = max(held + threads * per_thread, held if number == last else held * costs.copies)
        reads: Reads = "packed" if number else "source"
        writes: Writes = "target" if number == last else "packed"
        requests, nbytes = parts + written, grids.nbytes
        yield Stage(regions, reads, writes, requests, nbytes, nbytes, peak, threads, costs)


def _scheme(name: str, stages: tuple[Stage, ...], costs: Costs) -> Scheme:
    return Scheme(name, stages, sum(cost_of(stage, costs) for stage in stages))
