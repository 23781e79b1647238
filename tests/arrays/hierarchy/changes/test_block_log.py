"""The record of the blocks that tasks have stored."""

import pickle

import numpy as np
import pytest

from zarrdask.arrays.hierarchy.changes.block_log import BlockLog, RecordedBlocks, bounds
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def log():
    return BlockLog(MemoryStore(), "blocks/")


def test_blocks_of_all_tasks_are_merged(log):
    blocks = [np.s_[n : n + 2 : 1, 0:3:1] for n in (0, 2, 4)]
    first, second, third = map(bounds, blocks)
    log.add([(blocks[0], 1), (blocks[1], 2)])
    log.add([(blocks[2], 0)])
    assert log.merge() == {first, second, third}
    assert len(list(log.store.list_prefix(""))) == 1
    assert log.merge() == {first, second, third}
    assert log.merge(lambda block, record: block != third and record.units == 2) == {second}


def test_a_block_without_axes_is_recorded(log):
    assert log.merge() == set()
    log.add([((), 1)])
    assert log.merge() == {()}


@pytest.mark.parametrize("value", [b"", b"[[[0,", b"7", b"[7]", b"[[[0]]]", b'{"a": 1}', b"\xff"])
def test_a_damaged_value_counts_as_none(log, value):
    log.add([(np.s_[0:1:1,], 1)])
    log.store.set("blocks/cut", value)
    assert log.merge() == {((0, 1),)}


def test_it_can_be_cleared(log):
    log.clear()
    log.add([(np.s_[0:1:1,], 1)])
    log.store.set("other", b"kept")
    log.clear()
    assert log.merge() == set()
    assert list(log.store.list_prefix("")) == ["other"]


def test_it_pickles():
    log = BlockLog(MemoryStore({}), "blocks/")
    assert pickle.loads(pickle.dumps(log)).prefix == log.prefix


def test_bounds_are_plain_integers():
    assert bounds(np.s_[np.int64(2) : np.int64(4), 0:3]) == ((2, 4), (0, 3))


@pytest.mark.parametrize(
    ("stored", "is_complete", "expected"),
    [
        (set(), False, False),
        ({((2, 4),)}, False, False),
        ({((0, 2),)}, False, True),
        (set(), True, True),
    ],
)
def test_a_block_is_stored_if_it_is_recorded_or_all_are(log, stored, is_complete, expected):
    blocks = RecordedBlocks(log, stored, is_complete)
    assert blocks.is_stored(np.s_[0:2:1,]) is expected
