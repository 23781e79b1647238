"""The registry of codecs by name. Built-in codecs are registered in the same way as others."""

from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from zarrdask.errors import UnsupportedError, instance_of
from zarrdask.formats.codecs.aliases import OLD_NAMES, renamed, with_axes
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.codec import (
    Buffer,
    ChunkSpec,
    Codec,
    Configurable,
    Json,
    Kind,
    check_count,
)
from zarrdask.formats.codecs.imagecodecs.names import KINDS
from zarrdask.formats.codecs.providers import of_zarr_python
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.extension import Definition, Registry, parse_definition

_HERE = "zarrdask.formats.codecs"
#: The codecs of numcodecs that are entries of a table.
_IN_TABLE = (
    *("adler32", "astype", "bz2", "crc32", "crc32c", "delta", "fixedscaleoffset", "fletcher32"),
    *("jenkins_lookup3", "lz4", "lzma", "packbits", "quantize", "shuffle"),
)

CODECS: Registry[type[Configurable]] = Registry(
    "codec",
    "codecs",
    "zarrdask.codecs",
    {
        "bitround": f"{_HERE}.array_to_array.bitround:BitroundCodec",
        "blosc": f"{_HERE}.bytes_to_bytes.blosc:BloscCodec",
        "bytes": f"{_HERE}.array_to_bytes.bytes:BytesCodec",
        "cast_value": f"{_HERE}.array_to_array.cast_value:CastValueCodec",
        "conditional": f"{_HERE}.bytes_to_bytes.conditional:ConditionalCodec",
        "crc32c": f"{_HERE}.bytes_to_bytes.crc32c:Crc32cCodec",
        "gzip": f"{_HERE}.bytes_to_bytes.gzip:GzipCodec",
        **dict.fromkeys(KINDS, f"{_HERE}.imagecodecs.adapter:TABLE"),
        "n5_default": f"{_HERE}.array_to_bytes.n5:N5DefaultCodec",
        "numcodecs.bitround": f"{_HERE}.array_to_array.bitround:NumcodecsBitroundCodec",
        "numcodecs.blosc": f"{_HERE}.numcodecs.table:NumcodecsBloscCodec",
        "numcodecs.gzip": f"{_HERE}.numcodecs.table:NumcodecsGzipCodec",
        "numcodecs.pcodec": f"{_HERE}.array_to_bytes.pcodec:PcodecCodec",
        "numcodecs.zfpy": f"{_HERE}.array_to_bytes.zfp:ZfpyCodec",
        "numcodecs.zlib": f"{_HERE}.numcodecs.table:NumcodecsZlibCodec",
        "numcodecs.zstd": f"{_HERE}.numcodecs.table:NumcodecsZstdCodec",
        **dict.fromkeys(
            (f"numcodecs.{name}" for name in _IN_TABLE), f"{_HERE}.numcodecs.table:TABLE"
        ),
        "packbits": f"{_HERE}.array_to_bytes.packbits:PackbitsCodec",
        "reshape": f"{_HERE}.array_to_array.reshape:ReshapeCodec",
        "scale_offset": f"{_HERE}.array_to_array.scale_offset:ScaleOffsetCodec",
        "sharding_indexed": f"{_HERE}.array_to_bytes.sharding:ShardingCodec",
        "transpose": f"{_HERE}.array_to_array.transpose:TransposeCodec",
        "vlen-bytes": f"{_HERE}.array_to_bytes.vlen:VlenBytesCodec",
        "vlen-utf8": f"{_HERE}.array_to_bytes.vlen:VlenUtf8Codec",
        "zfp": f"{_HERE}.array_to_bytes.zfp:ZfpCodec",
        "zstd": f"{_HERE}.bytes_to_bytes.zstd:ZstdCodec",
    },
    of_zarr_python,
)


@dataclass(frozen=True)
class SkippedCodec:
    """An unknown codec with ``must_understand: false`` (C-15, X-C5).

    Decoding returns the input, and encoding raises an error.
    """

    definition: Definition
    #: Array -> array or bytes -> bytes, which follows from the position in the list.
    kind: Kind

    @property
    def name(self) -> str:
        """The name in the document."""
        return self.definition.name

    def to_json(self) -> Json:
        return self.definition.to_json()

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        return spec

    def encode(self, data: Any) -> NoReturn:
        raise UnsupportedError(
            "an array with an unknown codec can be read but not written",
            key="codecs",
            found=self.name,
        )

    def decode(self, data: Any, limit: ChunkSpec | int, out: Any = None) -> Buffer | np.ndarray:
        return data  # type: ignore[no-any-return]

    def encoded_size(self, size: int) -> int | None:
        return size


def parse_codec(item: Any) -> Codec:
    """Return the codec for an item of v3's ``codecs``, a name or an object (C-18, C-46)."""
    definition = parse_definition(item, "codecs")
    if definition.name in OLD_NAMES and CODECS.get(definition.name) is None:
        definition = renamed(definition)
    codec_class = CODECS.find(definition.name)
    return cast(Codec, codec_class.from_configuration(definition.configuration))


def parse_codecs(
    items: Any, ndim: int | None = None, *, lenient: str | None = None
) -> tuple[Codec, ...]:
    """Return the codecs of a v3 list. Their order is checked when they are bound.

    Unknown codecs with ``must_understand: false`` are skipped, if they are before or after the
    array -> bytes codec (conformance C-15, X-C5).

    Parameters
    ----------
    items : list
        The value of ``codecs`` in a document.
    ndim : int, optional
        The number of axes of the chunks, for transpositions with the order "F".
    lenient : str, optional
        The rule by which little-endian ``bytes`` are added if there is no array -> bytes codec:
        files of 2023 leave it out (conformance X-C7, S-27). Nothing is added if a codec was
        skipped, as it may have been one (X-C5).
    """
    check_count(instance_of(items, "codecs", list), "codecs")
    codecs: list[Codec] = []
    kind = Kind.ARRAY_ARRAY
    for item in items:
        definition = parse_definition(item, "codecs")
        codec_class = CODECS.get(definition.name)
        if codec_class is None and definition.name in OLD_NAMES:
            definition = renamed(definition)
            codec_class = CODECS.get(definition.name)
        if codec_class is not None:
            if definition.name == "transpose":
                definition = with_axes(definition, ndim)
            codec = codec_class.from_configuration(definition.configuration)
            codecs.append(cast(Codec, codec))
        elif definition.must_understand:
            raise CODECS.unknown(definition.name)
        else:
            report_deviation(
                "C-15",
                "an unknown codec is skipped",
                key="codecs",
                found=definition.name,
                warn=True,
            )
            codecs.append(SkippedCodec(definition, kind))
        if codecs[-1].kind is not Kind.ARRAY_ARRAY:
            kind = Kind.BYTES_BYTES
    if lenient is not None and not any(
        codec.kind is Kind.ARRAY_BYTES or isinstance(codec, SkippedCodec) for codec in codecs
    ):
        codecs = _with_bytes(codecs, lenient)
    return tuple(codecs)


def _with_bytes(codecs: list[Codec], rule: str) -> list[Codec]:
    """Return codecs without an array -> bytes codec with little-endian ``bytes`` added."""
    report_deviation(
        rule,
        "there is no array->bytes codec; little-endian elements are assumed",
        key="codecs",
        found=[codec.name for codec in codecs],
        expected="exactly one array->bytes codec",
    )
    at = [codec.kind for codec in codecs].count(Kind.ARRAY_ARRAY)
    return [*codecs[:at], BytesCodec("little"), *codecs[at:]]
