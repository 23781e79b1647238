"""The properties of an array, as other software names them."""

import zarrdask
from tests.covering import for_each


def names(codecs):
    return [codec.name for codec in codecs]


@for_each("zarr_format", [2, 3])
def test_the_order_and_the_codecs_are_those_of_the_options(zarr_format):
    array = zarrdask.create_array(
        {}, shape=(4, 4), dtype="i4", order="F", compressors="gzip", zarr_format=zarr_format
    )
    assert array.order == "F"
    assert [name.removeprefix("numcodecs.") for name in names(array.compressors)] == ["gzip"]
    assert names(array.filters) == []


def test_the_codecs_of_an_array_with_shards_are_those_of_its_chunks():
    array = zarrdask.create_array({}, shape=8, dtype="i4", chunks=2, shards=4, compressors="zstd")
    assert (array.chunks, array.shards) == ((2,), (4,))
    assert names(array.compressors) == ["zstd"]
    assert zarrdask.create_array({}, shape=8, dtype="i4").shards is None


def test_a_filter_of_v2_is_no_compressor():
    array = zarrdask.create_array(
        {},
        shape=8,
        dtype="i4",
        zarr_format=2,
        filters=[{"id": "delta", "dtype": "<i4"}],
        compressors={"id": "zlib", "level": 1},
    )
    assert len(array.filters) == len(array.compressors) == 1
    again = zarrdask.open_array(array.store)
    assert (again.filters, again.compressors) == (array.filters, array.compressors)


def test_sizes_are_those_of_decoded_elements():
    array = zarrdask.create_array({}, shape=(3, 5), dtype="f8", chunks=(2, 2))
    assert (array.ndim, array.size, array.nbytes, array.nchunks) == (2, 15, 120, 6)
    assert array.nchunks_stored() == 0
    array[0, 0] = 1
    assert array.nchunks_stored() == 1
