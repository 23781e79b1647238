"""Objects that are stored as a whole, while partial writes of the same ones may be under way."""

from dataclasses import replace

import pytest

from zarrdask.storage.locks.whole_objects import WholeObjects
from zarrdask.storage.memory import MemoryStore

pytestmark = pytest.mark.usefixtures("directory")


class Swapping(MemoryStore):
    capabilities = replace(MemoryStore.capabilities, compare_and_swap=True)


def test_an_object_is_changed_once_if_nobody_else_changes_it():
    changed = list[str]()
    objects = WholeObjects(MemoryStore(), "a/")
    assert objects.change(lambda key: changed.append(key) or 5, "c/0") == 5
    assert changed == ["c/0"]


def test_an_object_is_changed_again_after_a_partial_write():
    changed = list[str]()
    objects = WholeObjects(MemoryStore(), "a/")

    def change(key):
        changed.append(key)
        if len(changed) == 1:
            with objects.hold(key):  # as a partial write does
                pass
        return len(changed)

    assert objects.change(change, "c/0") == 2
    assert changed == ["c/0", "c/0"]


def test_only_the_objects_of_partial_writes_are_outdated():
    objects = WholeObjects(MemoryStore(), "a/")
    versions = objects.versions(["c/0", "c/1"])
    with objects.hold("c/1"):
        pass
    assert objects.outdated(versions) == ["c/1"]


def test_partial_writes_find_out_themselves_where_writes_are_conditional():
    objects = WholeObjects(Swapping(), "a/")
    assert objects.versions(["c/0"]) == {}
    with objects.hold("c/0"):
        assert objects.outdated({}) == []
