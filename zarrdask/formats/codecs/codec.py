"""The interfaces of codecs. They use a `ChunkSpec` and bytes, but no array metadata or store."""

import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache, cached_property
from math import prod
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np

from zarrdask.errors import CodecError, MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats import byte_ranges
from zarrdask.formats.extension import members_of
from zarrdask.runtime.packages import load_module

Buffer = byte_ranges.Buffer
Json = dict[str, Any]

#: Bytes that the output of an encoder may be longer than its input. This bounds the memory that a
#: damaged value can make a decoder allocate.
SLACK = 2**16
#: The limit of all sizes in bytes. Libraries still accept it with the bytes that codecs add.
MOST = 2**62
#: The limit, in bytes, if the metadata sets none (elements of variable length).
UNBOUNDED = 2**40
#: The maximum number of codecs, filters or storage transformers in one list. Each takes time for
#: every chunk, and real arrays have a handful.
MAX_CODECS = 64
#: The maximum number of dimensions of an array of NumPy.
MAX_DIMENSIONS = 64


class Kind(Enum):
    """The types of a codec's input and output when it encodes, in the order of a pipeline."""

    ARRAY_ARRAY = "array->array"
    ARRAY_BYTES = "array->bytes"
    BYTES_BYTES = "bytes->bytes"


@dataclass(frozen=True)
class ChunkSpec:
    """The properties of a chunk that codecs depend on.

    Attributes
    ----------
    shape : tuple of int
        The shape in elements.
    dtype : numpy.dtype
        The data type with its byte order.
    fill_value : scalar
        The value of missing elements.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any

    @cached_property
    def nbytes(self) -> int:
        """The decoded size, in bytes."""
        return prod(self.shape) * self.dtype.itemsize


class Codec(Protocol):
    """The interface of all codecs, which are frozen, equal by value, and picklable."""

    @property
    def name(self) -> str:
        """The name in metadata."""

    @property
    def kind(self) -> Kind:
        """The types of input and output."""

    def to_json(self) -> Json:
        """Return the codec's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class ArrayArray(Codec, Protocol):
    """The interface of array -> array codecs."""

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the properties of encoded chunks, for chunks with these properties.

        Raises
        ------
        ZarrdaskError
            If the codec can't encode such chunks.
        """

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        """Return the encoded chunk."""

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        """Return the decoded chunk, whose properties are `spec`."""


class ArrayBytes(Codec, Protocol):
    """The interface of array -> bytes codecs."""

    def bind(self, spec: ChunkSpec) -> "Serializer":
        """Return the object that encodes and decodes chunks with these properties.

        Raises
        ------
        ZarrdaskError
            If the codec can't encode such chunks.
        """


class Serializer:
    """An array -> bytes codec, bound to the chunks of one array; any class with these members.

    Attributes
    ----------
    encoded_size : int or None
        The size of an encoded chunk in bytes, or None if it depends on the values.
    most : int
        An upper limit of that size, which a damaged value may exceed.
    raw : numpy.dtype or None
        The stored dtype if the bytes are the elements in C order and nothing else, else None.
    """

    encoded_size: int | None = None
    most: int
    raw: np.dtype[Any] | None = None

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the chunk as bytes."""
        raise NotImplementedError

    def decode(self, data: Buffer) -> np.ndarray:
        """Return the chunk; it may be a read-only view of `data`."""
        raise NotImplementedError


class BytesBytes(Codec, Protocol):
    """The interface of bytes -> bytes codecs.

    If the output of a codec can be more than twice as long as its input, the class has an attribute
    `growth` with the maximum ratio. This bounds the memory that a damaged value can make a decoder
    allocate. If a codec can't encode arbitrarily long input, it has an attribute `max_bytes`.
    """

    def encode(self, data: Buffer) -> Buffer:
        """Return the encoded bytes."""

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        """Return the decoded bytes.

        Parameters
        ----------
        data : bytes-like
            The encoded bytes.
        limit : int
            The maximum size of the result in bytes.
        out : ndarray of uint8, optional
            A 1-d array of `limit` bytes, which is then the exact size of the result. The codec may
            decode into it; then it returns this array.
        """

    def encoded_size(self, size: int) -> int | None:
        """Return the encoded size of `size` bytes, or None if it depends on their values."""


def parse_configuration(configuration: Any, name: str, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a codec's configuration, as `members_of` does."""
    return members_of(configuration, f"codec {name}", defaults)


def named(error: ZarrdaskError, codec: Codec) -> ZarrdaskError:
    """Return an error of a codec with the codec's name, unless the error has a key of its own.

    The caller of a codec adds its name, so that codecs need not name themselves.
    """
    return error if error.key else error.within(f"codec {codec.name}")


def refused(dtype: Any, expected: str | None = None) -> MetadataError:
    """Return the error for elements of a data type that a codec can't encode."""
    message = "this codec can't encode elements of this data type"
    return MetadataError(message, found=str(dtype), expected=expected)


def failed(verb: str, error: Exception) -> CodecError:
    """Return the error for a chunk that a library can't "encode" or "decode"."""
    what = "value" if verb == "decode" else "chunk"
    return CodecError(f"the {what} can't be {verb}d: {error}")


def load_package(module: str, extra: str) -> Any:
    """Return a module of an optional package, or raise an error that names the package."""
    try:
        return load_module(module)
    except ImportError as error:
        raise UnsupportedError(
            f"this codec needs the package {module.partition('.')[0]}",
            expected=f"pip install 'zarrdask[{extra}]'",
        ) from error


def check_count(codecs: Sequence[Any], key: str) -> None:
    """Check that a list of codecs, filters or storage transformers has at most `MAX_CODECS`."""
    if len(codecs) > MAX_CODECS:
        raise MetadataError(
            "there are too many items in this list",
            key=key,
            found=len(codecs),
            expected=f"at most {MAX_CODECS}",
        )


def check_dimensions(count: int, key: str) -> None:
    """Check that an array of NumPy can have a number of dimensions."""
    if count > MAX_DIMENSIONS:
        raise UnsupportedError(
            "NumPy has no arrays of so many dimensions",
            key=key,
            found=count,
            expected=f"at most {MAX_DIMENSIONS}",
        )


def integer(value: Any, key: str, low: int, high: int) -> int:
    """Return an integer from a configuration, which must be from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise MetadataError(
            "unknown value",
            key=key,
            found=value,
            expected=f"an integer from {low} to {high}",
        )
    return value


@dataclass(frozen=True)
class Configured:
    """A codec whose parameters are the members of its v3 configuration.

    A parameter without a default is a required member. None stands for a member that is left out.
    Fields that are not compared are not members.
    """

    name: ClassVar[str]

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(**parse_configuration(configuration, cls.name, _defaults(cls)))  # type: ignore[arg-type]

    def to_json(self) -> Json:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        members = {member: _rendered(value) for member, value in values.items()}
        members = {member: value for member, value in members.items() if value is not None}
        return {"name": self.name, "configuration": members} if members else {"name": self.name}


@cache
def _defaults(cls: type[Configured]) -> dict[str, Any]:
    return {each.name: ... if each.default is MISSING else each.default for each in fields(cls)}


def _rendered(value: Any) -> Any:
    """Return a parameter of a codec as a JSON value."""
    if isinstance(value, tuple):
        return [_rendered(item) for item in value]
    return value.to_json() if hasattr(value, "to_json") else value


@dataclass(frozen=True)
class PackageCodec:
    """A codec of another package."""

    #: The name in v3.
    name: str
    #: The configuration as JSON.
    config: str

    def to_json(self) -> Json:
        # Also if it is empty: zarr-python requires it.
        return {"name": self.name, "configuration": json.loads(self.config)}


class Configurable(Protocol):
    """The interface of codec classes."""

    name: ClassVar[str]
    kind: ClassVar[Kind]

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        """Return the codec for its v3 configuration, which is None if the document has none."""


def complete(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Return codecs with the parameters filled in that depend on the chunks, to be written.

    Codecs with such parameters have a method ``complete(spec)``, where `spec` describes their
    input, or the input of the array -> bytes codec before them. The order is checked later.
    """
    completed: list[Codec] = []
    for codec in codecs:
        if hasattr(codec, "complete"):
            codec = codec.complete(spec)
        completed.append(codec)
        if codec.kind is Kind.ARRAY_ARRAY:
            spec = resolve(cast(ArrayArray, codec), spec)
    return tuple(completed)


def resolve(codec: ArrayArray, spec: ChunkSpec) -> ChunkSpec:
    """Return the output of a codec for an input; an error names the codec."""
    try:
        return codec.resolve(spec)
    except ZarrdaskError as error:
        raise named(error, codec) from error.__cause__
