"""All pairs of verbs, in the stress suite."""

import pytest

from tests.schedules.schedule import Pair, check, noted_waits
from tests.schedules.stores import KINDS, Pause, pausing_disk
from tests.schedules.verbs import CHANGES, CREATIONS, seen

#: The kinds of stores, each with two writers on one machine, and on two machines if that can be.
PLACES = [(kind, (1, machine)) for kind, each in KINDS.items() for machine in each.machines]


@pytest.fixture(autouse=True)
def one_thread(setting, tmp_path):
    setting({"scheduler": "synchronous", "zarrdask.threads": 1, "zarrdask.requests": 1})
    with noted_waits(), pausing_disk(str(tmp_path / "locks")):
        yield


def pair(first, second, kind, machines, folder):
    rows = CREATIONS | CHANGES
    verbs = rows[first], rows[second]
    store = KINDS[kind](folder)
    with store.writer(Pause(), 1) as here:
        verbs[0].before(here)
    return Pair(verbs, store, seen, machines)


@pytest.mark.stress
@pytest.mark.parametrize(("kind", "machines"), PLACES)
@pytest.mark.parametrize("second", CREATIONS)
@pytest.mark.parametrize("first", CREATIONS)
def test_creations(first, second, kind, machines, tmp_path):
    check(pair(first, second, kind, machines, tmp_path))


@pytest.mark.stress
@pytest.mark.parametrize(("kind", "machines"), PLACES)
@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
def test_changes(first, second, kind, machines, tmp_path):
    check(pair(first, second, kind, machines, tmp_path))
