"""The byte order of codecs that do not specify it."""

from dataclasses import replace

from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import Codec
from zarrdask.compliance import report_deviation


def little_endian(codecs: tuple[Codec, ...]) -> tuple[Codec, ...]:
    """Return codecs in which ``bytes`` without a byte order is little-endian, also within shards.

    This is how the data type ``structured`` is read (conformance X-C7), whose only writer did not
    specify a byte order. The data type ``struct``, as which it is written again, requires one.
    """
    return tuple(map(_little_endian, codecs))


def _little_endian(codec: Codec) -> Codec:
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=little_endian(codec.codecs))
    if not isinstance(codec, BytesCodec) or codec.endian is not None:
        return codec
    report_deviation(
        "X-C7",
        "a byte order is missing; little-endian is assumed",
        key="bytes.endian",
        expected="'little' or 'big'",
        warn=True,
    )
    return replace(codec, endian="little")
