"""Regions: what they have in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.formats.indexing.regions import compose_axis, overlap


@for_each(
    ("one", "other", "expected"),
    [
        (np.s_[0:2, 0:5], np.s_[1:3, 4:6], True),
        (np.s_[0:2, 0:5], np.s_[2:3, 0:5], False),
        (np.s_[0:2, 0:5], np.s_[0:2, 5:6], False),
        (np.s_[0:0, 0:5], np.s_[0:2, 0:5], False),
        ((), (), True),
        # The array was replaced by one with another number of dimensions.
        ((slice(0, 2),), np.s_[5:6, 5:6], True),
    ],
)
def test_regions_overlap_if_they_may_have_elements_in_common(one, other, expected):
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


def slices(size):
    """Return slices within an axis, with steps and without."""
    bounds = st.tuples(st.integers(0, size), st.integers(0, size)).map(sorted)
    return st.builds(lambda ends, step: slice(*ends, step), bounds, st.sampled_from([1, 2, 3]))


@given(slices(20), st.data(), st.booleans())
def test_a_slice_of_a_slice_has_the_elements_of_both(outer, data, has_step):
    values = np.arange(20)
    inner = data.draw(slices(len(values[outer])))
    without_step = slice(inner.start, inner.stop) if inner.step == 1 and not has_step else inner
    np.testing.assert_array_equal(values[compose_axis(outer, without_step)], values[outer][inner])
