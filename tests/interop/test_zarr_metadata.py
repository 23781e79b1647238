"""The documents that zarrdask writes pass the validators of zarr-metadata."""

import json
from typing import Any

import numpy as np
import pytest
from zarr_metadata.model import node_metadata_from_key_value_v2, node_metadata_from_key_value_v3

import zarrdask
from tests.interop.extensions import CASES
from tests.interop.shared import (
    BIG,
    LITTLE,
    SHAPES,
    SHARDS,
    V3_DTYPES,
    V3_SHARDS,
    sample,
    v3_codecs,
    zstd,
)


def check(place: dict[str, bytes], *, extensions: bool = False) -> None:
    """Validate every document of a hierarchy; names that it does not know are extensions."""
    homes = {key.rpartition("/")[0] for key in place if "zarr" in key or "zgroup" in key}
    assert homes
    for home in homes:
        prefix = f"{home}/" if home else ""
        names = (".zarray", ".zgroup", ".zattrs", "zarr.json")
        documents = {name: place[prefix + name] for name in names if prefix + name in place}
        if "zarr.json" not in documents:
            node_metadata_from_key_value_v2(documents)
            continue
        found = node_metadata_from_key_value_v3(documents)
        assert not found.must_understand_fields
        assert extensions or not found.unclaimed_fields


def check_array(shape: Any, dtype: Any, **options: Any) -> None:
    place: dict[str, bytes] = {}
    zarrdask.create_array(place, "g/x", shape=shape, dtype=dtype, **options)
    check(place)


@pytest.mark.parametrize("dtype", [*V3_DTYPES, "V3"])
@pytest.mark.parametrize("serializer", [LITTLE, BIG], ids=["little", "big"])
def test_v3_data_types(dtype, serializer):
    check_array((4, 6), dtype, codecs=[serializer, zstd(0)])
    check_array((4, 6), dtype)


@pytest.mark.parametrize("name", CASES)
def test_v3_extensions(name):
    _, document = CASES[name]
    place = {"zarr.json": json.dumps(document).encode()}
    zarrdask.open_array(place, mode="r+").attrs["late"] = 1
    check(place, extensions=True)


@pytest.mark.parametrize(
    "dtype",
    [
        *(
            "string",
            "bytes",
            "bfloat16",
            "int4",
            "float8_e5m2",
            "float4_e2m1fn",
            "complex_bfloat16",
        ),
        *("M8[ns]", "m8[25s]", "U3", "S3", "V3", [("a", "i4"), ("b", [("c", "f8")])]),
    ],
    ids=str,
)
def test_v3_extension_data_types(dtype):
    place: dict[str, bytes] = {}
    zarrdask.create_array(place, shape=(3,), dtype=dtype)
    check(place, extensions=True)


@pytest.mark.parametrize("name", v3_codecs(1))
def test_v3_codecs(name):
    check_array((13, 20), "float64", chunks=(5, 8), codecs=v3_codecs(8)[name])


@pytest.mark.parametrize("name", V3_SHARDS)
def test_v3_shards(name):
    check_array((13, 20), "float32", chunks=SHARDS, codecs=V3_SHARDS[name])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("shape", "chunks", "shards"), SHAPES.values(), ids=SHAPES)
def test_v3_shapes(shape, chunks, shards, order):
    check_array(shape, "int16", chunks=chunks, shards=shards, order=order)


@pytest.mark.parametrize(
    "options",
    [
        {"compressors": "gzip"},
        {"compressors": []},
        {"compressors": ["blosc", "crc32c"], "order": "F"},
        {"compressors": {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 0}},
        {"chunk_key_encoding": "v2"},
        {"separator": "."},
        {"dimension_names": ["y", None], "attributes": {"units": "K", "た": [None, 1.5]}},
    ],
    ids=str,
)
def test_v3_options(options):
    check_array((13, 20), "float32", **options)


FILLS: list[tuple[str, Any]] = [
    ("bool", True),
    ("int64", -(2**63)),
    ("uint64", 2**64 - 1),
    ("float16", 0.1),
    ("float32", np.nan),
    ("float32", np.array(0x7FC12345, "u4").view("f4")[()]),
    ("float64", -np.inf),
    ("float64", -0.0),
    ("complex64", complex(np.nan, -np.inf)),
    ("V3", b"\x01\x00\xff"),
]


@pytest.mark.parametrize(("dtype", "fill"), FILLS, ids=str)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_fill_values(dtype, fill, zarr_format):
    fill = np.void(fill) if dtype[0] == "V" else fill
    check_array((3,), dtype, fill_value=fill, zarr_format=zarr_format)


V2_DTYPES: list[Any] = [
    *("|b1", "|i1", ">i2", "<u8", "<f2", ">f8", "<c16", "|S5", "<U4", ">U4", "|V3"),
    *("<M8[ns]", ">m8[25s]"),
    [("x", "<f4"), ("z", "<i2", (2, 2))],
    [("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])],
]


@pytest.mark.parametrize("dtype", V2_DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_v2_data_types(dtype, order):
    check_array((4, 6), np.dtype(dtype), order=order, zarr_format=2, separator="/")
    fill = sample(dtype, (3,))[-1]
    check_array((4, 6), np.dtype(dtype), order=order, zarr_format=2, fill_value=fill)


@pytest.mark.parametrize(
    "options",
    [
        {"filters": [{"id": "delta", "dtype": "<f4"}]},
        {"filters": [{"id": "shuffle", "elementsize": 4}, {"id": "crc32"}]},
        {"filters": [{"id": "fixedscaleoffset", "scale": 2, "offset": 1, "dtype": "<f4"}]},
        *({"compressors": compressor} for compressor in ("gzip", "blosc", "zstd", [])),
        {"compressors": {"id": "zlib", "level": 9}},
        {"compressors": {"id": "bz2", "level": 9}},
        {"compressors": {"id": "lz4", "acceleration": 1}},
        {"dimension_names": ["y", "x"], "attributes": {"units": "K"}},
    ],
    ids=str,
)
def test_v2_options(options):
    check_array((13, 20), "float32", zarr_format=2, **options)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups(zarr_format):
    place: dict[str, bytes] = {}
    root = zarrdask.create_group(place, zarr_format=zarr_format, attributes={"a": {"b": [1]}})
    root.create_group("g/h").attrs["late"] = "た"
    root.create_array("g/x", shape=(3,), dtype="i4").attrs["units"] = "K"
    check(place)
