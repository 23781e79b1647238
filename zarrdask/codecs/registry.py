"""Codecs by name. Built-in ones are registered like anybody else's."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from zarrdask.codecs.base import Codec, Configurable
from zarrdask.errors import MetadataError, UnsupportedError

GROUP = "zarrdask.codecs"
_BUILT_IN = {
    "blosc": "zarrdask.codecs.blosc:BloscCodec",
    "bytes": "zarrdask.codecs.bytes_:BytesCodec",
    "crc32c": "zarrdask.codecs.crc32c:Crc32cCodec",
    "gzip": "zarrdask.codecs.gzip:GzipCodec",
    "sharding_indexed": "zarrdask.codecs.sharding:ShardingCodec",
    "transpose": "zarrdask.codecs.transpose:TransposeCodec",
    "zstd": "zarrdask.codecs.zstd:ZstdCodec",
}
_registered: dict[str, type[Configurable]] = {}


def register_codec(codec: type[Configurable]) -> None:
    """Make a codec class known under its name.

    Parameters
    ----------
    codec : type
        With `name`, `kind`, `from_configuration` and the methods of its kind
        (`zarrdask.codecs.base`). An entry point of the group ``zarrdask.codecs`` does the same
        for everyone who installs a package.
    """
    _registered[codec.name] = codec


@cache
def _installed() -> Mapping[str, Any]:
    return {point.name: point for point in entry_points(group=GROUP)}


def find(name: str) -> type[Configurable]:
    """Return the codec class with a name.

    Raises
    ------
    UnsupportedError
        If there is none (conformance C-46).
    """
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    if name in _installed():
        return _installed()[name].load()  # type: ignore[no-any-return]
    known = sorted({*_BUILT_IN, *_registered, *_installed()})
    raise UnsupportedError("unknown codec", key="codecs", found=name, expected=", ".join(known))


def parse_codec(found: Any) -> Codec:
    """Return the codec that an item of v3's ``codecs`` describes: a name or an object (C-18).

    Raises
    ------
    MetadataError
        If it is neither, or its configuration is wrong.
    UnsupportedError
        If the name is unknown.
    """
    definition = {"name": found} if isinstance(found, str) else found
    if not isinstance(definition, dict) or not isinstance(definition.get("name"), str):
        raise MetadataError(
            "not a codec", key="codecs", found=found, expected="a name or an object with a name"
        )
    extra = set(definition) - {"name", "configuration", "must_understand"}
    settings = definition.get("configuration")
    if extra or not (settings is None or isinstance(settings, dict)):
        raise MetadataError(
            "not a codec",
            key=f"codec {definition['name']}",
            found=found,
            expected='{"name": ..., "configuration": {...}}',
        )
    return find(definition["name"]).from_configuration(settings)  # type: ignore[return-value]


def parse_codecs(found: Any) -> tuple[Codec, ...]:
    """Return the codecs of a v3 list; their order is checked where they are bound.

    Raises
    ------
    MetadataError
        If it is not a list, or an item is wrong.
    UnsupportedError
        If a name is unknown.
    """
    if not isinstance(found, list):
        raise MetadataError("not a list of codecs", key="codecs", found=found, expected="a list")
    return tuple(map(parse_codec, found))
