"""The windows of arrays, and the columns of chunks that they overlap."""

import numpy as np

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.samples.windows import ArrayWindows, WindowAxis

METADATA = zarrdask.create_array({}, shape=(10, 3, 8), dtype="i2", chunks=(4, 3, 3)).metadata
AXES = (WindowAxis("t", 3, 2, 10), WindowAxis("x", 2, 1, 8))
WINDOWS = ArrayWindows(METADATA, AXES, (0, 2))


def test_windows_that_fit_into_an_axis_are_counted():
    assert WINDOWS.counts == (4, 7)
    assert [WindowAxis("t", length, 3, 10).windows for length in (1, 4, 10)] == [4, 3, 1]


def test_a_window_has_all_of_the_other_axes():
    assert WINDOWS.window_shape == WINDOWS.sample_shape == (3, 3, 2)
    assert WINDOWS.sample_bytes == 3 * 3 * 2 * 2


def test_a_single_index_is_no_axis_of_a_sample():
    index = ArrayWindows(METADATA, (WindowAxis("t", 1, 1, 10),), (0,), is_index=True)
    assert index.sample_shape == (3, 8)


def overlapped(sample):
    """Return the columns that a window overlaps, by the elements of each."""
    t, x = np.unravel_index(sample, WINDOWS.counts)
    rows, columns = range(2 * t, 2 * t + 3), range(x, x + 2)
    return {3 * (row // 4) + column // 3 for row in rows for column in columns}


@for_each("sample", range(0, 28, 3))
def test_the_columns_of_a_sample_are_those_of_its_elements(sample):
    found = WINDOWS.columns(np.array([sample]))[0]
    assert {*found.tolist()} - {-1} == overlapped(sample)


def test_columns_cover_the_array():
    covered = np.zeros(METADATA.shape, int)
    columns = np.arange(9)
    for column in columns.tolist():
        covered[WINDOWS.column_region(column)] += 1
    assert (covered == 1).all()
    assert WINDOWS.column_bytes(columns).sum() == covered.size * 2
    assert WINDOWS.column_chunks == 1


def test_an_array_without_such_axes_has_one_column():
    constant = ArrayWindows(METADATA, AXES, (None, None))
    assert constant.columns(np.array([0, 5])).tolist() == [[0], [0]]
    assert constant.column_chunks == METADATA.read_grid.size
    assert constant.column_region(0) == tuple(slice(0, n, 1) for n in METADATA.shape)
