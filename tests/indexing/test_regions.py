"""Regions: what they have in common."""

import numpy as np

from tests.covering import for_each
from zarrdask.indexing.regions import overlap


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
