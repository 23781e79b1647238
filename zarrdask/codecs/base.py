"""What a codec is. It sees a `ChunkSpec` and bytes; never array metadata, never a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError

Buffer = bytes | bytearray | memoryview
Json = dict[str, Any]

#: Room that an encoder may take beyond its input: bounds what a damaged value can make us allocate.
SLACK = 2**16
#: The most bytes of anything. With what codecs add it is still a number that libraries take.
MOST = 2**62
#: The bound where the metadata gives none (elements of variable length).
UNBOUNDED = 2**40
#: The most codecs, filters or storage transformers in one list. Each is work for every chunk, and
#: real arrays have a handful.
MAX_CODECS = 64
#: The most dimensions that an array of NumPy can have.
MAX_DIMENSIONS = 64


class Kind(Enum):
    """What a codec turns into what when it encodes; a pipeline has them in this order."""

    ARRAY_ARRAY = "array->array"
    ARRAY_BYTES = "array->bytes"
    BYTES_BYTES = "bytes->bytes"


@dataclass(frozen=True)
class ChunkSpec:
    """What a codec may know of the chunk it works on.

    Attributes
    ----------
    shape : tuple of int
        In elements.
    dtype : numpy.dtype
        With its byte order.
    fill_value : scalar
        Of the dtype; what absent parts hold.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any

    @property
    def nbytes(self) -> int:
        """The decoded size, in bytes."""
        return prod(self.shape) * self.dtype.itemsize


class Codec(Protocol):
    """What all codecs have in common. They are frozen, equal by value, and pickle."""

    @property
    def name(self) -> str:
        """What it is called in metadata."""

    @property
    def kind(self) -> Kind:
        """What it turns into what."""

    def to_json(self) -> Json:
        """Return the codec's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class ArrayArray(Codec, Protocol):
    """Array -> array."""

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        """Return what this codec hands to the next one when it encodes such chunks.

        Raises
        ------
        ZarrdaskError
            If it can't take them.
        """

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        """Return the encoded chunk."""

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        """Return the chunk that was encoded; `spec` is of the result."""


class ArrayBytes(Codec, Protocol):
    """Array -> bytes."""

    def bind(self, spec: ChunkSpec) -> "Serializer":
        """Return what encodes and decodes such chunks.

        Raises
        ------
        ZarrdaskError
            If it can't take them.
        """


class Serializer(Protocol):
    """An array -> bytes codec, bound to the chunks of one array.

    Attributes
    ----------
    encoded_size : int or None
        How many bytes a chunk takes, or None if that depends on its values.
    most : int
        A bound on that: what a damaged value may not exceed.
    raw : numpy.dtype or None
        The stored dtype if the bytes are just the elements in C order.
    """

    encoded_size: int | None
    most: int
    raw: np.dtype[Any] | None

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the chunk as bytes."""

    def decode(self, data: Buffer) -> np.ndarray:
        """Return the chunk; it may be a read-only view of `data`."""


class BytesBytes(Codec, Protocol):
    """Bytes -> bytes.

    A class whose output can be more than twice as long as its input says how many times as long,
    in an attribute `growth`: it bounds what a damaged value can make us allocate.
    """

    def encode(self, data: Buffer) -> Buffer:
        """Return the encoded bytes."""

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        """Return the decoded bytes.

        Parameters
        ----------
        data : bytes-like
            What was stored.
        limit : int
            The most bytes that the result may have.
        out : ndarray of uint8, optional
            1-d, of `limit` bytes, which is then the exact size: where the result may be put. It
            is returned if it was used.
        """

    def encoded_size(self, size: int) -> int | None:
        """Return how many bytes `size` bytes become, or None if it depends on their values."""


def configuration(found: Any, name: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return a codec's configuration with defaults filled in.

    Parameters
    ----------
    known : dict
        Every permitted member and its default; a default of ``...`` makes it required.

    Raises
    ------
    MetadataError
        If a member is missing or unknown (conformance C-28).
    """
    members = {} if found is None else dict(found)
    for key in members:
        if key not in known:
            raise MetadataError(
                "unknown member of the configuration",
                key=f"codec {name}",
                found=key,
                expected=", ".join(known) or "none",
            )
    for key, default in known.items():
        if key not in members:
            if default is ...:
                raise MetadataError(
                    "a member of the configuration is missing", key=f"codec {name}", expected=key
                )
            members[key] = default
    return members


def check_count(codecs: Sequence[Any], key: str) -> None:
    """Check that a list of codecs, filters or storage transformers is not too long.

    Raises
    ------
    MetadataError
        If it has more than `MAX_CODECS` items.
    """
    if len(codecs) > MAX_CODECS:
        raise MetadataError(
            "there are too many items in this list",
            key=key,
            found=len(codecs),
            expected=f"at most {MAX_CODECS}",
        )


def check_dimensions(count: int, key: str) -> None:
    """Check that NumPy can have arrays of so many dimensions.

    Raises
    ------
    UnsupportedError
        If it can't.
    """
    if count > MAX_DIMENSIONS:
        raise UnsupportedError(
            "NumPy has no arrays of so many dimensions",
            key=key,
            found=count,
            expected=f"at most {MAX_DIMENSIONS}",
        )


def integer(value: Any, key: str, low: int, high: int) -> int:
    """Return an integer from a configuration.

    Raises
    ------
    MetadataError
        If it is none, or not within `low` and `high`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise MetadataError(
            "not a permitted value",
            key=key,
            found=value,
            expected=f"an integer from {low} to {high}",
        )
    return value


def one_of(value: Any, key: str, choices: Sequence[Any]) -> Any:
    """Return a value from a configuration.

    Raises
    ------
    MetadataError
        If it is not one of the choices.
    """
    if value not in choices:
        raise MetadataError(
            "not a permitted value",
            key=key,
            found=value,
            expected=", ".join(map(repr, choices)),
        )
    return value


class Configurable(Protocol):
    """A codec class, as the registry sees it."""

    name: ClassVar[str]
    kind: ClassVar[Kind]

    @classmethod
    def from_configuration(cls, found: Any) -> Self:
        """Return the codec for a v3 configuration (None if absent)."""


def complete(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Return codecs with what they leave to the chunks filled in, for metadata to be written.

    Those that leave something have a method ``complete(spec)``: of the chunks that they are
    given, or that the array -> bytes codec before them is.

    Parameters
    ----------
    codecs : sequence of Codec
        In any order; it is checked where they are bound.
    spec : ChunkSpec
        What the first is given.
    """
    found: list[Codec] = []
    for codec in codecs:
        if hasattr(codec, "complete"):
            codec = codec.complete(spec)
        found.append(codec)
        if codec.kind is Kind.ARRAY_ARRAY:
            spec = cast(ArrayArray, codec).resolve(spec)
    return tuple(found)
