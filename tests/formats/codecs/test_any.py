"""Whatever stands in a configuration or in a chunk: it works, or is an error of ours."""

import json
from contextlib import suppress
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import for_each
from tests.documents import BIG, LITTLE, named
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.codecs.codec import ChunkSpec, Kind, complete
from zarrdask.formats.codecs.imagecodecs.names import KINDS
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.registry import CODECS, parse_codec, parse_codecs
from zarrdask.formats.compliance import strictness
from zarrdask.formats.dtypes.registry import parse_data_type

#: Without those of an optional package, and those that tests registered.
NAMES = [name for name in CODECS.names() if "test" not in name and name not in KINDS]
REVERSE = named("transpose", order=[1, 0])
#: A configuration of each codec that needs one, in chunks of two axes.
GOOD = {
    "bitround": {"keepbits": 5},
    "cast_value": {"data_type": "float32", "out_of_range": "clamp"},
    "conditional": {"codecs": [named("numcodecs.zlib", level=1), "crc32c"]},
    "n5_default": {"codecs": [REVERSE, BIG]},
    "numcodecs.astype": {"encode_dtype": "<f4"},
    "numcodecs.bitround": {"keepbits": 5},
    "numcodecs.fixedscaleoffset": {"offset": 0, "scale": 2},
    "numcodecs.quantize": {"digits": 2},
    "numcodecs.shuffle": {"elementsize": 2},
    "reshape": {"shape": [-1, [1]]},
    "sharding_indexed": {
        "chunk_shape": [1, 3],
        "codecs": [LITTLE],
        "index_codecs": [LITTLE, "crc32c"],
    },
    "transpose": {"order": [1, 0]},
    "zfp": {"mode": "reversible"},
    "bytes": {"endian": "big"},
}
TYPES = {
    "vlen-utf8": "string",
    "vlen-bytes": "bytes",
    "numcodecs.packbits": "bool",
}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
words = st.sampled_from(
    ["little", "uint8", "float32", "NaN", "clamp", "<i4", "none", "auto", "shuffle", "bytes"]
)
anything = st.recursive(
    scalars | words | st.integers(-2, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def spec_of(data_type, shape=(2, 3)):
    kind = parse_data_type(data_type)
    return ChunkSpec(shape, kind.dtype, kind.default)


def chain(codec):
    """A whole chain around a codec."""
    if codec.kind is Kind.ARRAY_ARRAY:
        return [codec, parse_codec(LITTLE)]
    return [codec] if codec.kind is Kind.ARRAY_BYTES else [parse_codec(LITTLE), codec]


def check(configuration, name, data_type):
    with suppress(ZarrdaskError):
        codec = parse_codec({"name": name, "configuration": configuration})
        pipeline = Pipeline(chain(codec), spec_of(data_type))
        again = parse_codecs(json.loads(json.dumps([codec.to_json()])))
        assert again == (codec,) or "NaN" in str(again)
        chunk = np.full((2, 3), pipeline.spec.fill_value, pipeline.spec.dtype)
        assert pipeline.decode(bytes(pipeline.encode(chunk))).shape == (2, 3)


@for_each("name", NAMES)
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_any_configuration(name, data):
    configuration, data_type = data.draw(configurations(name))
    check(configuration, name, data_type)


@cache
def configurations(name):
    """Configurations of a codec, of which up to two members are wrong, and data types."""
    good = GOOD.get(name, {})
    written = parse_codec(named(name, **good)).to_json().get("configuration", {})
    members = sorted({*good, *written})
    changes = st.dictionaries(st.sampled_from(members or ["x"]), anything, max_size=2)
    types = [TYPES.get(name, "float64"), "int16", "bool", "string", "bfloat16"]
    return st.tuples(changes.map(lambda changed: {**good, **changed}), st.sampled_from(types))


@for_each("name", NAMES)
def test_the_error_of_a_codec_that_can_not_be_used_in_a_new_array_has_a_key(name):
    codec = parse_codec(named(name, **GOOD.get(name, {})))
    for spec in (spec_of("string"), spec_of("bool"), spec_of("float64", (1, 2, 3, 4, 5))):
        errors = []
        try:
            with strictness(strict=False, quiet=True):
                Pipeline(complete(chain(codec), spec), spec)
        except ZarrdaskError as error:
            errors.append(error)
        # Of a codec in it, such as "transpose.order", or of the codec.
        assert all(error.key for error in errors)


@for_each("name", NAMES)
@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_any_bytes(name, data):
    pipeline, good = encoded(name)
    start = data.draw(st.integers(0, len(good)))
    stop = data.draw(st.integers(start, len(good)))
    damaged = good[:start] + data.draw(st.binary(max_size=12)) + good[stop:]
    with suppress(ZarrdaskError):
        assert pipeline.decode(damaged).shape == (2, 3)


@cache
def encoded(name):
    """A chain of codecs, and a chunk that it wrote."""
    codec = parse_codec(named(name, **GOOD.get(name, {})))
    pipeline = Pipeline(chain(codec), spec_of(TYPES.get(name, "float64")))
    chunk = np.full((2, 3), pipeline.spec.fill_value, pipeline.spec.dtype)
    return pipeline, bytes(pipeline.encode(chunk))
