"""Convert what users pass as a codec: names, dicts, codecs of zarrdask and other packages."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from zarrdask.formats.codecs.aliases import full_name
from zarrdask.formats.codecs.array_to_array.bitround import BitroundCodec
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.codec import Codec, Json
from zarrdask.formats.codecs.numcodecs.adapter import make
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.compliance import strictness

#: numcodecs' ids of codecs that v3 has under the same name, with the same configuration.
_SAME = frozenset({"gzip", "vlen-bytes", "vlen-utf8", "zstd"})


def find_codec(codec: Any) -> Codec:
    """Return the v3 codec for an argument of a user.

    That is a name, an object of v3 (``{"name": ..., "configuration": ...}``) or v2 (``{"id":
    ...}``), a codec of numcodecs or zarr-python, or one of zarrdask, which is returned. A codec of
    numcodecs becomes the registered codec if there is one, else ``numcodecs.*`` (C-66). Deviations
    that are tolerated in files raise errors here.

    >>> find_codec({"id": "zstd", "level": 5})
    ZstdCodec(level=5, checksum=False)
    >>> find_codec("bz2").name
    'numcodecs.bz2'
    """
    if hasattr(codec, "kind") and hasattr(codec, "to_json"):
        return cast(Codec, codec)
    codec = plain_config(codec)
    with strictness(strict=True):
        if isinstance(codec, Mapping) and "id" in codec:
            return _from_numcodecs(dict(codec))
        if not isinstance(codec, Mapping):
            return parse_codec(full_name(codec) if isinstance(codec, str) else codec)
        return _from_object(dict(codec))


def plain_config(codec: Any) -> Any:
    """Return a codec of numcodecs or zarr-python as JSON, and any other object unchanged."""
    if hasattr(codec, "get_config"):
        return codec.get_config()
    if not hasattr(codec, "to_dict"):
        return _python_objects(codec)
    config = json.loads(json.dumps(codec.to_dict()))  # with lists instead of tuples
    # zarr-python chooses these by the data type, unless they are given.
    for name in getattr(codec, "_tunable_attrs", ()):
        config.get("configuration", {}).pop(name, None)
    return config


def _python_objects(value: Any) -> Any:
    """Return a configuration with Python's own objects instead of NumPy's scalars."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: _python_objects(each) for name, each in value.items()}
    return [_python_objects(each) for each in value] if isinstance(value, list | tuple) else value


def _from_object(members: Json) -> Codec:
    if isinstance(members.get("name"), str):
        members["name"] = full_name(members["name"])
    settings = members.get("configuration")
    open_size = isinstance(settings, Mapping) and "typesize" not in settings
    if members.get("name") != "blosc" or not open_size:
        return parse_codec(members)
    # Users may leave out the type size, which follows from the array's data type; metadata may not.
    codec = parse_codec({**members, "configuration": {**dict(settings or {}), "typesize": 1}})
    return replace(cast(BloscCodec, codec), typesize=None)


def _from_numcodecs(members: Json) -> Codec:
    make(members)
    name = members.pop("id")
    if name == "blosc":
        blosc_members = {
            member: members[member]
            for member in ("cname", "clevel", "shuffle", "blocksize")
            if member in members
        }
        return BloscCodec(**blosc_members)
    if name == "bitround" and members["keepbits"] > 0:
        return BitroundCodec(members["keepbits"])
    if name == "crc32c" and members.get("location", "end") == "end":
        return parse_codec("crc32c")
    full_name = name if name in _SAME else f"numcodecs.{name}"
    return parse_codec({"name": full_name, "configuration": members})
