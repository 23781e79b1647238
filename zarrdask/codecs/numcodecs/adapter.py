"""Any numcodecs codec, wrapped: the filters and the less common compressors of v2."""

import json
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from zarrdask.codecs.array_to_bytes import nested_lists
from zarrdask.codecs.array_to_bytes.zfp_header import check_rate
from zarrdask.codecs.base import UNBOUNDED, Buffer, ChunkSpec, Json, Kind
from zarrdask.codecs.numcodecs.bounded import BOUNDED, too_long
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError

if TYPE_CHECKING:
    from numcodecs.abc import Codec as NumcodecsCodec

#: Codecs that turn objects into bytes themselves; all others work on a buffer.
OBJECT_CODECS = frozenset(
    {"categorize", "json2", "msgpack2", "vlen-array", "vlen-bytes", "vlen-utf8"}
)
#: What these codecs have for no value; of the others it is None.
_EMPTY: dict[str, Any] = {"categorize": "", "vlen-bytes": b"", "vlen-utf8": ""}
_CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"})
#: How many bytes those add that add as many whatever they are given.
_MORE = dict.fromkeys(_CHECKSUMS, 4) | {"shuffle": 0}


def make(config: Json) -> "NumcodecsCodec":
    """Return the numcodecs codec of a v2 configuration.

    Raises
    ------
    UnsupportedError
        If the id is ``pickle``, or unknown (conformance A-27, A-66).
    MetadataError
        If it has no id, or the codec refuses its configuration.
    """
    name = config.get("id")
    if not isinstance(name, str):
        raise MetadataError("a codec without its id", key="codec", found=config, expected='"id"')
    if name == "pickle":
        raise UnsupportedError(
            "refused: unpickling runs code that the file's author chose", key="codec", found=name
        )
    return _make(json.dumps(config, sort_keys=True))


@lru_cache(maxsize=256)
def _make(config: str) -> "NumcodecsCodec":
    # Loaded when there is such a codec: to look at an array of another must not cost it.
    import numcodecs

    members = json.loads(config)
    try:
        return numcodecs.get_codec(members)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        if members["id"] in numcodecs.registry.codec_registry:
            raise MetadataError(
                f"the codec refuses its configuration: {error}",
                key=f"codec {members['id']}",
                found=members,
            ) from error
        raise UnsupportedError(
            "unknown codec, or its package is not installed", key="codec", found=members["id"]
        ) from error


@dataclass(frozen=True)
class BufferCodec:
    """Bytes -> bytes: a numcodecs codec that works on a buffer.

    Parameters
    ----------
    config : str
        Its v2 configuration, as JSON.
    view : str
        The typestr as which it is to see the bytes that it encodes.
    """

    config: str
    view: str = "|u1"

    kind: ClassVar[Kind] = Kind.BYTES_BYTES
    #: A filter may widen elements: from one byte to a complex number of sixteen.
    growth: ClassVar[int] = 16

    @property
    def name(self) -> str:
        """The numcodecs id."""
        return str(json.loads(self.config)["id"])

    def to_json(self) -> Json:
        raise UnsupportedError(
            "this codec can't be written in Zarr v3 metadata", key="codecs", found=self.name
        )

    def encode(self, data: Buffer) -> Buffer:
        typed = np.frombuffer(data, self.view) if len(data) else np.empty(0, self.view)
        codec = _make(self.config)
        options = getattr(codec, "compression_kwargs", {})
        if codec.codec_id == "zfpy" and "rate" in options:
            check_rate(options["rate"], 1, typed.dtype)
        try:
            return _plain(codec.encode(typed))
        except Exception as error:  # numcodecs checks little: damaged data fail anyhow
            raise CodecError(f"can't encode: {error}", key=f"codec {self.name}") from error

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        codec = _make(self.config)
        bounded = BOUNDED.get(codec.codec_id)
        try:
            decoded = _plain(codec.decode(data) if bounded is None else bounded(data, codec, limit))
            if len(decoded) > limit:
                raise too_long(len(decoded), limit)
        except CodecError as error:
            raise error.within(f"codec {self.name}") from error.__cause__
        except Exception as error:  # numcodecs checks little: damaged data fail anyhow
            kind = ChecksumError if codec.codec_id in _CHECKSUMS else CodecError
            raise kind(f"can't decode: {error}", key=f"codec {self.name}") from error
        return decoded

    def encoded_size(self, size: int) -> int | None:
        more = _MORE.get(str(_make(self.config).codec_id))
        return None if more is None else size + more


@dataclass(frozen=True)
class ObjectCodec:
    """Array -> bytes: a numcodecs codec that takes an array of objects.

    Parameters
    ----------
    config : str
        Its v2 configuration, as JSON.
    """

    config: str

    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @property
    def name(self) -> str:
        """The numcodecs id."""
        return str(json.loads(self.config)["id"])

    @property
    def empty(self) -> Any:
        """The element of an array whose fill value is left open."""
        return np.empty(0) if self.name == "vlen-array" else _EMPTY.get(self.name)

    def to_json(self) -> Json:
        raise UnsupportedError(
            "this codec can't be written in Zarr v3 metadata", key="codecs", found=self.name
        )

    def bind(self, spec: ChunkSpec) -> "Objects":
        if not spec.dtype.hasobject:
            raise MetadataError(
                "this codec stores objects only", key=f"codec {self.name}", found=str(spec.dtype)
            )
        return Objects(self, spec)


class Objects:
    """An object codec, bound to chunks."""

    __slots__ = ("codec", "encoded_size", "most", "raw", "spec")

    def __init__(self, codec: ObjectCodec, spec: ChunkSpec) -> None:
        self.codec = codec
        self.spec = spec
        self.encoded_size: int | None = None
        self.most = UNBOUNDED
        self.raw: np.dtype[Any] | None = None

    def encode(self, chunk: np.ndarray) -> Buffer:
        # A copy, as some codecs need memory that is writable, in C order.
        values = np.array(chunk, order="C", ndmin=1)
        if self.codec.name not in nested_lists.NAMES:
            values = values.reshape(-1)
        codec = _make(self.codec.config)
        try:
            try:
                return _plain(codec.encode(values))
            except TypeError:
                return _plain(codec.encode(python_objects(values)))
        except Exception as error:  # numcodecs checks little: damaged data fail anyhow
            raise CodecError(f"can't encode: {error}", key=f"codec {self.codec.name}") from error

    def decode(self, data: Buffer) -> np.ndarray:
        self._check_count(data)
        try:
            codec = _make(self.codec.config)
            if codec.codec_id in nested_lists.NAMES:
                flat = nested_lists.decode(data, codec.get_config(), prod(self.spec.shape))
            else:
                elements = codec.decode(data)
                flat = np.empty(len(elements), object)
                flat[:] = list(elements)
            return flat.reshape(self.spec.shape)
        except CodecError:
            raise
        except Exception as error:  # numcodecs checks little: damaged data fail anyhow
            raise CodecError(f"can't decode: {error}", key=f"codec {self.codec.name}") from error

    def _check_count(self, data: Buffer) -> None:
        # The variable-length codecs take memory for as many items as the first bytes say.
        if not self.codec.name.startswith("vlen-"):
            return
        count, expected = int.from_bytes(data[:4], "little"), prod(self.spec.shape)
        if len(data) < 4 or count != expected:
            raise CodecError(
                "the chunk holds another number of items",
                key=f"codec {self.codec.name}",
                found=count,
                expected=str(expected),
            )


def python_objects(chunk: np.ndarray) -> np.ndarray:
    """Return a chunk of objects with Python's own in place of NumPy's scalars and 0-d arrays."""
    objects = np.empty(chunk.size, object)
    for position, element in enumerate(chunk.flat):
        scalar = isinstance(element, np.generic) or (
            isinstance(element, np.ndarray) and not element.ndim
        )
        objects[position] = element.item() if scalar else element
    return objects.reshape(chunk.shape)


def _plain(value: Any) -> Buffer:
    """Return what a numcodecs codec gave as bytes."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return value  # type: ignore[no-any-return]
