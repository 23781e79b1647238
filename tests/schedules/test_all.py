"""All pairs of verbs with a guarantee: a sample in the core suite, all in the stress suite.

The stress suite pauses before two operations of each pair, other ones from pair to pair. With
``--every-pause``, it pauses before each operation: a quarter of an hour, before each release.
"""

from zlib import crc32

import pytest

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
SAMPLE = PAIRS[::23]


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


@pytest.mark.stress
@pytest.mark.parametrize(("first", "second", "place"), PAIRS)
def test_all_pairs(first, second, place, tmp_path, request):
    pauses = None if request.config.getoption("--every-pause") else 2
    turn = crc32(f"{first} {second} {place}".encode())
    check(pair(first, second, place, tmp_path), pauses, turn)
