"""All pairs of verbs with a guarantee: a sample in the core suite, all in the stress suite.

The stress suite pauses before two operations of each pair, other ones from pair to pair. With
``--every-pause``, it pauses before each operation: a quarter of an hour, before each release.
"""

from contextlib import nullcontext
from zlib import crc32

import pytest

import zarrdask
from tests.schedules.guarantees import PLACES, is_guaranteed
from tests.schedules.schedule import Pair, check
from tests.schedules.stores import KINDS, Pause
from tests.schedules.verbs import CHANGES, CREATIONS, seen

PAIRS = [
    (first, second, place)
    for rows in (CREATIONS, CHANGES)
    for place in PLACES
    for first in rows
    for second in rows
    if is_guaranteed(first, second, place)
]
#: Each verb is the first and the second writer of some pair, at each place of some other.
SAMPLE = [each for each in PAIRS if "sync" not in each][::23]


def pair(first, second, place, folder):
    """Return the pair of two verbs at a place, with what is there before."""
    rows = CREATIONS | CHANGES
    kind, machines = PLACES[place]
    store = KINDS[kind](folder)
    with store.writer(Pause(), 1) as here:
        rows[first].before(here)
    return Pair((rows[first], rows[second]), store, seen, machines, place)


@pytest.mark.parametrize(("first", "second", "place"), SAMPLE)
def test_both_results_are_there_or_one_writer_gets_an_error(first, second, place, tmp_path):
    check(pair(first, second, place, tmp_path), pauses=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "place"), [each for each in PAIRS if "sync" in each][::9]
)
def test_sync_beside_another_writer(first, second, place, tmp_path):
    check(pair(first, second, place, tmp_path), pauses=3)


@pytest.mark.stress
@pytest.mark.parametrize(("first", "second", "place"), PAIRS)
def test_all_pairs(first, second, place, tmp_path, request):
    pauses = None if request.config.getoption("--every-pause") else 2
    turn = crc32(f"{first} {second} {place}".encode())
    # What is counted is counted in other functions.
    with zarrdask.measured() if turn % 3 == 0 else nullcontext():
        check(pair(first, second, place, tmp_path), pauses, turn)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["one process: memory", "one machine: local disk"])
@pytest.mark.parametrize("verb", ["z[...] = x", "to_zarr(region=)"])
def test_sync_beside_a_writer_of_elements_stores_each_chunk_of_one_of_them(verb, place, tmp_path):
    check_chunks(verb, place, tmp_path, 5)


@pytest.mark.stress
@pytest.mark.parametrize("place", [p for p in PLACES if "shared" not in p])
@pytest.mark.parametrize("verb", ["z[...] = x", "to_zarr(region=)", "erase"])
def test_sync_beside_all_writers_of_elements(verb, place, tmp_path):
    check_chunks(verb, place, tmp_path, 1)


def check_chunks(verb, place, folder, step):
    """Check that each element has a new value, whichever of both writers pauses."""
    for names in ((verb, "sync"), ("sync", verb)):
        both = pair(*names, place, folder / names[0])
        start = both.store.snapshot()
        for number in range(0, both.alone(0, start)[1], step):
            both.store.restore(start)
            ending, reached = both.paused(0, number)
            assert ending.errors == (None, None), reached
            found = ending.seen[0]["a"][0]
            assert set(found) <= {0, 7, 8}, f"{found} after a pause before {reached}"
            # The elements that only sync has written.
            own, others = (found[3:], {8}) if names[1] == "sync" else (found[:3], {7})
            assert set(own) == others, f"{found} after a pause before {reached}"
