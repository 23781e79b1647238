"""What is damaged: the sample stores, and arrays that zarrdask writes with every codec."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import zarrdask
from tests.interop.extensions import CASES, codec
from tests.interop.shared import BIG, LITTLE, V3_SHARDS, v3_codecs
from tests.test_samples import SAMPLES


@dataclass(frozen=True)
class Member:
    """An array of a store.

    Attributes
    ----------
    store : str
        The name of its store in the corpus.
    path : str
        In the store.
    document : str
        The key of its metadata.
    data : tuple of str
        The keys of its chunks or shards.
    prefix : str
        What these begin with.
    """

    store: str
    path: str
    document: str
    data: tuple[str, ...]
    prefix: str


Values = dict[str, bytes]


@cache
def stores() -> dict[str, Values]:
    """Return all stores, by name."""
    found = {
        "made-3": made(3, v3_arrays()),
        "made-2": made(2, v2_arrays()),
        "made-draft": made("v3-draft", draft_arrays()),
        "made-protocol": made("v3-draft-protocol", draft_arrays()),
        "made-extensions": extensions(),
    }
    for folder in sorted(SAMPLES.iterdir()):
        if folder.is_dir() and folder.name != "expected":
            found[folder.name] = load(folder)
    return found


def load(folder: Any) -> Values:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@cache
def members() -> tuple[Member, ...]:
    """Return all arrays of all stores."""
    return tuple(member for name, values in stores().items() for member in arrays(name, values))


def arrays(store: str, values: Values) -> list[Member]:
    found = []
    for key in values:
        home, _, name = key.rpartition("/")
        if name == ".zarray" or (name == "zarr.json" and node_type(values[key]) == "array"):
            found.append((home, key, f"{home}/" if home else ""))
        elif key.startswith("meta/") and name.endswith(".array.json"):
            root = "root/" if key.startswith("meta/root/") else ""
            path = key.removeprefix(f"meta/{root}").removesuffix(".array.json")
            found.append((path, key, f"data/{root}{path}/"))
    return [
        Member(store, path, key, data_keys(values, prefix, key), prefix)
        for path, key, prefix in found
    ]


def node_type(document: bytes) -> Any:
    return json.loads(document).get("node_type")


def data_keys(values: Values, prefix: str, document: str) -> tuple[str, ...]:
    names = ("zarr.json", ".zarray", ".zattrs")
    return tuple(
        key
        for key in values
        if key.startswith(prefix) and key != document and key.rpartition("/")[2] not in names
    )


# --------------------------------------------------------------------------------------------
# Made here

SHAPE, CHUNKS = (7, 9), (4, 8)


def made(zarr_format: Any, options: dict[str, dict[str, Any]]) -> Values:
    """Return a store with small arrays, made with these options."""
    place: Values = {}
    root = zarrdask.create_group(place, zarr_format=zarr_format, attributes={"a": [1, {"b": None}]})
    values = (np.arange(63) % 11).reshape(SHAPE).astype("f4")
    for name, given in options.items():
        dtype = given.pop("dtype", "f4")
        found = given.pop("values", values.astype(dtype))
        given = {"chunks": CHUNKS[: found.ndim], "attributes": {"units": "K"}} | given
        root.create_array(name, shape=found.shape, dtype=found.dtype, **given)[...] = found
    return place


def extensions() -> Values:
    """Return a store with arrays that have extensions of v3."""
    place: Values = {}
    zarrdask.create_group(place)
    for name, (values, document) in CASES.items():
        place[f"{name}/zarr.json"] = json.dumps(document).encode()
        zarrdask.open_array(place, name, mode="r+")[...] = values
    return place


def v3_arrays() -> dict[str, dict[str, Any]]:
    codecs = {name: {"codecs": found} for name, found in v3_codecs(4).items()}
    shards = {
        f"shards/{name}": {"codecs": found, "chunks": (6, 8)} for name, found in V3_SHARDS.items()
    }
    others = {
        "others/0-d": {"values": np.array(5, "i8"), "chunks": ()},
        "others/bool": {"dtype": "bool", "fill_value": True},
        "others/complex": {"dtype": "c8", "fill_value": complex(np.nan, 1)},
        "others/raw": {"values": np.array([b"ab", b"c\x01"], "V2"), "chunks": (1,)},
        "others/names": {"dimension_names": ["y", None], "chunk_key_encoding": "v2"},
    }
    return {**codecs, **shards, **more_codecs(), **others}


def more_codecs() -> dict[str, dict[str, Any]]:
    """Return those that no peer knows."""
    gzip = codec("gzip", level=1)
    order = codec("transpose", order=[1, 0])
    chains: dict[str, tuple[str, list[Any]]] = {
        "reshape": ("f4", [codec("reshape", shape=[-1]), LITTLE]),
        "packbits-bool": ("bool", [{"name": "packbits"}]),
        "packbits": ("u1", [codec("packbits", padding_encoding="first_byte", last_bit=3)]),
        "bitround": ("f4", [codec("bitround", keepbits=10), LITTLE]),
        "conditional": ("f4", [LITTLE, codec("conditional", codecs=[gzip])]),
        "n5_default": ("i2", [codec("n5_default", codecs=[order, BIG, gzip])]),
        "zfp": ("f4", [codec("zfp", mode="reversible")]),
    }
    return {f"more/{n}": {"dtype": d, "codecs": codecs} for n, (d, codecs) in chains.items()}


def draft_arrays() -> dict[str, dict[str, Any]]:
    return {
        "plain": {"compressors": []},
        "gzip": {"compressors": "gzip"},
        "blosc": {"compressors": "blosc", "dtype": "i2"},
        "F": {"order": "F", "separator": "."},
        "shards": {"chunks": (2, 2), "shards": (4, 8), "fill_value": -1},
        "bool": {"dtype": "bool", "fill_value": True},
        "complex": {"dtype": "c8", "fill_value": complex(np.nan, 1)},
        "times": {"values": np.array([1, 2], "<M8[ns]"), "chunks": (1,)},
        "text": {"values": np.array(["ab", "c"], "<U2"), "chunks": (1,)},
        "0-d": {"values": np.array(5, "<i8"), "chunks": ()},
    }


def v2_arrays() -> dict[str, dict[str, Any]]:
    compressors: list[dict[str, Any]] = [
        *({"id": "blosc", "cname": c, "clevel": 5, "shuffle": s, "blocksize": 0}
          for c, s in (("lz4", 1), ("zstd", 2), ("blosclz", 0), ("zlib", 1), ("lz4hc", -1))),
        *({"id": name, "level": 3} for name in ("zlib", "gzip", "bz2", "zstd")),
        {"id": "zstd", "level": 1, "checksum": True},
        {"id": "lz4", "acceleration": 1},
        {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
    ]  # fmt: skip
    filters: dict[str, list[dict[str, Any]]] = {
        "delta": [{"id": "delta", "dtype": "<f4"}],
        "scaled": [
            {"id": "fixedscaleoffset", "scale": 10, "offset": 1, "dtype": "<f4", "astype": "<i2"}
        ],
        "quantize": [{"id": "quantize", "digits": 3, "dtype": "<f4"}],
        "bitround": [{"id": "bitround", "keepbits": 10}],
        "astype": [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f4"}],
        "shuffle": [{"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 1}],
        "base64": [{"id": "base64"}],
        **{
            name: [{"id": name}]
            for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3")
        },
    }
    objects = np.array(["a", "bc", "", "é"], object)
    fields = np.array([(1, (2, 3))], [("a", "<i2"), ("b", [("c", "u1"), ("d", ">f8")])])
    found = {f"compressors/{n}": {"compressors": c} for n, c in enumerate(compressors)}
    found |= {f"filters/{n}": {"filters": f, "compressors": []} for n, f in filters.items()}
    found |= {
        f"objects/{name}": {"values": objects, "filters": [{"id": name}], "chunks": (3,)}
        for name in ("vlen-utf8", "json2", "msgpack2")
    }
    return {
        **found,
        "objects/bytes": {
            "values": np.array([b"a", b"", b"\xff"], object),
            "filters": [{"id": "vlen-bytes"}],
        },
        "filters/packbits": {"dtype": "bool", "filters": [{"id": "packbits"}], "compressors": []},
        "others/fields": {"values": fields, "chunks": (1,)},
        "others/text": {"values": np.array(["ab", "c"], ">U2"), "fill_value": "x", "chunks": (1,)},
        "others/times": {"values": np.array([1, 2], "<M8[25s]"), "chunks": (1,)},
        "others/F": {"order": "F", "separator": "/"},
        "others/0-d": {"values": np.array(5, ">i8"), "chunks": ()},
    }
