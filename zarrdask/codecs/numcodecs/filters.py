"""The array -> array codecs of numcodecs in v3, with names such as ``numcodecs.delta`` (C-66)."""

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
from zarrdask.dtypes.numpy_type import numpy_type
from zarrdask.errors import CodecError, MetadataError


@dataclass(frozen=True)
class NumcodecsFilter:
    """Array -> array: the base class of these codecs.

    Elements are encoded in C order, and the result has the shape of the chunk. The default of a
    data type in the configuration is that of the chunk.

    Parameters
    ----------
    config : str
        The configuration as JSON.
    """

    config: str = "{}"

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY
    #: The members of the configuration with their defaults.
    members: ClassVar[Mapping[str, Any]] = {}
    #: The members that are the data types of the input and of the output.
    before: ClassVar[str] = "dtype"
    after: ClassVar[str] = "astype"
    #: The kinds (as of NumPy) of the data types that the codec supports.
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
        """Check the members that are not data types."""

    @classmethod
    def _parse_dtype(cls, value: Any, member: str) -> np.dtype[Any]:
        """Return the data type for its name in NumPy, in native byte order."""
        try:
            dtype = numpy_type(value if isinstance(value, str) else None)
        except ValueError:
            dtype = np.dtype(object)
        if not isinstance(value, str) or dtype.kind not in cls.kinds or name_of(dtype):
            raise MetadataError(
                "this codec does not support this data type",
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
        """Return the codec with the data type of the chunks, which other readers require."""
        members = json.loads(self.config)
        if self.before in self.members:
            members.setdefault(self.before, spec.dtype.newbyteorder("<").str)
        return type(self)(json.dumps(members, sort_keys=True))

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        members = json.loads(self.config)
        dtype = spec.dtype.newbyteorder("=")
        if dtype.kind not in self.kinds or name_of(dtype):
            raise MetadataError(
                "this codec can't encode elements of this data type",
                key=f"codec {self.name}",
                found=str(dtype),
            )
        if self.before in members:
            expected = self._parse_dtype(members[self.before], self.before)
            if expected != dtype:
                raise MetadataError(
                    "the data type of the codec is not that of the chunks",
                    key=f"{self.name}.{self.before}",
                    found=members[self.before],
                    expected=str(dtype),
                )
        fill = self._encode_fill(np.array([spec.fill_value], dtype))
        return ChunkSpec(self._shape(spec.shape), self._stored(dtype), fill)

    def _stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the data type of the output."""
        name = json.loads(self.config).get(self.after)
        return dtype if name is None else self._parse_dtype(name, self.after)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def _encode_fill(self, fill: np.ndarray) -> Any:
        return self.encode(fill).reshape(-1)[0]

    def _codec(self, dtype: np.dtype[Any]) -> Any:
        """Return the codec of numcodecs."""
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
        except Exception as error:  # numcodecs raises all kinds of errors
            raise CodecError(
                f"the chunk can't be {verb}d: {error}", key=f"codec {self.name}"
            ) from error


@dataclass(frozen=True)
class DeltaCodec(NumcodecsFilter):
    """The first element, then the differences of successive elements (A-59)."""

    name: ClassVar[str] = "numcodecs.delta"
    members: ClassVar = {"dtype": None, "astype": None}

    def _encode_fill(self, fill: np.ndarray) -> Any:
        # In a chunk of equal elements, this is only the first encoded element.
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
                    "this value is not a number",
                    key=f"{cls.name}.{member}",
                    found=value,
                    expected="a number",
                )


@dataclass(frozen=True)
class QuantizeCodec(NumcodecsFilter):
    """Rounding to a number of decimal digits (A-61)."""

    name: ClassVar[str] = "numcodecs.quantize"
    members: ClassVar = {"digits": ..., "dtype": None, "astype": None}
    kinds: ClassVar[str] = "f"

    @classmethod
    def _check(cls, members: Json) -> None:
        integer(members["digits"], f"{cls.name}.digits", -400, 400)


@dataclass(frozen=True)
class AstypeCodec(NumcodecsFilter):
    """A conversion to another data type by NumPy (A-61)."""

    name: ClassVar[str] = "numcodecs.astype"
    members: ClassVar = {"encode_dtype": ..., "decode_dtype": None}
    before: ClassVar[str] = "decode_dtype"
    after: ClassVar[str] = "encode_dtype"
    kinds: ClassVar[str] = "biufc"


@dataclass(frozen=True)
class NumcodecsPackbitsCodec(NumcodecsFilter):
    """Booleans as bits, the highest first, after the number of padding bits as a byte (A-62)."""

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
