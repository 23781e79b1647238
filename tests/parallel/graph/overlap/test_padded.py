"""Regions of stored arrays with margins around them are those of padded arrays in memory."""

import pickle

import numpy as np
import pytest
from dask.base import tokenize

import zarrdask
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.parallel.graph.overlap.margins import Margins
from zarrdask.parallel.graph.overlap.padded import PaddedRegion

VALUES = np.arange(9 * 8, dtype="i4").reshape(9, 8)
MARGINS = (Margins(2, 1, "reflect"), Margins(1, 3, "periodic"))
PADDED = np.pad(np.pad(VALUES, ((2, 1), (0, 0)), "symmetric"), ((0, 0), (1, 3)), "wrap")


@pytest.fixture(scope="module")
def region():
    array = zarrdask.create_array({}, shape=VALUES.shape, dtype=VALUES.dtype, chunks=4)
    array[...] = VALUES
    return ArrayRegion(chunks_of(array))


def test_all_of_it_and_parts_are_those_of_the_padded_array(region):
    padded = PaddedRegion(region, MARGINS)
    assert padded.shape == PADDED.shape
    parts = [np.s_[:, :], np.s_[0:3, 9:12], np.s_[3:6:2, 2:5], np.s_[11:12, 0:1]]
    for part in parts:
        np.testing.assert_array_equal(padded[part], PADDED[part])


def test_it_is_read_into_memory_that_is_given(region):
    out = np.zeros((3, 4), "i4")
    PaddedRegion(region, MARGINS).read(np.s_[0:3:1, 8:12:1], out=out)
    np.testing.assert_array_equal(out, PADDED[0:3, 8:12])


def test_margins_of_one_value_hold_it(region):
    margins = (Margins(1, 1, "constant", np.array(-5, "i4")), Margins())
    expected = np.pad(VALUES, ((1, 1), (0, 0)), constant_values=-5)
    np.testing.assert_array_equal(PaddedRegion(region, margins)[...], expected)


def test_a_task_reads_the_same(region):
    padded = PaddedRegion(region, MARGINS)
    again = pickle.loads(pickle.dumps(padded))
    assert again.shape == padded.shape
    assert [(m.before, m.after, m.kind) for m in again.margins] == [
        (m.before, m.after, m.kind) for m in MARGINS
    ]


def test_other_margins_have_other_names_in_graphs(region):
    one, two = (PaddedRegion(region, (Margins(n, 0), Margins())) for n in (1, 2))
    assert tokenize(one) != tokenize(two)
    assert tokenize(one) == tokenize(PaddedRegion(region, (Margins(1, 0), Margins())))
