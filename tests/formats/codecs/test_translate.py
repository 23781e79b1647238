"""Lists of codecs are equivalent in v3 and as those of numcodecs."""

import pytest

from tests.covering import for_each
from zarrdask.errors import UnsupportedError
from zarrdask.formats.codecs.translate import marks, opened
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.formats.metadata.v2_codecs import codec_options


def names(codecs):
    return [codec.name for codec in codecs]


def codecs_of(**options):
    options = {"shape": (8, 8), "dtype": "i4", "chunks": (2, 2)} | options
    return plan_array(ArrayOptions(**options)).codecs


def test_a_sharding_codec_is_entered():
    outer, sharding, inner = opened(codecs_of(shards=(4, 4), compressors="gzip"), deep=True)
    assert (outer, sharding.name) == ((), "sharding_indexed")
    assert names(inner)[-1] == "gzip"


def test_without_shards_there_is_nothing_to_enter():
    codecs = codecs_of(compressors="gzip")
    assert opened(codecs, deep=True) == ((), None, codecs)


@for_each("compressors", ["gzip", "zstd", "blosc", None])
@for_each("order", ["C", "F"])
def test_codecs_of_v3_are_the_same_after_they_were_those_of_v2(compressors, order):
    options = ArrayOptions(
        shape=(6, 4), dtype="i4", chunks=(4, 4), compressors=compressors, order=order
    )
    before = plan_array(options)
    old = convert(before, zarr_format=2)
    assert codec_options(old)[0] == order
    assert names(convert(old, zarr_format=3).codecs) == names(before.codecs)
    # The stored bytes are the same, so chunks are copied as they are.
    assert marks(old.codecs, old.pipeline.spec) == marks(before.codecs, before.pipeline.spec)


def test_a_codec_that_v2_lacks_is_an_error():
    options = ArrayOptions(shape=(6,), dtype="i4", chunks=(2,), codecs=["bytes", "crc32c"])
    with pytest.raises(UnsupportedError) as caught:
        convert(plan_array(options), zarr_format="v3-draft")
    assert caught.value.found == "crc32c"
