"""The order in which the chunks of a shard are written."""

import pickle

import dask
import numpy as np
import pytest

import zarrdask
from tests.contracts.codec import check_value
from tests.covering import for_each
from tests.documents import shard_index, sharding
from tests.formats.codecs.shards import bind
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.codecs.shard_order import shard_order

ORDERS = {
    "c": [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
    "f": [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)],
    "morton": [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)],
}


@for_each("location", ["end", "start"])
@for_each(("order", "indices"), ORDERS.items())
def test_the_chunks_of_a_shard_are_written_in_the_order_of_the_setting(order, indices, location):
    values = np.arange(1, 10, dtype="u1").reshape(3, 3)
    shard = bind((3, 3), "u1", chunk_shape=(1, 1), index_location=location)
    chunks = bytes(values[index] for index in indices)
    start = 9 * 16 + 4 if location == "start" else 0
    entries = [(start + indices.index(index), 1) for index in np.ndindex(3, 3)]
    parts = [chunks, shard_index(*entries)]
    expected = b"".join(reversed(parts) if location == "start" else parts)
    corner = slice(0, 1, 1), slice(0, 1, 1)
    with dask.config.set({"zarrdask.shard-order": order}):
        assert bytes(shard.encode(values)) == expected
        assert shard.update(expected, corner, values[:1, :1]) == expected
    assert np.array_equal(shard.decode(expected), values)


def test_the_order_of_chunks_is_no_part_of_the_codec_s_value_and_metadata():
    with shard_order("morton"):
        codec = parse_codec(sharding((2, 2)))
    other = parse_codec(sharding((2, 2)))
    assert (pickle.loads(pickle.dumps(codec)).order, other.order) == ("morton", None)
    assert codec == other
    assert codec.to_json() == other.to_json()
    check_value(codec)


def test_an_order_that_does_not_exist_is_an_error_before_anything_is_written():
    store = {}
    z = zarrdask.create_array(store, shape=(4, 4), dtype="u1", chunks=1, shards=4)
    with (
        dask.config.set({"zarrdask.shard-order": "hilbert"}),
        pytest.raises(MetadataError, match=r"zarrdask\.shard-order: .*'hilbert'.*'morton'"),
    ):
        z[...] = 1
    assert [*store] == ["zarr.json"]
