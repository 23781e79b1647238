"""The bytes -> bytes codecs of numcodecs in v3, with names such as ``numcodecs.bz2`` (C-66)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from zarrdask.codecs.base import ChunkSpec, Json, integer, one_of, parse_configuration
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.codecs.bytes_to_bytes.zstd import ZstdCodec, limited
from zarrdask.codecs.numcodecs.adapter import BufferCodec, make

#: Checks a value of a member of a configuration, and returns it.
Check = Callable[[Any, str], Any]

#: Members that older releases of numcodecs don't know.
_NEWER_MEMBERS = {"location", "initval"}


def _integer(low: int, high: int) -> Check:
    return lambda value, key: integer(value, key, low, high)


def _one_of(*choices: Any) -> Check:
    return lambda value, key: one_of(value, key, choices)


def _any(value: Any, key: str) -> Any:
    return value


@dataclass(frozen=True)
class NumcodecsBuffer(BufferCodec):
    """Bytes -> bytes: the base class of these codecs.

    Parameters
    ----------
    config : str
        The v2 configuration as JSON; by default that with the defaults of all members.
    """

    config: str = ""

    name: ClassVar[str] = ""
    #: The members of the configuration: the default and the check of each.
    members: ClassVar[Mapping[str, tuple[Any, Check]]] = {}

    def __post_init__(self) -> None:
        if not self.config:
            object.__setattr__(self, "config", type(self).from_configuration(None).config)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {member: default for member, (default, _) in cls.members.items()}
        members = parse_configuration(configuration, cls.name, defaults)
        for member, (default, check) in cls.members.items():
            if members[member] is not default:
                check(members[member], f"{cls.name}.{member}")
        config_members = {member: value for member, value in members.items() if value is not None}
        config = {"id": cls.name.removeprefix("numcodecs."), **config_members}
        make(config)
        return cls(json.dumps(config, sort_keys=True))

    def to_json(self) -> Json:
        members = json.loads(self.config)
        del members["id"]
        for member in _NEWER_MEMBERS & set(members):
            # Older releases of numcodecs behave as with the default of this member.
            if members[member] == self.members[member][0]:
                del members[member]
        # zarr-python requires the configuration even if it is empty.
        return {"name": self.name, "configuration": members}


_LOCATION: Mapping[str, tuple[Any, Check]] = {"location": ("start", _one_of("start", "end"))}


@dataclass(frozen=True)
class Adler32Codec(NumcodecsBuffer):
    """A checksum."""

    name: ClassVar[str] = "numcodecs.adler32"
    members: ClassVar = _LOCATION


@dataclass(frozen=True)
class Crc32Codec(NumcodecsBuffer):
    """A checksum."""

    name: ClassVar[str] = "numcodecs.crc32"
    members: ClassVar = _LOCATION


@dataclass(frozen=True)
class NumcodecsCrc32cCodec(NumcodecsBuffer):
    """A checksum, by default the same as that of `Crc32cCodec`."""

    name: ClassVar[str] = "numcodecs.crc32c"
    members: ClassVar = {"location": ("end", _one_of("start", "end"))}


@dataclass(frozen=True)
class Fletcher32Codec(NumcodecsBuffer):
    """A checksum."""

    name: ClassVar[str] = "numcodecs.fletcher32"


@dataclass(frozen=True)
class JenkinsLookup3Codec(NumcodecsBuffer):
    """A checksum."""

    name: ClassVar[str] = "numcodecs.jenkins_lookup3"
    members: ClassVar = {"initval": (0, _integer(0, 2**32 - 1)), "prefix": (None, _one_of(None))}


@dataclass(frozen=True)
class Bz2Codec(NumcodecsBuffer):
    """Compression by bzip2."""

    name: ClassVar[str] = "numcodecs.bz2"
    members: ClassVar = {"level": (1, _integer(1, 9))}


@dataclass(frozen=True)
class Lz4Codec(NumcodecsBuffer):
    """Compression by LZ4, after the decoded size as 4 bytes."""

    name: ClassVar[str] = "numcodecs.lz4"
    members: ClassVar = {"acceleration": (1, _integer(-(2**31), 2**31 - 1))}


@dataclass(frozen=True)
class LzmaCodec(NumcodecsBuffer):
    """Compression by LZMA."""

    name: ClassVar[str] = "numcodecs.lzma"
    members: ClassVar = {
        "format": (1, _integer(0, 3)),
        "check": (-1, _integer(-1, 16)),
        "preset": (None, _integer(0, 2**32 - 1)),
        "filters": (None, _any),
    }


@dataclass(frozen=True)
class ShuffleCodec(NumcodecsBuffer):
    """The first bytes of all elements, then their second bytes, and so on."""

    name: ClassVar[str] = "numcodecs.shuffle"
    members: ClassVar = {"elementsize": (None, _integer(1, 2**31 - 1))}

    def complete(self, spec: ChunkSpec) -> Self:
        """Return the codec with the size of the elements, if it was not specified."""
        config = json.loads(self.config)
        if "elementsize" not in config:
            config["elementsize"] = spec.dtype.itemsize
        return replace(self, config=json.dumps(config, sort_keys=True))


# --------------------------------------------------------------------------------------------
# Codecs that zarrdask implements itself


@dataclass(frozen=True)
class NumcodecsBloscCodec(BloscCodec):
    """Bytes -> bytes, as `BloscCodec`, but with a number for the shuffle in metadata."""

    name: ClassVar[str] = "numcodecs.blosc"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, "typesize": None}
        return cls(**parse_configuration(configuration, cls.name, defaults))

    def to_json(self) -> Json:
        members: Json = {
            "cname": self.cname,
            "clevel": self.clevel,
            "shuffle": self.shuffle,
            "blocksize": self.blocksize,
        }
        return {"name": self.name, "configuration": members}


@dataclass(frozen=True)
class NumcodecsGzipCodec(GzipCodec):
    """Bytes -> bytes, as `GzipCodec`."""

    level: int = 1

    name: ClassVar[str] = "numcodecs.gzip"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(parse_configuration(configuration, cls.name, {"level": 1})["level"])


@dataclass(frozen=True)
class NumcodecsZlibCodec(ZlibCodec):
    """Bytes -> bytes, as `ZlibCodec`."""

    name: ClassVar[str] = "numcodecs.zlib"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(parse_configuration(configuration, cls.name, {"level": 1})["level"])


@dataclass(frozen=True)
class NumcodecsZstdCodec(ZstdCodec):
    """Bytes -> bytes, as `ZstdCodec`."""

    name: ClassVar[str] = "numcodecs.zstd"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = parse_configuration(configuration, cls.name, {"level": 0, "checksum": False})
        return cls(limited(members["level"]), members["checksum"])
