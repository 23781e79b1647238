"""Arrays with extensions of v3, as values and documents: interop and damage tests share them."""

from typing import Any

import numpy as np

from tests.interop.shared import BIG, CRC32C, LITTLE, sample, sharding, zstd


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def document(
    values: np.ndarray,
    data_type: Any,
    codecs: list[Any],
    chunks: Any = (5, 8),
    fill: Any = 0,
    grid: str = "regular",
) -> dict[str, Any]:
    lengths = {"chunk_shape": chunks[: values.ndim]}
    edges = {"kind": "inline", "chunk_shapes": chunks}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": values.shape,
        "data_type": data_type,
        "chunk_grid": codec(grid, **(lengths if grid == "regular" else edges)),
        "chunk_key_encoding": codec("default", separator="/"),
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    }


def rectilinear(edges: list[Any], *codecs: Any) -> tuple[np.ndarray, dict[str, Any]]:
    values = sample("int32")
    found = document(values, "int32", [*codecs] or [LITTLE], edges, grid="rectilinear")
    return values, found


def typed(dtype: Any, data_type: Any, fill: Any) -> tuple[np.ndarray, dict[str, Any]]:
    values = sample(dtype)
    endian = [LITTLE] if values.dtype.itemsize > 1 else [{"name": "bytes"}]
    return values, document(values, data_type, [*endian, zstd(0)], fill=fill)


def filtered(dtype: str, *codecs: Any, fill: Any = 0) -> tuple[np.ndarray, dict[str, Any]]:
    """Small whole numbers, which survive all of them."""
    ramp = np.arange(13 * 20).reshape(13, 20) % 8
    values = ramp % 2 == 1 if dtype == "bool" else ramp.astype(dtype)
    fill = bool(fill) if dtype == "bool" else fill
    return values, document(values, dtype, [*codecs], fill=fill)


def objects(*items: Any) -> np.ndarray:
    values = np.empty(len(items), object)
    values[:] = items
    return values


STRINGS = objects("", "a", "né\U0001f600", "x" * 300, "\x00b", "", "z")
BYTES = objects(b"", b"a\x00", b"x" * 300, b"\xff", b"", b"\x00", b"z")
FIELDS = [{"name": "a", "data_type": "float32"}, {"name": "b", "data_type": "int16"}]
NESTED = [
    {"name": "x", "data_type": "uint8"},
    {"name": "s", "data_type": codec("struct", fields=FIELDS)},
]
ENCODE = [["NaN", 0], ["Infinity", 255]]
DECODE = [[0, "NaN"], [255, "Infinity"]]

#: Name: (values, document).
CASES: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "rectilinear": rectilinear([[6, 4, 3], [1, 2, 17]]),
    "rectilinear-runs": rectilinear([[[3, 4], 1], [[5, 4]]], BIG, zstd(0)),
    "rectilinear-overhanging": rectilinear([[10, 10], [7, 13]], LITTLE, CRC32C),
    "rectilinear-shards": rectilinear([[4, 8, 4], [8, 12]], sharding((2, 4), [LITTLE])),
    "struct": typed([("a", "<f4"), ("b", "<i2")], codec("struct", fields=FIELDS), {"a": 0, "b": 0}),
    "struct-nested": typed(
        [("x", "u1"), ("s", [("a", "<f4"), ("b", "<i2")])],
        codec("struct", fields=NESTED),
        {"x": 1, "s": {"a": "NaN", "b": 2}},
    ),
    "datetime64": typed("<M8[ns]", codec("numpy.datetime64", unit="ns", scale_factor=1), -(2**63)),
    "timedelta64": typed("<m8[25s]", codec("numpy.timedelta64", unit="s", scale_factor=25), 3),
    "fixed_length_utf32": typed("<U3", codec("fixed_length_utf32", length_bytes=12), "né"),
    "null_terminated_bytes": typed("S5", codec("null_terminated_bytes", length_bytes=5), "YWI="),
    "raw_bytes": typed("V3", codec("raw_bytes", length_bytes=3), "AQD/"),
    "string": (STRINGS, document(STRINGS, "string", [{"name": "vlen-utf8"}, zstd(0)], fill="")),
    "variable_length_bytes": (
        BYTES,
        document(BYTES, "variable_length_bytes", [{"name": "vlen-bytes"}], fill=""),
    ),
    "scale_offset": filtered("float64", codec("scale_offset", offset=-10, scale=0.5), LITTLE),
    "cast_value": filtered("int32", codec("cast_value", data_type="uint8"), {"name": "bytes"}),
    "cast_value-clamp": filtered(
        "float32",
        codec("cast_value", data_type="int8", out_of_range="clamp", rounding="towards-zero"),
        {"name": "bytes"},
    ),
    "scaled-and-cast": filtered(
        "float64",
        codec("scale_offset", offset=-10, scale=2),
        codec("cast_value", data_type="uint8", scalar_map={"encode": ENCODE, "decode": DECODE}),
        {"name": "bytes"},
        fill="NaN",
    ),
    "delta": filtered("int32", codec("numcodecs.delta", dtype="<i4"), LITTLE),
    "fixedscaleoffset": filtered(
        "float64",
        codec("numcodecs.fixedscaleoffset", scale=10, offset=1, dtype="<f8", astype="<i2"),
        LITTLE,
    ),
    "quantize": filtered("float32", codec("numcodecs.quantize", digits=3, dtype="<f4"), LITTLE),
    "bitround": filtered("float32", codec("numcodecs.bitround", keepbits=10), LITTLE),
    "astype": filtered(
        "int64", codec("numcodecs.astype", encode_dtype="<i2", decode_dtype="<i8"), LITTLE
    ),
    "packbits": filtered("bool", codec("numcodecs.packbits"), {"name": "bytes"}),
    "shuffle": filtered("float32", LITTLE, codec("numcodecs.shuffle", elementsize=4)),
    "zlib": filtered("float32", BIG, codec("numcodecs.zlib", level=9)),
    "gzip": filtered("float32", LITTLE, codec("numcodecs.gzip", level=1)),
    "bz2": filtered("float32", LITTLE, codec("numcodecs.bz2", level=1)),
    "lzma": filtered("float32", LITTLE, codec("numcodecs.lzma", preset=1)),
    "lz4": filtered("float32", LITTLE, codec("numcodecs.lz4", acceleration=3)),
    "zstd": filtered("float32", LITTLE, codec("numcodecs.zstd", level=3)),
    "blosc": filtered(
        "float32",
        LITTLE,
        codec("numcodecs.blosc", cname="zstd", clevel=3, shuffle=2, blocksize=0),
    ),
    **{
        name: filtered("uint16", LITTLE, codec(f"numcodecs.{name}"))
        for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3")
    },
}
