"""Adapters for codecs of numcodecs: the filters and the less common compressors of v2."""

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes import nested_lists
from zarrdask.formats.codecs.array_to_bytes.zfp_header import check_rate
from zarrdask.formats.codecs.codec import (
    UNBOUNDED,
    Buffer,
    ChunkSpec,
    Json,
    Kind,
    Serializer,
    failed,
    refused,
)
from zarrdask.formats.codecs.numcodecs.bounded import BOUNDED
from zarrdask.formats.codecs.numcodecs.items import ITEM_TYPES, check_items, python_objects
from zarrdask.formats.codecs.providers import of_numcodecs
from zarrdask.formats.codecs.streams import too_long
from zarrdask.formats.dtypes.numpy_type import check_divisors

if TYPE_CHECKING:
    from numcodecs.abc import Codec as NumcodecsCodec

#: Codecs that encode objects; all others encode a buffer.
OBJECT_CODECS = frozenset(
    {"categorize", "json2", "msgpack2", "vlen-array", "vlen-bytes", "vlen-utf8"}
)
#: The element of these codecs for a missing value; for others it is None.
_EMPTY: dict[str, Any] = {"categorize": "", "vlen-bytes": b"", "vlen-utf8": ""}
_CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"})
#: The members of configurations that numcodecs passes to NumPy as data types.
_DATA_TYPES = frozenset({"astype", "decode_dtype", "dtype", "encode_dtype"})
#: The number of bytes that codecs with a fixed encoded size add.
_ADDED_BYTES = dict.fromkeys(_CHECKSUMS, 4) | {"shuffle": 0}
#: The most bytes that codecs can encode, if their libraries have a limit.
_MAX_BYTES = {"blosc": 2**31 - 1 - 16, "lz4": 0x7E000000}


def make(config: Json) -> "NumcodecsCodec":
    """Return the codec of numcodecs for a v2 configuration (conformance A-27, A-66)."""
    name = config.get("id")
    if not isinstance(name, str):
        raise MetadataError(
            "the configuration of a codec has no id",
            key="codec",
            found=config,
            expected='the member "id"',
        )
    if name == "pickle":
        raise UnsupportedError(
            "the codec pickle is not supported, as unpickling runs code of the file's author",
            key="codec",
            found=name,
        )
    try:
        text = json.dumps(config, sort_keys=True)
    except (ValueError, TypeError, RecursionError) as error:
        raise MetadataError(
            f"this configuration of a codec can't be written as JSON: {error}",
            key="codec",
            found=name,
            expected="text, numbers, True, False, None, and lists and dicts of these",
        ) from error
    return _make(text)


@lru_cache(maxsize=256)
def _make(config: str) -> "NumcodecsCodec":
    # Imported here, as only arrays with such a codec need it.
    import numcodecs

    members = json.loads(config)
    try:
        for name in _DATA_TYPES & set(members):
            check_divisors(json.dumps(members[name]))
        return numcodecs.get_codec(members)
    except (TypeError, ValueError, AttributeError, KeyError, SyntaxError) as error:
        if members["id"] in numcodecs.registry.codec_registry:
            raise MetadataError(
                f"the configuration of the codec is invalid: {error}",
                key=f"codec {members['id']}",
                found=members,
            ) from error
        raise UnsupportedError(
            "unknown codec, or its package is not installed",
            key="codec",
            found=members["id"],
            expected=of_numcodecs(members["id"]),
        ) from error


@dataclass(frozen=True)
class _Adapter:
    """A codec of numcodecs.

    Parameters
    ----------
    config : str
        The v2 configuration as JSON.
    """

    config: str

    @classmethod
    def made(cls, config: Json, *others: str) -> Self:
        """Return the codec for a v2 configuration that numcodecs accepts."""
        make(config)
        return cls(json.dumps(config, sort_keys=True), *others)

    @cached_property
    def name(self) -> str:
        """The id of the codec in numcodecs."""
        return str(json.loads(self.config)["id"])

    def to_json(self) -> Json:
        raise UnsupportedError(
            "Zarr v3 metadata can't contain this codec", key="codecs", found=self.name
        )


@dataclass(frozen=True)
class BufferCodec(_Adapter):
    """Bytes -> bytes: a codec of numcodecs that encodes a buffer.

    Parameters
    ----------
    view : str
        The data type of the elements that the codec is passed, as a typestr.
    """

    view: str = "|u1"

    kind: ClassVar[Kind] = Kind.BYTES_BYTES
    #: A filter may enlarge elements, at most from one byte to a complex number of sixteen bytes.
    growth: ClassVar[int] = 16

    @property
    def output(self) -> np.dtype[Any]:
        """The type of the elements that a filter gives, which the next filter gets."""
        if self.name == "bitround":
            return np.dtype(self.view)
        members = _make(self.config).get_config()
        return np.dtype(members.get("astype") or members.get("encode_dtype") or "|u1")

    @property
    def max_bytes(self) -> int | None:
        """The most bytes that the codec can encode; None if there is no limit."""
        limit = getattr(_make(self.config), "max_buffer_size", None)
        return _MAX_BYTES.get(self.name) if limit is None else int(limit)

    def encode(self, data: Buffer) -> Buffer:
        typed = np.frombuffer(data, self.view) if len(data) else np.empty(0, self.view)
        codec = _make(self.config)
        options = getattr(codec, "compression_kwargs", {})
        if codec.codec_id == "zfpy" and "rate" in options:
            check_rate(options["rate"], 1, typed.dtype)
        try:
            return _plain(codec.encode(typed))
        except Exception as error:  # numcodecs raises all kinds of errors
            raise failed("encode", error) from error

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        codec = _make(self.config)
        bounded = BOUNDED.get(codec.codec_id)
        try:
            decoded = _plain(codec.decode(data) if bounded is None else bounded(data, codec, limit))
            if len(decoded) > limit:
                raise too_long(len(decoded), limit)
        except CodecError:
            raise
        except Exception as error:  # numcodecs raises all kinds of errors
            kind = ChecksumError if codec.codec_id in _CHECKSUMS else CodecError
            raise kind(f"the value can't be decoded: {error}") from error
        return decoded

    def encoded_size(self, size: int) -> int | None:
        added = _ADDED_BYTES.get(str(_make(self.config).codec_id))
        return None if added is None else size + added


@dataclass(frozen=True)
class ObjectCodec(_Adapter):
    """Array -> bytes: a codec of numcodecs that encodes an array of objects."""

    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @property
    def empty(self) -> Any:
        """The value of missing elements of an array without a fill value."""
        return np.empty(0) if self.name == "vlen-array" else _EMPTY.get(self.name)

    def bind(self, spec: ChunkSpec) -> "Objects":
        if not spec.dtype.hasobject:
            raise refused(spec.dtype, "objects")
        return Objects(self, spec)


class Objects(Serializer):
    """An object codec, bound to chunks."""

    def __init__(self, codec: ObjectCodec, spec: ChunkSpec) -> None:
        self.codec = codec
        self.spec = spec
        self.most = UNBOUNDED

    def encode(self, chunk: np.ndarray) -> Buffer:
        if (item := ITEM_TYPES.get(self.codec.name)) is not None:
            chunk = check_items(chunk, item, self.spec.fill_value)
        # A copy, as some codecs need writable memory in C order.
        values = np.array(chunk, order="C", ndmin=1)
        if self.codec.name not in nested_lists.NAMES:
            values = values.reshape(-1)
        codec = _make(self.codec.config)
        try:
            try:
                return _plain(codec.encode(values))
            except TypeError:
                return _plain(codec.encode(python_objects(values)))
        except Exception as error:  # numcodecs raises all kinds of errors
            raise failed("encode", error) from error

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
        except Exception as error:  # numcodecs raises all kinds of errors
            raise failed("decode", error) from error

    def _check_count(self, data: Buffer) -> None:
        # The variable-length codecs allocate memory for the number of items in the first bytes.
        if not self.codec.name.startswith("vlen-"):
            return
        count, expected = int.from_bytes(data[:4], "little"), prod(self.spec.shape)
        if len(data) < 4 or count != expected:
            raise CodecError(
                "the number of items in the value differs from the chunk's",
                found=count,
                expected=str(expected),
            )


def _plain(value: Any) -> Buffer:
    """Return the result of a codec of numcodecs as bytes."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return value  # type: ignore[no-any-return]
