"""``transpose``."""

from itertools import permutations

import numpy as np
import pytest

from tests.contracts.codec import check_array_array, check_json
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec


@for_each("order", [(), (0,), *permutations(range(2)), *permutations(range(3))])
def test_chunks_survive(order):
    shape = (2, 3, 4)[: len(order)]
    codec = TransposeCodec(order)
    check_array_array(codec, np.arange(np.prod(shape, dtype=int)).reshape(shape))
    check_json(codec, parse_codec)


def test_axis_i_of_the_result_is_axis_order_i_of_the_chunk():
    codec = TransposeCodec((2, 0, 1))
    spec = ChunkSpec((2, 3, 4), np.dtype("u1"), 0)
    assert codec.resolve(spec).shape == (4, 2, 3)
    chunk = np.arange(24).reshape(2, 3, 4)
    assert codec.encode(chunk)[3, 1, 2] == chunk[1, 2, 3]


@for_each(
    "order", [[0, 0], [1], [1, 2], [-1, 0], ["1", "0"], [0.0, 1], [True, False], "C", None, 1]
)
def test_what_is_no_permutation_is_an_error(order):
    with pytest.raises(MetadataError, match=r"transpose\.order"):
        parse_codec({"name": "transpose", "configuration": {"order": order}})


@pytest.mark.parametrize("shape", [(), (2,), (2, 3, 4)])
def test_a_permutation_of_another_rank_is_an_error(shape):
    with pytest.raises(MetadataError, match=r"transpose\.order"):
        TransposeCodec((1, 0)).resolve(ChunkSpec(shape, np.dtype("u1"), 0))
