"""The codecs that users mean: names, dicts of v2 and v3, numcodecs objects, codecs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from zarrdask.codecs.aliases import full_name
from zarrdask.codecs.array_to_array.bitround import BitroundCodec
from zarrdask.codecs.base import Codec, Json
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.numcodecs.adapter import make
from zarrdask.codecs.registry import parse_codec
from zarrdask.compliance import strictness

#: numcodecs' ids of codecs that v3 has under the same name, with the same configuration.
_SAME = frozenset({"gzip", "vlen-bytes", "vlen-utf8", "zstd"})


def find_codec(wanted: Any) -> Codec:
    """Return the v3 codec that a user means.

    Parameters
    ----------
    wanted : str, mapping or object
        A name; an object of v3 (``{"name": ..., "configuration": ...}``) or a v2 one
        (``{"id": ...}``); a numcodecs codec; or one of zarrdask's, which is returned. numcodecs'
        become registered codecs where there are such, else ``numcodecs.*`` (conformance C-66).

    Raises
    ------
    MetadataError, UnsupportedError
        If it is none that v3 knows. What is only tolerated in files is not taken here.

    Examples
    --------
    >>> find_codec({"id": "zstd", "level": 5})
    ZstdCodec(level=5, checksum=False)
    >>> find_codec("bz2").name
    'numcodecs.bz2'
    """
    if hasattr(wanted, "kind") and hasattr(wanted, "to_json"):
        return cast(Codec, wanted)
    wanted = plain_config(wanted)
    with strictness(strict=True):
        if isinstance(wanted, Mapping) and "id" in wanted:
            return _from_numcodecs(dict(wanted))
        if not isinstance(wanted, Mapping):
            return parse_codec(full_name(wanted) if isinstance(wanted, str) else wanted)
        return _from_object(dict(wanted))


def plain_config(wanted: Any) -> Any:
    """Return a numcodecs object's configuration; anything else as it is."""
    return wanted.get_config() if hasattr(wanted, "get_config") else wanted


def _from_object(found: Json) -> Codec:
    if isinstance(found.get("name"), str):
        found["name"] = full_name(found["name"])
    settings = found.get("configuration")
    open_size = isinstance(settings, Mapping) and "typesize" not in settings
    if found.get("name") != "blosc" or not open_size:
        return parse_codec(found)
    # Users may leave it out, metadata may not: the array's data type tells.
    codec = parse_codec({**found, "configuration": {**dict(settings or {}), "typesize": 1}})
    return replace(cast(BloscCodec, codec), typesize=None)


def _from_numcodecs(found: Json) -> Codec:
    make(found)
    name = found.pop("id")
    if name == "blosc":
        members = {
            member: found[member]
            for member in ("cname", "clevel", "shuffle", "blocksize")
            if member in found
        }
        return BloscCodec(**members)
    if name == "bitround" and found["keepbits"] > 0:
        return BitroundCodec(found["keepbits"])
    if name == "crc32c" and found.get("location", "end") == "end":
        return parse_codec("crc32c")
    known = name if name in _SAME else f"numcodecs.{name}"
    return parse_codec({"name": known, "configuration": found})
