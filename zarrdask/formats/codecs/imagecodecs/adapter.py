"""Adapters for the codecs of imagecodecs: the classes that it has for numcodecs, by v3 names."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import CodecError, MetadataError, TruncatedError, UnsupportedError
from zarrdask.formats.codecs.codec import (
    SLACK,
    Buffer,
    ChunkSpec,
    Json,
    Kind,
    PackageCodec,
    Serializer,
    failed,
    load_package,
    refused,
)
from zarrdask.formats.codecs.imagecodecs.names import KINDS
from zarrdask.formats.codecs.numeric import native
from zarrdask.formats.codecs.streams import too_long

#: The largest size, in bytes, for which memory is allocated before a value is decoded.
_MAX_ALLOCATED_BYTES = 2**31
#: Codecs that need a buffer of the exact size, and so get none.
_EXACT = frozenset({"imagecodecs_pglz"})
#: The last bytes of a complete value, for codecs that decode truncated values without an error.
_LAST_BYTES = {"imagecodecs_htj2k": b"\xff\xd9", "imagecodecs_jpeg": b"\xff\xd9"}
#: Members that the classes for zarr-python have, but not those for numcodecs. They change no byte.
_IGNORED = frozenset({"numthreads"})


@dataclass(frozen=True)
class _Adapter(PackageCodec):
    """A codec of imagecodecs."""

    @classmethod
    def of(cls, name: str, configuration: Any) -> Self:
        """Return the codec for a v3 configuration, whose members are checked."""
        members = dict(configuration or {})
        permitted = set(parameters_of(name)) | _IGNORED
        for member in members.keys() - permitted:
            raise MetadataError(
                "unknown member of the configuration",
                key=f"codec {name}",
                found=member,
                expected=", ".join(sorted(permitted)) or "none",
            )
        return cls(name, json.dumps(members, sort_keys=True))

    def to_json(self) -> Json:
        members = super().to_json()
        return members if members["configuration"] else {"name": self.name}


@dataclass(frozen=True)
class Compressor(_Adapter):
    """Bytes -> bytes."""

    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    @classmethod
    def of(cls, name: str, configuration: Any) -> Self:
        codec = super().of(name, configuration)
        make(name, codec.config)
        return codec

    def encode(self, data: Buffer) -> Buffer:
        codec = make(self.name, self.config)
        with _errors("encode"):
            return codec.encode(bytes(data))  # type: ignore[no-any-return]

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        # With one byte more than the limit, as some codecs fill the buffer and ignore what follows.
        allocates = limit < _MAX_ALLOCATED_BYTES and self.name not in _EXACT
        buffer = np.empty(limit + 1, np.uint8) if allocates else None
        codec = make(self.name, self.config)
        with _errors("decode"):
            decoded = memoryview(codec.decode(bytes(data), buffer)).cast("B")
        if decoded.nbytes > limit:
            raise too_long(decoded.nbytes, limit)
        return decoded

    def encoded_size(self, size: int) -> int | None:
        return None


@dataclass(frozen=True)
class Filter(_Adapter):
    """Array -> array: the result has the shape and the data type of the chunk."""

    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        dtype = _checked(spec.dtype)
        _bound(self, spec.shape, dtype)
        return ChunkSpec(spec.shape, dtype, spec.fill_value)

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        chunk = np.ascontiguousarray(native(chunk)).reshape(chunk.shape)
        codec = _bound(self, chunk.shape, chunk.dtype)
        with _errors("encode"):
            return _array(codec.encode(chunk), chunk.shape, chunk.dtype)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        dtype = spec.dtype.newbyteorder("=")
        chunk = np.ascontiguousarray(native(chunk)).reshape(chunk.shape)
        codec = _bound(self, chunk.shape, chunk.dtype)
        with _errors("decode"):
            return _array(codec.decode(chunk), spec.shape, dtype)


@dataclass(frozen=True)
class ImageCodec(_Adapter):
    """Array -> bytes."""

    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    def bind(self, spec: ChunkSpec) -> "Image":
        return Image(self, spec)


class Image(Serializer):
    """An array -> bytes codec of imagecodecs, bound to chunks."""

    def __init__(self, codec: ImageCodec, spec: ChunkSpec) -> None:
        self.codec = codec
        self.spec = spec
        self.dtype = _checked(spec.dtype)
        self.most = 2 * spec.nbytes + SLACK
        _bound(codec, spec.shape, self.dtype)

    def encode(self, chunk: np.ndarray) -> Buffer:
        codec = _bound(self.codec, self.spec.shape, self.dtype)
        values = np.ascontiguousarray(native(chunk)).reshape(self.spec.shape)
        with _errors("encode"):
            return bytes(codec.encode(values))

    def decode(self, data: Buffer) -> np.ndarray:
        codec, value = _bound(self.codec, self.spec.shape, self.dtype), bytes(data)
        last = _LAST_BYTES.get(self.codec.name, b"")
        if not value.endswith(last):
            raise TruncatedError(
                "the image is truncated: its end marker is missing",
                found=f"{len(value)} bytes, the last {value[-len(last) :].hex()}",
                expected=f"{last.hex()} at the end",
            )
        with _errors("decode"):
            return _array(codec.decode(value), self.spec.shape, self.dtype)


@dataclass(frozen=True)
class Entry:
    """The codec with a name, as the registry has it."""

    name: str

    @property
    def kind(self) -> Kind:
        """The kind of the codec."""
        return KINDS[self.name]

    def from_configuration(self, configuration: Any) -> "Compressor | Filter | ImageCodec":
        """Return the codec for its v3 configuration."""
        return _CLASSES[self.kind].of(self.name, configuration)


_CLASSES: Mapping[Kind, "type[Compressor | Filter | ImageCodec]"] = {
    Kind.ARRAY_ARRAY: Filter,
    Kind.ARRAY_BYTES: ImageCodec,
    Kind.BYTES_BYTES: Compressor,
}

#: The codecs by their names in v3.
TABLE: Mapping[str, Entry] = {name: Entry(name) for name in KINDS}


@contextmanager
def _errors(verb: str) -> Iterator[None]:
    """Raise the errors of a codec as errors of zarrdask; each codec has its own types."""
    try:
        yield
    except CodecError:
        raise
    except NotImplementedError as error:
        raise UnsupportedError(f"imagecodecs can't {verb} with this codec") from error
    except Exception as error:
        raise failed(verb, error) from error


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a data type in native byte order, or raise an error if it is not one of numbers."""
    if dtype.kind not in "biufc" or dtype.isbuiltin == 2:
        raise refused(dtype, "numbers")
    return dtype.newbyteorder("=")


def _bound(codec: _Adapter, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return the codec of imagecodecs for chunks of a shape and a data type."""
    return make(codec.name, codec.config, shape, dtype)


def _class(name: str) -> Any:
    """Return the class of imagecodecs for a codec. Its name has other capitals in old releases."""
    module = load_package("imagecodecs.numcodecs", "imagecodecs")
    for item in vars(module).values():
        if getattr(item, "codec_id", None) == name:
            return item
    raise UnsupportedError(
        "the installed release of imagecodecs does not have this codec",
        key="codecs",
        found=name,
        expected="pip install --upgrade imagecodecs",
    )


@lru_cache(maxsize=256)
def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of the members of a configuration, and of what is known of the chunk."""
    return tuple(signature(_class(name)).parameters)


@lru_cache(maxsize=256)
def make(
    name: str,
    config: str,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype[Any] | None = None,
) -> Any:
    """Return a codec of imagecodecs. It gets those properties of chunks that it has members for."""
    members: Json = {}
    if shape is not None and dtype is not None:
        members = {"shape": shape, "dtype": dtype.str, "itemsize": dtype.itemsize}
        if len(shape) > 1:
            members |= {"height": shape[-2], "width": shape[-1]}
    parameters = parameters_of(name)
    members = {
        member: value
        for member, value in (members | json.loads(config)).items()
        if member in parameters
    }
    try:
        return _class(name).from_config(members)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise MetadataError(
            f"the configuration of the codec is invalid, or imagecodecs lacks it: {error}",
            key=f"codec {name}",
            found=json.loads(config),
        ) from error


def _array(decoded: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return decoded values as a chunk, or raise an error if their shape or type is another one."""
    is_array = isinstance(decoded, np.ndarray)
    values = decoded if is_array else np.frombuffer(decoded, np.uint8)
    if values.dtype != dtype and not is_array:
        values = values.view(dtype)
    if values.dtype != dtype or values.size != np.prod(shape, dtype=int):
        raise CodecError(
            "the value does not decode to a chunk of this array",
            found=f"{values.dtype} {values.shape}",
            expected=f"{dtype} {shape}",
        )
    return values.reshape(shape)
