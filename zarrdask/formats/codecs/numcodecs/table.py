"""The codecs of numcodecs in v3, with names such as ``numcodecs.delta``, in one table (C-66)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import MetadataError, one_of
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec, limited
from zarrdask.formats.codecs.codec import (
    ChunkSpec,
    Json,
    Kind,
    PackageCodec,
    failed,
    integer,
    parse_configuration,
    refused,
)
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec, make
from zarrdask.formats.codecs.numeric import native
from zarrdask.formats.dtypes.ml import name_of
from zarrdask.formats.dtypes.numpy_type import numpy_type

#: Checks the value of a member of a configuration, and returns it.
Check = Callable[[Any, str], Any]
#: The members of a configuration: the default of each (``...`` if it is required), and its check.
Members = Mapping[str, tuple[Any, Check]]

_PREFIX = "numcodecs."
#: Members that older releases of numcodecs don't have.
_NEWER_MEMBERS = {"location", "initval"}


@dataclass(frozen=True)
class Entry:
    """A row of the table: the differences between codecs of a class; the registry holds it.

    Attributes
    ----------
    name : str
        The name in v3.
    codec : type
        `NumcodecsBuffer` or `NumcodecsFilter`.
    members : mapping
        The members of the configuration.
    before, after : str
        The members of a filter that are the data types of its input and of its output.
    kinds : str
        The kinds (as of NumPy) of the data types that a filter supports.
    """

    name: str
    codec: "type[NumcodecsBuffer | NumcodecsFilter]"
    members: Members = field(default_factory=dict)
    before: str = "dtype"
    after: str = "astype"
    kinds: str = "iuf"

    @property
    def kind(self) -> Kind:
        """The kind of the codec."""
        return self.codec.kind

    def from_configuration(self, configuration: Any) -> "NumcodecsBuffer | NumcodecsFilter":
        """Return the codec for its v3 configuration."""
        defaults = {member: default for member, (default, _) in self.members.items()}
        members = parse_configuration(configuration, self.name, defaults)
        for member, (default, check) in self.members.items():
            if members[member] is not default:
                check(members[member], f"{self.name}.{member}")
        config = {member: value for member, value in members.items() if value is not None}
        return self.codec.of(self, config)

    def parse_dtype(self, value: Any, member: str) -> np.dtype[Any]:
        """Return the data type for its name in NumPy, in native byte order."""
        try:
            dtype = numpy_type(value if isinstance(value, str) else None)
        except ValueError:
            dtype = np.dtype(object)
        if not isinstance(value, str) or not self.supports(dtype):
            raise MetadataError(
                "this codec does not support this data type",
                key=f"{self.name}.{member}",
                found=value,
                expected="a name such as '<i4' or 'int32'",
            )
        return dtype.newbyteorder("=")

    def supports(self, dtype: np.dtype[Any]) -> bool:
        """Whether a filter can encode elements of a data type."""
        return dtype.kind in self.kinds and not name_of(dtype)


@dataclass(frozen=True)
class NumcodecsBuffer(BufferCodec):
    """Bytes -> bytes, as `BufferCodec`, but also in v3."""

    @classmethod
    def of(cls, entry: Entry, config: Json) -> Self:
        """Return the codec for a configuration that was checked."""
        return cls.made({"id": entry.name.removeprefix(_PREFIX), **config})

    @property
    def name(self) -> str:
        """The name in v3."""
        return _PREFIX + super().name

    def to_json(self) -> Json:
        members = json.loads(self.config)
        del members["id"]
        for member in _NEWER_MEMBERS & set(members):
            # Older releases of numcodecs behave as with the default of this member.
            if members[member] == TABLE[self.name].members[member][0]:
                del members[member]
        # zarr-python requires the configuration even if it is empty.
        return {"name": self.name, "configuration": members}

    def complete(self, spec: ChunkSpec) -> Self:
        config = json.loads(self.config)
        if "elementsize" in TABLE[self.name].members:
            config.setdefault("elementsize", spec.dtype.itemsize)
        return replace(self, config=json.dumps(config, sort_keys=True))


@dataclass(frozen=True)
class NumcodecsFilter(PackageCodec):
    """Array -> array.

    Elements are encoded in C order, and the result has the shape of the chunk. The default of a
    data type in the configuration is the chunk's.
    """

    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    @classmethod
    def of(cls, entry: Entry, config: Json) -> Self:
        """Return the codec for a configuration that was checked."""
        for member in {entry.before, entry.after} & set(config):
            entry.parse_dtype(config[member], member)
        return cls(entry.name, json.dumps(config, sort_keys=True))

    @property
    def entry(self) -> Entry:
        """The entry of the codec in the table."""
        return TABLE[self.name]

    def complete(self, spec: ChunkSpec) -> Self:
        members = json.loads(self.config)
        if self.entry.before in self.entry.members:
            members.setdefault(self.entry.before, spec.dtype.newbyteorder("<").str)
        return replace(self, config=json.dumps(members, sort_keys=True))

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        entry, members = self.entry, json.loads(self.config)
        dtype = spec.dtype.newbyteorder("=")
        if not entry.supports(dtype):
            raise refused(dtype)
        if entry.before in members:
            expected = entry.parse_dtype(members[entry.before], entry.before)
            if expected != dtype:
                raise MetadataError(
                    "the data type of the codec differs from the chunks'",
                    key=f"{self.name}.{entry.before}",
                    found=members[entry.before],
                    expected=str(dtype),
                )
        fill = self.encode(np.array([spec.fill_value], dtype)).reshape(-1)[0]
        if self._packs:
            fill = np.uint8(0)
        return ChunkSpec(self._shape(spec.shape), self.stored(dtype), fill)

    def stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the data type of the output."""
        if self._packs:
            return np.dtype("u1")
        name = json.loads(self.config).get(self.entry.after)
        return dtype if name is None else self.entry.parse_dtype(name, self.entry.after)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1 + -(-prod(shape) // 8),) if self._packs else shape

    @property
    def _packs(self) -> bool:
        """Whether the output is one row of bytes, each with the bits of eight elements."""
        return self.name == "numcodecs.packbits"

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        chunk = native(chunk)
        return self._run("encode", _codec(self, chunk.dtype), chunk, self._shape(chunk.shape))

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        codec = _codec(self, spec.dtype.newbyteorder("="))
        return self._run("decode", codec, native(chunk), spec.shape)

    def _run(self, verb: str, codec: Any, chunk: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                return np.asarray(getattr(codec, verb)(chunk)).reshape(shape)
        except Exception as error:  # numcodecs raises all kinds of errors
            raise failed(verb, error) from error


@lru_cache(maxsize=256)
def _codec(codec: NumcodecsFilter, dtype: np.dtype[Any]) -> Any:
    """Return the codec of numcodecs for elements of a data type, in native byte order."""
    entry = codec.entry
    config = {"id": codec.name.removeprefix(_PREFIX), **json.loads(codec.config)}
    if entry.before in entry.members:
        config[entry.before] = dtype.str
    if entry.after in entry.members:
        config[entry.after] = codec.stored(dtype).str
    return make(config)


# --------------------------------------------------------------------------------------------
# The table


def _integer(low: int, high: int) -> Check:
    return lambda value, key: integer(value, key, low, high)


def _one_of(*choices: Any) -> Check:
    return lambda value, key: one_of(value, key, choices)


def _any(value: Any, key: str) -> Any:
    return value


def _number(value: Any, key: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MetadataError("this value is not a number", key=key, found=value, expected="a number")
    return value


_SIDE = _one_of("start", "end")
_UINT32 = _integer(0, 2**32 - 1)
_TYPES: Members = {"dtype": (None, _any), "astype": (None, _any)}


def _buffer(name: str, **members: tuple[Any, Check]) -> Entry:
    return Entry(_PREFIX + name, NumcodecsBuffer, members)


def _filter(name: str, members: Members, **others: str) -> Entry:
    return Entry(_PREFIX + name, NumcodecsFilter, members, **others)


#: The codecs by their names in v3.
TABLE: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        # checksums
        _buffer("adler32", location=("start", _SIDE)),
        _buffer("crc32", location=("start", _SIDE)),
        _buffer("crc32c", location=("end", _SIDE)),
        _buffer("fletcher32"),
        _buffer("jenkins_lookup3", initval=(0, _UINT32), prefix=(None, _one_of(None))),
        # compressors
        _buffer("bz2", level=(1, _integer(1, 9))),
        _buffer("lz4", acceleration=(1, _integer(-(2**31), 2**31 - 1))),
        _buffer(
            "lzma",
            format=(1, _integer(0, 3)),
            check=(-1, _integer(-1, 16)),
            preset=(None, _UINT32),
            filters=(None, _any),
        ),
        # The first bytes of all elements, then their second bytes, and so on.
        _buffer("shuffle", elementsize=(None, _integer(1, 2**31 - 1))),
        # Differences of successive elements.
        _filter("delta", _TYPES),
        # The nearest integers to (x - offset) * scale (A-60, C-60).
        _filter("fixedscaleoffset", {"offset": (..., _number), "scale": (..., _number), **_TYPES}),
        # Rounding to a number of decimal digits, and conversions by NumPy.
        _filter("quantize", {"digits": (..., _integer(-400, 400)), **_TYPES}, kinds="f"),
        _filter(
            "astype",
            {"encode_dtype": (..., _any), "decode_dtype": (None, _any)},
            before="decode_dtype",
            after="encode_dtype",
            kinds="biufc",
        ),
        # Booleans as bits, the highest first, after the number of padding bits as a byte.
        _filter("packbits", {}, kinds="b"),
    )
}


# --------------------------------------------------------------------------------------------
# Codecs that zarrdask implements itself


@dataclass(frozen=True)
class NumcodecsBloscCodec(BloscCodec):
    """Bytes -> bytes, as `BloscCodec`, but with a number for the shuffle in metadata."""

    name: ClassVar[str] = "numcodecs.blosc"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return super(BloscCodec, cls).from_configuration(configuration)

    def to_json(self) -> Json:
        members = {**super().to_json()["configuration"], "shuffle": self.shuffle}
        members.pop("typesize", None)
        return {"name": self.name, "configuration": members}


@dataclass(frozen=True)
class NumcodecsGzipCodec(GzipCodec):
    """Bytes -> bytes, as `GzipCodec`."""

    level: int = 1

    name: ClassVar[str] = "numcodecs.gzip"
    lowest: ClassVar[int] = -1


@dataclass(frozen=True)
class NumcodecsZlibCodec(ZlibCodec):
    """Bytes -> bytes, as `ZlibCodec`."""

    name: ClassVar[str] = "numcodecs.zlib"
    lowest: ClassVar[int] = -1


@dataclass(frozen=True)
class NumcodecsZstdCodec(ZstdCodec):
    """Bytes -> bytes, as `ZstdCodec`."""

    name: ClassVar[str] = "numcodecs.zstd"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = parse_configuration(configuration, cls.name, {"level": 0, "checksum": False})
        return cls(limited(members["level"]), members["checksum"])
