"""Which bytes of a chunk hold requested elements: as few as pay."""

from itertools import pairwise

import numpy as np
import pytest

from zarrdask.formats.codecs.part_layout import part_layout
from zarrdask.formats.indexing.projection import Points

VALUES = np.arange(20 * 30 * 40, dtype="u2").reshape(20, 30, 40)
STRIDES = VALUES.strides
DATA = VALUES.tobytes()
REQUESTS = [
    (slice(3, 4, 1), slice(0, 30, 1), slice(0, 40, 1)),
    (slice(3, 9, 2), slice(5, 7, 1), slice(0, 40, 1)),
    (slice(0, 20, 1), slice(5, 6, 1), slice(7, 9, 1)),
    (slice(0, 20, 5), slice(0, 30, 7), slice(0, 40, 9)),
    (np.array([2, 7]), slice(5, 7, 1), slice(3, 4, 1)),
    (slice(2, 3, 1), np.array([9, 4, 4]), np.array([0, 39])),
]


def read(layout):
    """Return the elements that a layout describes, from the bytes of its ranges."""
    data = b"".join(DATA[start : start + length] for start, length in layout.ranges)
    return layout.elements(VALUES.dtype, data)


@pytest.mark.parametrize("overhead", [0, 64, 2**12])
def test_the_bytes_of_the_ranges_hold_the_elements(overhead):
    layouts = [part_layout(request, STRIDES, len(DATA), overhead) for request in REQUESTS]
    assert sum(layout is not None for layout in layouts) >= (4 if overhead < 2**12 else 1)
    for request, layout in zip(REQUESTS, layouts, strict=True):
        if layout is not None:
            axes = zip(VALUES.shape, request, strict=True)
            lists = [np.arange(length)[pick] for length, pick in axes]
            np.testing.assert_array_equal(read(layout), VALUES[np.ix_(*lists)])
            assert all(sum(one) <= other[0] for one, other in pairwise(layout.ranges))
            assert 2 * layout.nbytes <= len(DATA)


def test_points_are_read_by_themselves_or_together():
    coordinates = (np.array([3, 3, 17]), np.array([1, 2, 29]), np.array([0, 0, 39]))
    layout = part_layout(Points(coordinates), STRIDES, len(DATA), 8)
    np.testing.assert_array_equal(read(layout), VALUES[coordinates])


def test_all_of_a_chunk_is_no_part():
    whole = tuple(slice(0, n, 1) for n in VALUES.shape)
    assert part_layout(whole, STRIDES, len(DATA), 0) is None


def test_a_higher_cost_of_a_range_joins_ranges():
    request = (slice(2, 4, 1), slice(0, 30, 2), slice(0, 4, 1))
    few, many = (part_layout(request, STRIDES, len(DATA), cost) for cost in (2**11, 0))
    assert len(few.ranges) < len(many.ranges)
    assert few.nbytes > many.nbytes
