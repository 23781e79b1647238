"""``zfp`` and ``numcodecs.zfpy``: numbers compressed by the package zfpy (C-63, C-66)."""

import json
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import CodecError, MetadataError, UnsupportedError, one_of
from zarrdask.formats.codecs.array_to_bytes import zfp_header as stream
from zarrdask.formats.codecs.codec import (
    Buffer,
    ChunkSpec,
    Json,
    Kind,
    Serializer,
    failed,
    integer,
    parse_configuration,
    refused,
)
from zarrdask.formats.codecs.numeric import native
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.ml import name_of

#: The members of the configuration for each mode, without `mode` itself.
_MODES: dict[str, tuple[str, ...]] = {
    "reversible": (),
    "expert": ("minbits", "maxbits", "maxprec", "minexp"),
    "fixed_accuracy": ("tolerance",),
    "fixed_rate": ("rate",),
    "fixed_precision": ("precision",),
}
_REALS = ("tolerance", "rate")
#: The numbers of the modes in numcodecs, and their parameters.
_NUMBERS = {2: "rate", 3: "precision", 4: "tolerance"}
_MOST = 2**31 - 1
#: The data types that every implementation must read; it may read narrower ones, too.
_LISTED = frozenset({"i4", "u4", "i8", "u8", "f4", "f8"})


@dataclass(frozen=True)
class ZfpCodec:
    """Array -> bytes, without a header.

    Parameters
    ----------
    mode : {"reversible", "expert", "fixed_accuracy", "fixed_rate", "fixed_precision"}
        The mode of compression.
    options : tuple of (str, number)
        The parameters of the mode: `minbits`, `maxbits`, `maxprec` and `minexp` of "expert";
        `tolerance`, `rate` or `precision` of the "fixed" modes.
    """

    mode: str = "reversible"
    options: tuple[tuple[str, Any], ...] = ()

    name: ClassVar[str] = "zfp"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        mode = one_of((configuration or {}).get("mode"), "zfp.mode", tuple(_MODES))
        members = parse_configuration(
            configuration, cls.name, dict.fromkeys(("mode", *_MODES[mode]), ...)
        )
        for member in _MODES[mode]:
            _check(members[member], member)
        return cls(mode, tuple((member, members[member]) for member in _MODES[mode]))

    def to_json(self) -> Json:
        return {"name": self.name, "configuration": {"mode": self.mode, **dict(self.options)}}

    def complete(self, spec: ChunkSpec) -> Self:
        """Return the codec of a new array; report if other software may be unable to read it."""
        if spec.dtype.newbyteorder("=").str[1:] not in _LISTED:
            report_deviation(
                "C-63",
                "other software need not read elements of this type, which the registered codec "
                "does not list",
                key="codec zfp",
                found=name_of(spec.dtype) or str(spec.dtype),
                expected="int32, uint32, int64, uint64, float32 or float64",
                warn=True,
            )
        return self

    def bind(self, spec: ChunkSpec) -> "ZfpStream":
        return ZfpStream(self, spec)

    @property
    def rules(self) -> stream.Parameters | None:
        """The parameters of the mode "expert", or None."""
        return stream.Parameters(**dict(self.options)) if self.mode == "expert" else None


def _check(value: Any, member: str) -> None:
    if member not in _REALS:
        integer(value, f"zfp.{member}", -_MOST if member == "minexp" else 0, _MOST)
    elif isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise MetadataError(
            "this value is not permitted",
            key=f"zfp.{member}",
            found=value,
            expected="a number that is not negative",
        )


class ZfpStream(Serializer):
    """The zfp codec, bound to chunks."""

    def __init__(self, codec: ZfpCodec, spec: ChunkSpec) -> None:
        stream.load()
        self.codec = codec
        self.spec = spec
        self.stored = stream.zfp_type(spec.dtype)
        self.shape = stream.field_shape(spec.shape)
        options = dict(codec.options)
        means = options if codec.rules is None else stream.simple(codec.rules, len(self.shape))
        self.least: int | None = None
        if means and "rate" in means:
            stream.check_rate(means["rate"], len(self.shape), self.stored)
            self.least = stream.fixed_size(self.shape, means["rate"])
        minbits = options.get("minbits") or options.get("rate", 0) * 4 ** len(self.shape)
        self.most = stream.bound(self.shape, self.stored, min(int(minbits) + 1, 2**20))

    def encode(self, chunk: np.ndarray) -> Buffer:
        options: dict[str, Any] | None = dict(self.codec.options)
        rules = self.codec.rules
        if rules is not None:
            options = stream.simple(rules, len(self.shape))
        if options is None:
            raise UnsupportedError(
                "zfpy can decode, but not encode, with these parameters of the mode 'expert'",
                found=tuple(rules or ()),
            )
        values = stream.promote(chunk, self.stored).reshape(self.shape)
        options = {"write_header": False, **options}
        encoded: bytes = _call("encode", "compress_numpy", values, **options)
        return encoded

    def decode(self, data: Buffer) -> np.ndarray:
        values = stream.decode_whole(data, self.most, self.least, self._decode)
        return stream.demote(values, self.spec.dtype).reshape(self.spec.shape)

    def _decode(self, data: np.ndarray) -> np.ndarray:
        rules = self.codec.rules
        if rules is not None:
            return _decompress(stream.with_header(data, self.shape, self.stored, rules))
        kind = stream.load().dtype_to_ztype(self.stored)
        options = dict(self.codec.options)
        values: np.ndarray = _call("decode", "_decompress", data, kind, self.shape, **options)
        return values


def _decompress(data: Buffer) -> np.ndarray:
    """Decode a stream with a header."""
    values: np.ndarray = _call("decode", "decompress_numpy", data)
    return values


def _call(verb: str, function: str, *arguments: Any, **options: Any) -> Any:
    try:
        return getattr(stream.load(), function)(*arguments, **options)
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise failed(verb, error) from error


@dataclass(frozen=True)
class ZfpyCodec:
    """Array -> bytes, with a header of zfp, as in numcodecs."""

    #: The configuration as JSON.
    config: str = "{}"

    name: ClassVar[str] = "numcodecs.zfpy"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {"mode": 4, **dict.fromkeys(_NUMBERS.values(), -1), "compression_kwargs": None}
        members = parse_configuration(configuration, cls.name, defaults)
        one_of(members["mode"], f"{cls.name}.mode", tuple(_NUMBERS))
        member = _NUMBERS[members["mode"]]
        if members[member] != -1:
            _check(members[member], member)
        return cls(json.dumps({"mode": members["mode"], member: members[member]}))

    def to_json(self) -> Json:
        return {"name": self.name, "configuration": json.loads(self.config)}

    def bind(self, spec: ChunkSpec) -> "ZfpyStream":
        return ZfpyStream(self, spec)


class ZfpyStream(Serializer):
    """The numcodecs.zfpy codec, bound to chunks."""

    def __init__(self, codec: ZfpyCodec, spec: ChunkSpec) -> None:
        stream.load()
        stored = stream.zfp_type(spec.dtype)
        if stored != spec.dtype.newbyteorder("="):
            raise refused(spec.dtype, "int32, int64, float32 or float64")
        self.spec = spec
        self.shape = stream.field_shape(spec.shape)
        self.options = json.loads(codec.config)
        self.options.pop("mode", None)
        rate = self.options.get("rate", -1)
        if rate != -1:
            stream.check_rate(rate, len(self.shape), stored)
        bits = 2**16 + int(max(rate, 0) * 4 ** len(self.shape))
        self.most = stream.bound(self.shape, stored, bits)

    def encode(self, chunk: np.ndarray) -> Buffer:
        values = native(chunk).reshape(self.shape)
        options = {"write_header": True, **self.options}
        encoded: bytes = _call("encode", "compress_numpy", values, **options)
        return encoded

    def decode(self, data: Buffer) -> np.ndarray:
        shape, kind = stream.read_header(data)
        if prod(shape) != prod(self.shape) or kind != self.spec.dtype.str[1:]:
            raise CodecError(
                "the shape or data type in the zfp stream differs from the chunk's",
                found=(shape, kind),
                expected=f"{self.shape} of {self.spec.dtype}",
            )
        least = stream.size_in_header(data, shape)
        values = stream.decode_whole(data, self.most, least, _decompress)
        return values.reshape(self.spec.shape)
