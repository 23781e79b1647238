"""Slices of slices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.formats.indexing.regions import compose_axis


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
