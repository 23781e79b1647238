"""numcodecs' array -> array codecs in v3, under names that begin with ``numcodecs.`` (C-66)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.codecs.base import ChunkSpec, Json, Kind, integer, parse_configuration
from zarrdask.codecs.numcodecs.adapter import make
from zarrdask.codecs.numeric import native
from zarrdask.dtypes.ml import name_of
from zarrdask.errors import CodecError, MetadataError


@dataclass(frozen=True)
class NumcodecsFilter:
    """Array -> array: what subclasses name.

    Elements are taken in C order, and results have the shape of the chunk. A data type that the
    configuration leaves out is the chunk's.

    Parameters
    ----------
    config : str
        Its configuration, as JSON.
    """

    config: str = "{}"

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY
    #: The members of the configuration with their defaults.
    members: ClassVar[Mapping[str, Any]] = {}
    #: Which of them are data types: of what is given, and of what comes out.
    before: ClassVar[str] = "dtype"
    after: ClassVar[str] = "astype"
    #: The kinds of elements that it takes and gives.
    kinds: ClassVar[str] = "iuf"

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = parse_configuration(configuration, cls.name, dict(cls.members))
        for member in (cls.before, cls.after):
            if members.get(member) is not None:
                cls._parse_dtype(members[member], member)
        cls._check(members)
        config = {member: value for member, value in members.items() if value is not None}
        return cls(json.dumps(config, sort_keys=True))

    @classmethod
    def _check(cls, members: Json) -> None:
        """Check the members that are no data types."""

    @classmethod
    def _parse_dtype(cls, value: Any, member: str) -> np.dtype[Any]:
        """Return a data type, which has NumPy's short name or its long one, in native order."""
        try:
            dtype = np.dtype(value if isinstance(value, str) else None)
        except TypeError:
            dtype = np.dtype(object)
        if not isinstance(value, str) or dtype.kind not in cls.kinds or name_of(dtype):
            raise MetadataError(
                "not a data type of this codec",
                key=f"{cls.name}.{member}",
                found=value,
                expected="a name such as '<i4' or 'int32'",
            )
        return dtype.newbyteorder("=")

    def to_json(self) -> Json:
        members = json.loads(self.config)
        # Also if it is empty: zarr-python wants it.
        return {"name": self.name, "configuration": members}

    def complete(self, spec: ChunkSpec) -> Self:
        """Return the codec with the data type of the chunks, which other readers want to see."""
        members = json.loads(self.config)
        if self.before in self.members:
            members.setdefault(self.before, spec.dtype.newbyteorder("<").str)
        return type(self)(json.dumps(members, sort_keys=True))

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        members = json.loads(self.config)
        dtype = spec.dtype.newbyteorder("=")
        if dtype.kind not in self.kinds or name_of(dtype):
            raise MetadataError(
                "this codec takes no such elements", key=f"codec {self.name}", found=str(dtype)
            )
        if self.before in members:
            expected = self._parse_dtype(members[self.before], self.before)
            if expected != dtype:
                raise MetadataError(
                    "the codec is for another data type",
                    key=f"{self.name}.{self.before}",
                    found=members[self.before],
                    expected=str(dtype),
                )
        fill = self._encode_fill(np.array([spec.fill_value], dtype))
        return ChunkSpec(self._shape(spec.shape), self._stored(dtype), fill)

    def _stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the data type of what comes out."""
        name = json.loads(self.config).get(self.after)
        return dtype if name is None else self._parse_dtype(name, self.after)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def _encode_fill(self, fill: np.ndarray) -> Any:
        return self.encode(fill).reshape(-1)[0]

    def _codec(self, dtype: np.dtype[Any]) -> Any:
        """Return numcodecs' own codec."""
        config = json.loads(self.config)
        if self.before in self.members:
            config |= {self.before: dtype.str}
        if self.after in self.members:
            config |= {self.after: self._stored(dtype).str}
        return make({"id": self.name.removeprefix("numcodecs."), **config})

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        chunk = native(chunk)
        return self._run("encode", self._codec(chunk.dtype), chunk, self._shape(chunk.shape))

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        codec = self._codec(spec.dtype.newbyteorder("="))
        return self._run("decode", codec, native(chunk), spec.shape)

    def _run(self, verb: str, codec: Any, chunk: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                return np.asarray(getattr(codec, verb)(chunk)).reshape(shape)
        except Exception as error:  # numcodecs checks little
            raise CodecError(f"can't {verb}: {error}", key=f"codec {self.name}") from error


@dataclass(frozen=True)
class DeltaCodec(NumcodecsFilter):
    """The first element, then the differences of neighbours (A-59)."""

    name: ClassVar[str] = "numcodecs.delta"
    members: ClassVar = {"dtype": None, "astype": None}

    def _encode_fill(self, fill: np.ndarray) -> Any:
        # Of many equal elements only the first would be so.
        with np.errstate(all="ignore"):
            return fill.astype(self._stored(fill.dtype))[0]


@dataclass(frozen=True)
class FixedScaleOffsetCodec(NumcodecsFilter):
    """The nearest integers to (x - offset) * scale (A-60, C-60)."""

    name: ClassVar[str] = "numcodecs.fixedscaleoffset"
    members: ClassVar = {"offset": ..., "scale": ..., "dtype": None, "astype": None}

    @classmethod
    def _check(cls, members: Json) -> None:
        for member in ("offset", "scale"):
            value = members[member]
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise MetadataError(
                    "not a number", key=f"{cls.name}.{member}", found=value, expected="a number"
                )


@dataclass(frozen=True)
class QuantizeCodec(NumcodecsFilter):
    """Rounded to so many decimal digits (A-61)."""

    name: ClassVar[str] = "numcodecs.quantize"
    members: ClassVar = {"digits": ..., "dtype": None, "astype": None}
    kinds: ClassVar[str] = "f"

    @classmethod
    def _check(cls, members: Json) -> None:
        integer(members["digits"], f"{cls.name}.digits", -400, 400)


@dataclass(frozen=True)
class AstypeCodec(NumcodecsFilter):
    """Another data type, as NumPy casts (A-61)."""

    name: ClassVar[str] = "numcodecs.astype"
    members: ClassVar = {"encode_dtype": ..., "decode_dtype": None}
    before: ClassVar[str] = "decode_dtype"
    after: ClassVar[str] = "encode_dtype"
    kinds: ClassVar[str] = "biufc"


@dataclass(frozen=True)
class NumcodecsPackbitsCodec(NumcodecsFilter):
    """Truth values as bits, the highest first, after the number of bits that are padding (A-62)."""

    name: ClassVar[str] = "numcodecs.packbits"
    before: ClassVar[str] = ""
    after: ClassVar[str] = ""
    kinds: ClassVar[str] = "b"

    def _stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return np.dtype("u1")

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1 + -(-prod(shape) // 8),)

    def _encode_fill(self, fill: np.ndarray) -> Any:
        return np.uint8(0)
