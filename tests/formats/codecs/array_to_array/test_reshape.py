"""``reshape``."""

import numpy as np
import pytest

from tests.contracts.codec import check_array_array, check_json
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec


def codec(shape):
    return parse_codec({"name": "reshape", "configuration": {"shape": shape}})


@for_each(
    ("shape", "before", "after"),
    [
        ([6], (2, 3), (6,)),
        ([-1], (2, 3), (6,)),
        ([], (1, 1), ()),
        ([1, -1, 1], (), (1, 1, 1)),
        ([[0, 1], [2], 3], (10, 5, 6, 3), (50, 6, 3)),
        ([[0], 2, -1], (4, 6), (4, 2, 3)),
        ([[0, 1], 10, [3, 4]], (2, 3, 10, 4, 5), (6, 10, 20)),
        ([[0], [], [1]], (2, 3), (2, 1, 3)),
        ([2, 2, [1]], (4, 3), (2, 2, 3)),
        ([-1, [2]], (4, 3, 5), (12, 5)),
    ],
)
def test_elements_keep_their_order(shape, before, after):
    chunk = np.arange(np.prod(before, dtype=int)).reshape(before)
    check_array_array(codec(shape), chunk)
    check_json(codec(shape), parse_codec)
    found = codec(shape).encode(chunk)
    assert found.shape == after
    assert np.array_equal(found.reshape(-1), chunk.reshape(-1))


@for_each(
    ("shape", "before"),
    [
        ([5], (2, 3)),
        ([4, -1], (2, 3)),
        ([[0, 1], 10, [3, 4]], (2, 3, 5, 4, 5)),
        # As many elements, but not those that the axis says.
        ([2, [0]], (3, 2)),
        ([[1], 2], (2, 3)),
        ([6, [1]], (2, 3, 3)),
        ([[0, 2], 3], (2, 3, 4)),
        ([[2]], (2, 3)),
    ],
)
def test_what_does_not_fit_the_chunk_is_an_error_at_open(shape, before):
    with pytest.raises(MetadataError, match=r"reshape\.shape"):
        codec(shape).resolve(ChunkSpec(before, np.dtype("u1"), 0))


@for_each(
    "shape",
    [
        "F",
        None,
        6,
        [0],
        [-2],
        [2.0],
        ["2"],
        [True],
        [None],
        [-1, -1],
        [[1], [0]],
        [[1, 0], 10, [3, 4]],
        [[3, 4], 10, [0, 1]],
        [[0], [0]],
        [[-1]],
        [[True]],
    ],
)
def test_what_is_no_shape_is_an_error(shape):
    with pytest.raises(MetadataError, match=r"reshape\.shape"):
        codec(shape)
