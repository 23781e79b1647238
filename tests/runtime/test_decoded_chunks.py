"""Which decoded chunks can be cached."""

import numpy as np

from tests.covering import for_each
from zarrdask.runtime.decoded_chunks import is_cacheable


@for_each(
    ("dtype", "expected"),
    [
        ("f4", True),
        ("U3", True),
        ([("a", "i2"), ("b", "f8")], True),
        (object, False),
        ([("a", object)], False),
        (np.dtypes.StringDType(), False),
    ],
)
def test_elements_of_a_fixed_size_that_are_no_objects_are(dtype, expected):
    assert is_cacheable(np.dtype(dtype)) is expected
