"""Codecs of v2: ``order``, ``filters`` and ``compressor`` <-> one list of codecs."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import NATIVE, BytesCodec, Endian, has_byte_order
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec, limited
from zarrdask.formats.codecs.codec import Codec, Json, Kind, check_count
from zarrdask.formats.codecs.numcodecs.adapter import OBJECT_CODECS, BufferCodec, ObjectCodec
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.fill_json import parse_base64, render_v2
from zarrdask.formats.metadata.invalid_documents import LEVELS
from zarrdask.formats.metadata.model import ArrayMetadata

#: The members of a .zarray in the order in which netCDF-C writes them. No other known writer has
#: this order.
_NETCDF_ORDER = [
    *("zarr_format", "shape", "dtype", "chunks", "fill_value", "order", "compressor", "filters")
]
_SHUFFLES = {
    "NONE": 0,
    "BYTE": 1,
    "BIT": 2,
    "0": 0,
    "1": 1,
    "2": 2,
    "noshuffle": 0,
    "shuffle": 1,
    "bitshuffle": 2,
}


def chain(
    order: str,
    filters: list[Any],
    compressor: Any,
    dtype: np.dtype[Any],
    ndim: int,
    *,
    netcdf: bool = False,
) -> tuple[Codec, ...]:
    """Return v2's order, filters and compressor as one list of codecs.

    The order "F" becomes a transpose codec. `netcdf` says that netCDF-C wrote the array.
    """
    check_count(filters, "filters")
    codecs: list[Codec] = []
    if order == "F" and ndim > 1:
        codecs.append(TransposeCodec(tuple(reversed(range(ndim)))))
    if dtype.hasobject:
        codecs.append(_object_codec(filters.pop(0) if filters else None))
        view = "|u1"
    else:
        codecs.append(BytesCodec(_endian(dtype)))
        view = dtype.str if dtype.names is None else "|u1"
    for config in filters:
        codec = _filter(config, view, netcdf=netcdf)
        codecs.append(codec)
        view = codec.output.str
    if compressor is not None:
        itemsize = np.dtype(view).itemsize if filters else dtype.itemsize
        codecs.append(_compressor(compressor, itemsize, view))
    return tuple(codecs)


def object_fill(codecs: tuple[Codec, ...], fill: Any) -> Any:
    """Return the fill value of an array of objects in a form that its codec can encode.

    Documents have 0, "" or null for objects of every kind (conformance A-32). Null stays None. For
    bytes, zarr-python 3 writes base64.
    """
    codec = next((codec for codec in codecs if isinstance(codec, ObjectCodec)), None)
    if codec is None or fill is None:
        return fill
    if codec.name == "vlen-bytes" and isinstance(fill, str):
        return parse_base64(fill, "base64 of the bytes")
    if codec.empty is None:
        return fill
    is_empty = isinstance(fill, int) and not fill
    return codec.empty if is_empty or (codec.name == "vlen-array" and not fill) else fill


def render_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as JSON: the inverse of `parse_v2` and `object_fill`."""
    if dtype.hasobject and isinstance(value, bytes):
        return b64encode(value).decode()
    return render_v2(value, dtype)


def _endian(dtype: np.dtype[Any]) -> Endian | None:
    if not has_byte_order(dtype):
        return None
    if dtype.names is not None:
        return "own"
    return {"<": "little", ">": "big", "=": NATIVE}[dtype.byteorder]  # type: ignore[return-value]


def _config(value: Any, key: str) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise MetadataError(
            "invalid codec", key=key, found=value, expected='an object with an "id" (or null)'
        )
    for name in LEVELS:
        if type(value.get(name)) not in (int, NoneType):
            raise MetadataError(
                "a level must be an integer", key=f"{key}.{name}", found=value[name]
            )
    return _NORMALISE.get(value["id"], dict)(value)


def _object_codec(value: Any) -> Codec:
    if value is None:
        raise MetadataError(
            "objects need a codec that stores them",
            key="filters",
            expected=f"one of {', '.join(sorted(OBJECT_CODECS))} as the first filter",
        )
    codec = ObjectCodec.made(_config(value, "filters"))
    if codec.name not in OBJECT_CODECS:
        raise UnsupportedError(
            "this codec can't store objects",
            key="filters",
            found=codec.name,
            expected=", ".join(sorted(OBJECT_CODECS)),
        )
    return codec


def _filter(value: Any, view: str, *, netcdf: bool) -> BufferCodec:
    config = _config(value, "filters")
    if netcdf:
        config = _sized_shuffle(config, np.dtype(view).itemsize)
    return BufferCodec.made(config, view)


def _compressor(value: Any, itemsize: int, view: str) -> Codec:
    config = _config(value, "compressor")
    build = _COMPRESSORS.get(config["id"])
    if build is None:
        return BufferCodec.made(config, view)
    if unknown := sorted(set(config) - {"id"} - _COMPRESSOR_MEMBERS[config["id"]]):
        # Decoding needs none of them: compressed chunks have a header.
        report_deviation(
            "A-58", "some members are unknown", key=f"compressor {config['id']}", found=unknown
        )
    return build(config, itemsize)


def _blosc(config: Json, itemsize: int) -> Codec:
    return BloscCodec(
        config.get("cname", "lz4"),
        config.get("clevel", 5),
        config.get("shuffle", 1),
        config.get("blocksize", 0),
    ).bind(itemsize)


_COMPRESSORS: Mapping[str, Callable[[Json, int], Codec]] = {
    "blosc": _blosc,
    "gzip": lambda config, _: GzipCodec(config.get("level", 1)),
    "zlib": lambda config, _: ZlibCodec(config.get("level", 1)),
    "zstd": lambda config, _: ZstdCodec(
        limited(config.get("level", 0)), bool(config.get("checksum", False))
    ),
}

_COMPRESSOR_MEMBERS = {
    "blosc": {"cname", "clevel", "shuffle", "blocksize", "typesize"},
    "gzip": {"level"},
    "zlib": {"level"},
    "zstd": {"level", "checksum"},
}


def render_codecs(metadata: ArrayMetadata) -> tuple[str, list[Json], Json | None]:
    """Return the ``order``, ``filters`` and ``compressor`` for the codecs of an array."""
    codecs = list(metadata.codecs)
    order = "C"
    if codecs and isinstance(codecs[0], TransposeCodec):
        if codecs[0].order != tuple(reversed(range(len(metadata.shape)))):
            raise UnsupportedError(
                "v2 has the orders C and F only", key="order", found=codecs[0].order
            )
        order = "F"
        codecs = codecs[1:]
    configs = [render_codec(codec) for codec in codecs if not isinstance(codec, BytesCodec)]
    last = codecs[-1] if codecs else None
    is_filter = isinstance(last, BytesCodec | ObjectCodec) or (
        isinstance(last, BufferCodec) and last.name not in COMPRESSORS
    )
    if is_filter or not configs:
        return order, configs, None
    return order, configs[:-1], configs[-1]


#: The codecs of numcodecs that are written as ``compressor``; the others are filters.
COMPRESSORS = frozenset({*_COMPRESSORS, "bz2", "lz4", "lzma"})


def render_codec(codec: Codec) -> Json:
    """Return the v2 configuration of a codec."""
    if isinstance(codec, BufferCodec | ObjectCodec):
        return dict(json.loads(codec.config))
    if isinstance(codec, BloscCodec):
        members = codec.to_json()["configuration"]
        members.pop("typesize", None)
        return {"id": "blosc", **members, "shuffle": codec.shuffle}
    if isinstance(codec, ZlibCodec | GzipCodec | ZstdCodec):
        members = codec.to_json()["configuration"]
        if not members.get("checksum", True):
            del members["checksum"]  # numcodecs before 0.13 has no such member
        return {"id": codec.name.removeprefix("numcodecs."), **members}
    raise UnsupportedError("v2 has no such codec", key="codecs", found=codec.name)


# --------------------------------------------------------------------------------------------
# Configurations of GDAL and netCDF-C that numcodecs rejects or misreads


def is_netcdf(document: Json, attributes: Json) -> bool:
    """Return whether netCDF-C wrote an array.

    Its own members in the document or the attributes begin with ``_nczarr`` or ``_NCZARR``. In its
    mode for plain Zarr there are none, and only the order of the members reveals it.
    """
    own_keys = any(name.lower().startswith("_nczarr") for name in (*document, *attributes))
    return own_keys or list(document)[: len(_NETCDF_ORDER)] == _NETCDF_ORDER


def _named_shuffle(config: Json) -> Json:
    # GDAL up to 3.6 writes its creation option here, others the words of v3. Decoding does not
    # need it: each chunk of Blosc has its own header.
    shuffle = config.get("shuffle")
    number = _SHUFFLES.get(shuffle) if isinstance(shuffle, str) else None
    if number is None:
        return config
    report_deviation(
        "A-57",
        "a name stands for the number of a shuffle",
        key="blosc.shuffle",
        found=shuffle,
        expected="a number",
    )
    return {**config, "shuffle": number}


def _without_delta(config: Json) -> Json:
    # GDAL names the filter that it used with LZMA. Decoding does not need it, as it is in the
    # header of each chunk, too.
    if "delta" not in config:
        return config
    report_deviation("A-58", "a member is unknown", key="codec lzma", found="delta")
    return {name: value for name, value in config.items() if name != "delta"}


def _sized_shuffle(config: Json, itemsize: int) -> Json:
    """Return a shuffle configuration of netCDF-C with its element size filled in.

    In netCDF-C 4.9 and later, a size of zero means the size of the data type, as in HDF5. In
    numcodecs it means that nothing is shuffled, which would silently return wrong values.
    """
    if config["id"] != "shuffle" or config.get("elementsize") != 0:
        return config
    report_deviation(
        "A-61",
        "the size of the elements is missing",
        key="shuffle.elementsize",
        found=0,
        expected=f"{itemsize}, for this type",
    )
    return {**config, "elementsize": itemsize}


#: Return the configuration of another writer in the form that numcodecs understands.
_NORMALISE: Mapping[str, Callable[[Json], Json]] = {"blosc": _named_shuffle, "lzma": _without_delta}


def codec_options(
    metadata: ArrayMetadata,
) -> tuple[Literal["C", "F"], tuple[Codec, ...], tuple[Codec, ...]]:
    """Return the order, filters and compressors of an array's chunks, which may be in shards.

    A codec of numcodecs is a filter, in v2, unless it is the last one and compresses.
    """
    shard = metadata.shard
    codecs = list(metadata.codecs if shard is None else shard.codec.codecs)
    reverse = tuple(reversed(range(len(metadata.shape))))
    order: Literal["C", "F"] = "C"
    if len(reverse) > 1 and isinstance(codecs[0], TransposeCodec) and codecs[0].order == reverse:
        order = "F"
        codecs = codecs[1:]
    filters, compressors = [], []
    for codec in codecs:
        if codec.kind is Kind.ARRAY_ARRAY or isinstance(codec, BufferCodec | ObjectCodec):
            filters.append(codec)
        elif codec.kind is Kind.BYTES_BYTES:
            compressors.append(codec)
    if isinstance(codecs[-1], BufferCodec) and codecs[-1].name in COMPRESSORS:
        compressors.append(filters.pop())
    return order, tuple(filters), tuple(compressors)
