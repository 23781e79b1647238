"""Workers that hand each other what they read: here, one after another, in one process."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parallel.rewrite.test_passes import cutting, empty, shapes_and_cuts, stage, stored
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import CodecError, StoreError
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.strategies import Exchanged, Scheme
from zarrdask.parallel.rewrite.exchange import Exchange, ExchangeMember
from zarrdask.parallel.rewrite.passes import ArrayTiles

VALUES = np.arange(1, 12 * 10 + 1, dtype="i4").reshape(12, 10)


def exchange(source, target, boxes, reads, units, processes=2, threads=1, slab=40):
    """Return the exchange of whole arrays."""
    to, dtype = ArrayTiles(ArrayRegion(chunks_of(target))), target.dtype
    stages = [stage(regions, threads, slab) for regions in (reads, units)]
    stages = [replace(s, costs=s.costs._replace(processes=processes)) for s in stages]
    scheme = Scheme("in the cluster", tuple(stages), 0, Exchanged(boxes, 0, 0))
    return Exchange(scheme, source, to, dtype)


def rewrite(do):
    """Let members do all boxes; return how many units each box has, and who wrote."""
    members, units = [ExchangeMember(do) for _ in range(do.processes)], []
    for box in range(do.regions.size):
        owners = do.owners(box)
        for number, owner in owners.items():
            members[owner].read(number)

        def ask(reader, writer, owners=owners):
            return partial(members[owners[reader]].piece, reader, writer)

        writers = do.writers(box)
        units.append(sum(members[n % do.processes].write(n, ask) for n in writers))
        for member in members:
            member.clear()
    return units


def lengths(edges):
    return tuple(np.diff(edges).tolist())


@given(shapes_and_cuts(), st.data())
def test_any_grid_becomes_any_other_box_by_box(drawn, data):
    shape, reads, units = drawn
    common = [np.intersect1d(a, b) for a, b in zip(reads.edges, units.edges, strict=True)]
    boxes = Cutting(
        tuple(
            edges[sorted({0, len(edges) - 1, *kept})]
            for edges, kept in (
                (edges, data.draw(st.sets(st.integers(0, len(edges) - 1)))) for edges in common
            )
        )
    )
    values = np.arange(1, np.prod(shape) + 1, dtype="i2").reshape(shape)
    source = stored(values, start=(0,) * len(shape), chunks=tuple(map(lengths, reads.edges)))
    target = empty(shape, "i2", chunks=tuple(map(lengths, units.edges)))
    processes, threads = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    do = exchange(source, target, boxes, reads, units, processes, threads)
    found = rewrite(do)
    np.testing.assert_array_equal(target[...], values)
    assert sum(found) == target.nchunks
    numbers = [do.readers(box) + do.writers(box) for box in range(boxes.size)]
    assert sum(map(len, numbers)) == reads.size + units.size


ROWS = (cutting((3, 12), (10, 10)), cutting((12, 12), (2, 10)))


def rows_to_columns(**options):
    target = empty(chunks=(12, 2))
    return target, exchange(stored(), target, cutting((12, 12), (10, 10)), *ROWS, **options)


def test_readers_are_shared_out_in_turns():
    _, do = rows_to_columns(processes=3)
    assert do.owners(0) == {0: 0, 1: 1, 2: 2, 3: 0}
    assert do.writers(0) == [0, 1, 2, 3, 4]


def test_a_few_pieces_are_asked_for_at_a_time_and_not_all_of_the_same_worker_first():
    target, do = rows_to_columns()
    member, asked, first = ExchangeMember(do), [], []
    for number in do.readers(0):
        member.read(number)

    def ask(reader, writer):
        asked.append(reader)
        if len(first) <= writer:
            first.append(reader)
        assert len(asked) <= 3

        def wait():
            asked.remove(reader)
            return member.piece(reader, writer)

        return wait

    for number in do.writers(0):
        member.write(number, ask)
    np.testing.assert_array_equal(target[...], VALUES)
    assert first == [0, 1, 2, 3, 0]


def test_what_is_no_longer_there_is_an_error():
    _, do = rows_to_columns()
    member = ExchangeMember(do)
    member.read(2)
    assert member.piece(2, 4).tobytes() == VALUES[6:9, 8:].tobytes()
    with pytest.raises(StoreError, match="no longer holds"):
        member.piece(1, 4)
    member.clear()
    with pytest.raises(StoreError, match="no longer holds"):
        member.piece(2, 4)


def test_what_a_worker_keeps_is_what_it_read():
    """One buffer for each region, of which pieces are parts."""
    _, do = rows_to_columns()
    member = ExchangeMember(do)
    member.read(0)
    pieces = [member.piece(0, writer) for writer in do.writers(0)]
    assert b"".join(piece.tobytes() for piece in pieces) == b"".join(
        VALUES[:3, at : at + 2].tobytes() for at in range(0, 10, 2)
    )
    ends = [piece.__array_interface__["data"][0] for piece in pieces]
    assert np.diff(ends).tolist() == [24] * 4


def test_an_error_of_a_codec_names_the_chunk():
    source = stored(compressors="gzip")
    source.region.stored.store.set("c/1/0", b"rubbish")
    target = empty(chunks=(12, 2))
    do = exchange(source, target, cutting((12, 12), (10, 10)), *ROWS)
    with pytest.raises(CodecError) as caught:
        rewrite(do)
    assert caught.value.key.startswith("c/1/0")


def test_an_array_without_axes():
    target = empty((), chunks=())
    source = stored(np.array(7, "i4"), start=(), chunks=())
    assert rewrite(exchange(source, target, cutting(), cutting(), cutting())) == [1]
    assert target[...] == 7
