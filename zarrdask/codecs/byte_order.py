"""The byte order that a list of codecs leaves out."""

from dataclasses import replace

from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import Codec
from zarrdask.compliance import report_deviation


def little_endian(codecs: tuple[Codec, ...]) -> tuple[Codec, ...]:
    """Return codecs of which ``bytes``, also within shards, has the little-endian byte order.

    What has an order keeps it. This is how ``structured`` is to be read (conformance X-C7): its
    only writer had none. With the order it can be written again as ``struct``, which needs one.
    """
    return tuple(map(_little_endian, codecs))


def _little_endian(codec: Codec) -> Codec:
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=little_endian(codec.codecs))
    if not isinstance(codec, BytesCodec) or codec.endian is not None:
        return codec
    report_deviation(
        "X-C7",
        "a byte order is missing, little is taken",
        key="bytes.endian",
        expected="'little' or 'big'",
        warn=True,
    )
    return replace(codec, endian="little")
