"""zarrdask and zarr-python 2.18 read what the other writes, in v2."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrdask
from tests.interop.shared import CHUNKS, SHAPES, same, sample

BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
OBJECTS_OF_JSON = [["a", 1], {"b": [None]}, "x" * 99, 2.5, ["a", 1], None, True]

#: Every kind; of those with a byte order both orders.
DTYPES: list[Any] = [
    *("|b1", "|i1", "|u1", "|S1", "|S12", "|V1", "|V5"),
    *(
        f"{order}{kind}"
        for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "U1", "U4")
        for order in "<>"
    ),
    *("<M8[ns]", ">M8[D]", "<M8[25s]", "<M8[Y]", "<m8[us]", ">m8[ms]"),
    [("r", "u1"), ("g", "u1"), ("b", "u1")],
    [("a", "<f4"), ("b", ">i2"), ("c", "S3"), ("d", "<c8")],
    [("x", "<f4"), ("z", "<i2", (2, 2))],
    [("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])],
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
class TestDataTypes:
    def test_zarrdask_reads(self, tmp_path, ours, zarr2, dtype, order):
        values = sample(dtype)
        zarr2.write(values, tmp_path, chunks=CHUNKS, order=order)
        same(ours.read(tmp_path), values)

    def test_zarr2_reads(self, tmp_path, ours, zarr2, dtype, order):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, order=order, zarr_format=2)
        found, facts = zarr2.look(tmp_path)
        same(found, values)
        assert facts == {"attributes": {}, "chunks": list(CHUNKS), "order": order}


#: Codec, values. pickle runs code: zarrdask refuses it.
OBJECTS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "vlen-utf8": ({"id": "vlen-utf8"}, ["", "a", "né\U0001f600", "x" * 300, "\x00b", "", "z"]),
    "vlen-bytes": ({"id": "vlen-bytes"}, [b"", b"a\x00", b"x" * 300, b"\xff", b"", b"\x00", b"z"]),
    "json2": ({"id": "json2"}, OBJECTS_OF_JSON),
    "msgpack2": ({"id": "msgpack2"}, OBJECTS_OF_JSON),
    "categorize": (
        {"id": "categorize", "labels": ["a", "b"], "dtype": "|O", "astype": "|u1"},
        ["a", "b", "a", "a", "b", "b", "a"],
    ),
}


def objects(items: list[Any]) -> np.ndarray:
    values = np.empty(len(items), object)
    values[:] = items
    return values


@pytest.mark.parametrize(("codec", "items"), OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("compressor", [None, BLOSC], ids=["raw", "blosc"])
class TestObjects:
    def test_zarrdask_reads(self, tmp_path, ours, zarr2, codec, items, compressor):
        values = objects(items)
        zarr2.write(values, tmp_path, chunks=[3], object_codec=codec, compressor=compressor)
        same(ours.read(tmp_path), values)

    def test_zarr2_reads(self, tmp_path, ours, zarr2, codec, items, compressor):
        values = objects(items)
        compressors = [] if compressor is None else compressor
        options = {"filters": [codec], "compressors": compressors, "zarr_format": 2}
        ours.write(values, tmp_path, chunks=(3,), **options)
        same(zarr2.read(tmp_path), values)


@pytest.mark.parametrize("shape", [(), (2,), (3, 4), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("name", ["vlen-utf8", "vlen-bytes", "json2", "msgpack2"])
class TestObjectsOfAnyShape:
    def values(self, name, shape):
        size = int(np.prod(shape))
        items = OBJECTS[name][1]
        return objects([items[n % len(items)] for n in range(1, size + 1)]).reshape(shape)

    def test_zarrdask_reads(self, tmp_path, ours, zarr2, name, shape):
        values = self.values(name, shape)
        if name == "msgpack2" and not shape:
            values[()] = [1, 2]  # numcodecs stores lists only
        chunks = [2] * len(shape)
        zarr2.write(values, tmp_path, chunks=chunks, object_codec={"id": name}, compressor=None)
        same(ours.read(tmp_path), values)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_zarr2_reads(self, tmp_path, ours, zarr2, name, shape, order):
        values = self.values(name, shape)
        chunks = (2,) * len(shape)
        options = {"filters": {"id": name}, "zarr_format": 2, "order": order}
        ours.write(values, tmp_path, chunks=chunks, **options)
        same(zarr2.read(tmp_path), values)


def test_a_shuffle_without_a_size_changes_nothing(tmp_path, ours, zarr2):
    values = sample("<i4")
    zarr2.write(values, tmp_path, chunks=CHUNKS, filters=[{"id": "shuffle", "elementsize": 0}])
    same(ours.read(tmp_path), values)


def test_zarrdask_reads_lists_of_numbers(tmp_path, ours, zarr2):
    items = [np.arange(n, dtype="<i4") for n in (0, 3, 1, 0, 7)]
    codec = {"id": "vlen-array", "dtype": "<i4"}
    zarr2.write(objects(items), tmp_path, chunks=[2], object_codec=codec)
    found = zarrdask.open_array(tmp_path)[...]
    assert [item.tolist() for item in found] == [item.tolist() for item in items]


def test_pickled_objects_are_refused(tmp_path, zarr2):
    zarr2.write(objects([{1}, {2}]), tmp_path, object_codec={"id": "pickle"})
    with pytest.raises(zarrdask.errors.UnsupportedError, match="pickle"):
        zarrdask.open_array(tmp_path)


def blosc(cname: str, shuffle: int, **options: Any) -> dict[str, Any]:
    return {**BLOSC, "cname": cname, "shuffle": shuffle, **options}


#: LZMA has none: numcodecs writes `null` members, which it takes itself only.
COMPRESSORS: list[dict[str, Any] | None] = [
    None,
    *(blosc(cname, 1) for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")),
    *(blosc("lz4", shuffle, clevel=9, blocksize=256) for shuffle in (-1, 0, 2)),
    {"id": "zlib", "level": 9},
    {"id": "gzip", "level": 1},
    {"id": "bz2", "level": 9},
    {"id": "lz4", "acceleration": 3},
    {"id": "zstd", "level": 7},
    {"id": "zstd", "level": 3, "checksum": True},
    {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
    {"id": "lzma", "format": 3, "check": -1, "preset": None, "filters": [{"id": 33, "preset": 1}]},
]


@pytest.mark.parametrize("dtype", [">f8", "<i2", "|u1"])
@pytest.mark.parametrize("compressor", COMPRESSORS, ids=json.dumps)
class TestCompressors:
    def test_zarrdask_reads(self, tmp_path, ours, zarr2, dtype, compressor):
        values = sample(dtype)
        zarr2.write(values, tmp_path, chunks=CHUNKS, compressor=compressor)
        same(ours.read(tmp_path), values)

    def test_zarr2_reads(self, tmp_path, ours, zarr2, dtype, compressor):
        values = sample(dtype)
        compressors = [] if compressor is None else compressor
        ours.write(values, tmp_path, chunks=CHUNKS, compressors=compressors, zarr_format=2)
        same(zarr2.read(tmp_path), values)


#: dtype, order, filters; small whole numbers survive all of them.
FILTERS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "delta": ("<i4", "C", [{"id": "delta", "dtype": "<i4"}]),
    "delta-narrowed": (">i4", "F", [{"id": "delta", "dtype": ">i4", "astype": "<i2"}]),
    "scaled": (
        "<f8",
        "F",
        [{"id": "fixedscaleoffset", "scale": 10, "offset": 1, "dtype": "<f8", "astype": ">i2"}],
    ),
    "quantize": ("<f4", "C", [{"id": "quantize", "digits": 3, "dtype": "<f4"}]),
    "bitround": ("<f4", "C", [{"id": "bitround", "keepbits": 10}]),
    "astype": ("<i8", "C", [{"id": "astype", "encode_dtype": ">i2", "decode_dtype": "<i8"}]),
    "packbits": ("|b1", "F", [{"id": "packbits"}]),
    "shuffle": (">f8", "F", [{"id": "shuffle", "elementsize": 8}]),
    "crc32": ("<u2", "C", [{"id": "crc32"}]),
    "crc32c": ("<u2", "C", [{"id": "crc32c"}]),
    "adler32": (">u2", "F", [{"id": "adler32"}]),
    "fletcher32": ("<f4", "C", [{"id": "fletcher32"}]),
    "jenkins": ("<f4", "C", [{"id": "jenkins_lookup3", "initval": 3}]),
    "base64": ("<i4", "C", [{"id": "base64"}]),
    "categorize": (
        "<U1",
        "C",
        [{"id": "categorize", "labels": list("01234567"), "dtype": "<U1", "astype": "|u1"}],
    ),
    "delta-shuffle": (
        "<i8",
        "C",
        [{"id": "delta", "dtype": "<i8"}, {"id": "shuffle", "elementsize": 8}],
    ),
}


@pytest.mark.parametrize(("dtype", "order", "filters"), FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}], ids=["raw", "zlib"])
class TestFilters:
    def values(self, dtype: str) -> np.ndarray:
        ramp = np.arange(13 * 20).reshape(13, 20) % 8
        return (ramp % 2 == 1) if dtype == "|b1" else ramp.astype(dtype)

    def test_zarrdask_reads(self, tmp_path, ours, zarr2, dtype, order, filters, compressor):
        values = self.values(dtype)
        options = {"order": order, "filters": filters, "compressor": compressor}
        zarr2.write(values, tmp_path, chunks=CHUNKS, **options)
        same(ours.read(tmp_path), values)

    def test_zarr2_reads(self, tmp_path, ours, zarr2, dtype, order, filters, compressor):
        values = self.values(dtype)
        compressors = [] if compressor is None else compressor
        options = {"order": order, "filters": filters, "compressors": compressors}
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, **options)
        same(zarr2.read(tmp_path), values)


SHAPES_V2 = {name: case[:2] for name, case in SHAPES.items() if case[2] is None}


@pytest.mark.parametrize(("shape", "chunks"), SHAPES_V2.values(), ids=SHAPES_V2)
@pytest.mark.parametrize("separator", [".", "/"])
class TestShapes:
    def test_zarrdask_reads(self, tmp_path, ours, zarr2, shape, chunks, separator):
        values = sample("float64", shape)
        zarr2.write(values, tmp_path, chunks=chunks, dimension_separator=separator)
        same(ours.read(tmp_path), values)

    def test_zarr2_reads(self, tmp_path, ours, zarr2, shape, chunks, separator):
        values = sample("float64", shape)
        ours.write(values, tmp_path, chunks=chunks, separator=separator, zarr_format=2)
        same(zarr2.read(tmp_path), values)


FILLS: list[tuple[Any, Any]] = [
    ("bool", True),
    ("int64", -(2**63)),
    ("uint64", 2**64 - 1),
    ("float16", 0.1),
    ("float32", np.nan),
    ("float64", -np.inf),
    ("float64", 5e-324),
    ("complex64", complex(np.nan, -np.inf)),
    (">c16", complex(0.1, -3)),  # a zero's sign and infinities it would lose
    (">f8", 0.1),
    ("|S5", b"ab"),
    ("|S3", b"\x00\xff"),
    ("<U3", "né"),
    (">U2", "\U0001f600"),
    ("|V3", b"\x01\x00\xff"),
    ("<M8[ns]", "NaT"),
    (">M8[D]", "2024-10-04"),
    ("<m8[s]", -1),
    ([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])], (1.5, (2.5, 7))),
]


@pytest.mark.parametrize(("dtype", "fill"), FILLS, ids=str)
class TestFillValues:
    """Of seven elements two are written: the rest has the fill value's bits."""

    def values(self, dtype: Any, fill: Any) -> np.ndarray:
        values = np.empty(7, dtype)
        values[...] = np.array(np.void(fill)) if dtype == "|V3" else np.array(fill, dtype)
        values[3:5] = np.zeros((), dtype)
        return values

    def test_zarrdask_reads(self, tmp_path, ours, zarr2, dtype, fill):
        values = self.values(dtype, fill)
        zarr2.write(values, tmp_path, chunks=[2], fill=values[0], rows=[3, 5])
        same(ours.read(tmp_path), values)
        assert zarrdask.open_array(tmp_path).nchunks_stored() == 2

    def test_zarr2_reads(self, tmp_path, ours, zarr2, dtype, fill):
        values = self.values(dtype, fill)
        ours.write(values, tmp_path, chunks=(2,), zarr_format=2, fill_value=values[0])
        same(zarr2.read(tmp_path), values)
        assert zarrdask.open_array(tmp_path).nchunks_stored() == 2


def test_zarr2_reads_a_signed_zero_as_fill_value(tmp_path, ours, zarr2):
    # The other way is not to be had: it writes 0.0.
    values = np.array([-0.0, -0.0, 0.0, 0.0, -0.0])
    ours.write(values, tmp_path, chunks=(2,), zarr_format=2, fill_value=-0.0)
    same(zarr2.read(tmp_path), values)


# --------------------------------------------------------------------------------------------
# Groups, attributes, and taking turns on one store

ATTRIBUTES = {"units": "K", "unicode": "た\U0001f600", "nested": {"list": [1, 2.5, None, True]}}


class TestGroups:
    def write(self, peer: Any, place: Path) -> None:
        peer.call("group", place=str(place), name=None, attributes={"root": [1]})
        peer.call("group", place=str(place), name="sub/deeper", attributes=ATTRIBUTES)
        peer.write(sample("int32"), place, "sub/x", chunks=CHUNKS, attributes=ATTRIBUTES)

    def check(self, group: Any) -> None:
        assert {path: dict(node.attrs) for path, node in group.walk()} == {
            "sub": {},
            "sub/deeper": ATTRIBUTES,
            "sub/x": ATTRIBUTES,
        }
        assert dict(group.attrs) == {"root": [1]}
        same(group["sub/x"][...], sample("int32"))

    def test_zarrdask_reads(self, tmp_path, zarr2):
        self.write(zarr2, tmp_path)
        self.check(zarrdask.open_group(tmp_path))

    def test_zarrdask_reads_consolidated(self, tmp_path, zarr2):
        self.write(zarr2, tmp_path)
        zarr2.call("consolidate", place=str(tmp_path))
        self.check(zarrdask.open_group(tmp_path))

    def test_zarrdask_reads_a_zip_file(self, tmp_path, zarr2):
        place = tmp_path / "x.zip"
        zarr2.write(sample("int32"), place, "sub/x", chunks=CHUNKS, attributes=ATTRIBUTES)
        array = zarrdask.open_array(place, "sub/x")
        assert dict(array.attrs) == ATTRIBUTES
        same(array[...], sample("int32"))

    def test_zarr2_reads(self, tmp_path, zarr2):
        root = zarrdask.create_group(tmp_path, zarr_format=2, attributes={"root": [1]})
        root.create_group("sub/deeper", attributes=ATTRIBUTES)
        array = root.create_array(
            "sub/x", shape=(13, 20), dtype="int32", chunks=CHUNKS, attributes=ATTRIBUTES
        )
        array[...] = sample("int32")
        assert zarr2.call("tree", place=str(tmp_path)) == {
            "": ["group", {"root": [1]}],
            "sub": ["group", {}],
            "sub/deeper": ["group", ATTRIBUTES],
            "sub/x": ["array", ATTRIBUTES],
        }
        same(zarr2.read(tmp_path, "sub/x"), sample("int32"))


class TestTakingTurns:
    def test_zarr2_reads_an_update(self, tmp_path, ours, zarr2):
        values, region = sample("float32"), np.s_[3:11, 5:17]
        zarr2.write(values, tmp_path, chunks=CHUNKS, compressor=BLOSC)
        ours.update(values[region] + 1, tmp_path, region)
        values[region] += 1
        same(zarr2.read(tmp_path), values)

    def test_zarrdask_reads_an_update(self, tmp_path, ours, zarr2):
        values, region = sample("float32"), np.s_[3:11, 5:17]
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2)
        zarr2.update(values[region] + 1, tmp_path, None, [3, 5], draft=False)
        values[region] += 1
        same(ours.read(tmp_path), values)
