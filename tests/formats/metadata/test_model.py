"""Array metadata as a value, and chunk keys."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.dtypes.registry import of_dtype
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.grids.rectilinear import RectilinearGrid
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata


def metadata(**changes):
    members = {
        "zarr_format": 3,
        "grid": RegularGrid((8, 6), (4, 3)),
        "data_type": of_dtype(np.dtype("f4")),
        "keys": ChunkKeys(),
        "fill_value": np.float32(0),
        "codecs": (BytesCodec(),),
    }
    return ArrayMetadata(**(members | changes))


CHANGES = [
    {"zarr_format": 2},
    {"grid": RegularGrid((8, 7), (4, 3))},
    {"data_type": of_dtype(np.dtype("f8"))},
    {"grid": RegularGrid((8, 6), (4, 2))},
    {"grid": RectilinearGrid((8, 6), ((1, 7), 3))},
    {"keys": ChunkKeys("v2", ".")},
    {"fill_value": np.float32(-0.0)},
    {"fill_value": np.uint32(0x7FC00001).view("f4")},
    {"fill_value": None},
    {"codecs": (BytesCodec("big"),)},
    {"attributes": {"unit": "K"}},
    {"dimension_names": ("y", "x")},
    {"extra": {"x": {"must_understand": False}}},
]


@for_each("change", CHANGES)
def test_metadata_are_equal_if_and_only_if_every_part_is(change):
    assert metadata() == metadata()
    assert metadata(**change) == metadata(**change)
    assert metadata() != metadata(**change)


def test_metadata_whose_fill_value_is_nan_are_equal():
    assert metadata(fill_value=np.float32("nan")) == metadata(fill_value=np.float32("nan"))


@for_each("change", [{}, *CHANGES])
def test_metadata_pickle_to_equal_ones(change):
    result = metadata(**change)
    assert pickle.loads(pickle.dumps(result)) == result


def test_metadata_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        metadata().shape = (1, 1)


def test_an_open_fill_value_reads_as_zero():
    assert metadata(fill_value=None).fill == 0
    assert metadata(fill_value=np.float32(7)).fill == 7


def test_the_part_that_can_be_read_by_itself_is_the_inner_chunk_of_a_shard():
    assert metadata().read_grid == metadata().grid
    assert metadata(codecs=(ShardingCodec((2, 1)),)).read_grid == RegularGrid((8, 6), (2, 1))
    turned = (TransposeCodec((1, 0)), ShardingCodec((1, 2)))
    assert metadata(codecs=turned).read_grid == RegularGrid((8, 6), (2, 1))


def test_resized_metadata_differ_in_the_shape_only():
    result = metadata(attributes={"a": 1}).resized((2, 100))
    assert result.shape == result.grid.shape == (2, 100)
    assert replace(result, grid=metadata().grid) == metadata(attributes={"a": 1})


@for_each(
    "change",
    [
        {"dimension_names": ("x",)},
        {"dimension_names": ()},
        {"codecs": ()},
        {"codecs": (BytesCodec(), BytesCodec())},
        {"codecs": (BytesCodec(None),)},
        {"codecs": (ShardingCodec((3, 3)),)},
        {"codecs": (TransposeCodec((0,)), BytesCodec())},
    ],
)
def test_parts_that_do_not_fit_together_are_an_error_at_once(change):
    with pytest.raises(MetadataError):
        metadata(**change)


def uneven(lengths, *codecs):
    grid = RectilinearGrid((sum(lengths), 6), (tuple(lengths), 6))
    return metadata(grid=grid, codecs=codecs or (BytesCodec(),))


def test_each_unit_of_an_uneven_grid_has_the_pipeline_of_its_shape():
    result = uneven([1, 7, 3])
    assert result.pipeline.spec.shape == result.chunk_shape == (7, 6)
    for index, length in enumerate((1, 7, 3)):
        pipeline = result.pipeline_at((index, 0))
        assert pipeline.spec.shape == (length, 6)
        assert pipeline.encoded_size == length * 6 * 4
        assert result.pipeline_at((index, 0)) is pipeline
    regular = metadata()
    assert regular.pipeline_at((1, 1)) is regular.pipeline


def test_pipelines_of_thousands_of_shapes_are_not_all_kept():
    result = uneven(range(1, 3000))
    first = result.pipeline_at((0, 0))
    assert result.pipeline_at((0, 0)) is first
    for index in range(2999):
        assert result.pipeline_at((index, 0)).spec.shape == (index + 1, 6)
    assert result.pipeline_at((0, 0)) is not first


def test_chunks_in_shards_of_several_shapes_are_one_regular_grid():
    result = uneven([4, 8, 4], ShardingCodec((2, 3)))
    assert result.read_grid == RegularGrid((16, 6), (2, 3))
    assert uneven([1, 7, 3]).read_grid == uneven([1, 7, 3]).grid


class Short(BytesCodec):
    """Takes no chunks of one row."""

    def bind(self, spec):
        if spec.shape[0] == 1:
            raise MetadataError("too short")
        return super().bind(spec)


@pytest.mark.parametrize("lengths", [[4, 1, 2], [*range(40, 0, -1)]], ids=["few", "many"])
def test_a_chain_that_can_not_take_the_shortest_chunks_is_an_error_at_once(lengths):
    with pytest.raises(MetadataError, match="too short"):
        uneven(lengths, Short())


@pytest.mark.parametrize("lengths", [[4, 5, 6], [*range(2, 80, 2), 5, 100]], ids=["few", "many"])
def test_a_shard_that_the_chunks_do_not_divide_is_an_error_at_once(lengths):
    with pytest.raises(MetadataError, match="divide"):
        uneven(lengths, ShardingCodec((2, 3)))


def test_group_metadata_are_equal_by_value():
    assert GroupMetadata(3, {"a": 1}) == GroupMetadata(3, {"a": 1}) != GroupMetadata(2, {"a": 1})


def test_chunks_do_not_depend_on_attributes_and_names():
    before = metadata()
    after = replace(before, attributes={"unit": "K"}, dimension_names=("y", "x"))
    assert after != before
    assert after.without_labels() == before.without_labels()
    assert after.attributes == {"unit": "K"}
