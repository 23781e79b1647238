"""An array that is computed later beside another writer of the same array: one of them succeeds."""

import pytest

from tests.schedules.guarantees import PLACES
from tests.schedules.schedule import Pair, Verb, check
from tests.schedules.stores import KINDS
from tests.schedules.verbs import CREATIONS, nothing, seen, to_zarr


def to_zarr_later(store, writer):
    """Request a write, and compute it."""
    to_zarr(commit="last", compute=False)(store, writer).compute(scheduler="sync")


LATER = Verb(to_zarr_later, nothing)
OTHERS = {"later": LATER} | {
    name: CREATIONS[name]
    for name in ("create_array", "to_zarr", 'to_zarr(commit="last")', "copy of an array", "dataset")
}


def check_beside(other, place, folder, pauses):
    kind, machines = PLACES[place]
    for number, verbs in enumerate([(LATER, OTHERS[other]), (OTHERS[other], LATER)]):
        store = KINDS[kind](folder / str(number))
        check(Pair(verbs, store, seen, machines, f"later at {place}"), pauses)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["one process: memory", "several machines: object store"])
@pytest.mark.parametrize("other", ["later", 'to_zarr(commit="last")'])
def test_one_of_two_writers_succeeds(other, place, tmp_path):
    check_beside(other, place, tmp_path, 5)


@pytest.mark.stress
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("other", OTHERS)
def test_one_of_two_writers_succeeds_whenever_one_pauses(other, place, tmp_path):
    check_beside(other, place, tmp_path, None)
