"""The verbs in a zip archive, each with a mishap at each of its operations on files."""

import os
from dataclasses import replace

import pytest

from tests.crashes import test_arrays, test_removal, test_rewrites, test_xarray
from tests.crashes.archives import ScriptedArchive, record
from tests.crashes.matrix import check, outcome
from tests.crashes.stores import Mishap, Script

VERBS = {
    f"{module.__name__.rpartition('_')[2]}: {name}": verb
    for module in (test_arrays, test_removal, test_rewrites, test_xarray)
    for name, verb in module.verbs(3).items()
}
#: All verbs change an archive in the same way, so these stand for all.
IN_CORE_SUITE = ("arrays: to_zarr", "removal: del", "xarray: append_dim")
IN_STRESS_SUITE = [name for name in VERBS if name not in IN_CORE_SUITE][::6]

pytestmark = pytest.mark.filterwarnings("ignore:.*was interrupted")


@pytest.fixture(autouse=True)
def recorded(tmp_path, monkeypatch):
    record(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    "name",
    [*IN_CORE_SUITE, *(pytest.param(name, marks=pytest.mark.stress) for name in IN_STRESS_SUITE)],
)
def test_an_interrupted_verb_leaves_the_old_archive_or_the_new_one(name):
    verb = VERBS[name]
    # Of a killed process nothing is seen before all is, whatever a verb does in other stores.
    check(replace(verb, allows=lambda seen: False), ScriptedArchive, [Mishap.DEATH])
    check(verb, ScriptedArchive, [Mishap.ERROR])


def test_what_a_killed_writer_left_is_removed_by_the_next_one():
    expected = os.listdir(ScriptedArchive({}).folder)
    number, is_dead = 0, True
    while is_dead:
        store = ScriptedArchive({})
        store.script = Script(Mishap.DEATH, number)
        outcome(lambda store: store.set("k", b"1"), store)
        is_dead, number = store.script.is_dead, number + 1
        store.script = Script()
        store.set("k", b"2")
        assert sorted(os.listdir(store.folder)) == sorted([*expected, "a.zip"])
    assert number > 5
