"""Decompress streams that follow one another, up to a limit: damaged data may contain any size."""

from collections.abc import Callable
from typing import Any, Literal

from zarrdask.errors import CodecError, TruncatedError
from zarrdask.formats.codecs.codec import Buffer

#: The number of bytes that are first passed to the decompressor of a second or later stream.
_FIRST_STEP = 2**12


def decompress_streams(
    start: Callable[[], Any],
    data: Buffer,
    limit: int,
    then: Literal["streams", "padding", "anything"] = "streams",
) -> Buffer:
    """Decompress one stream, or several that follow one another, to at most `limit` bytes.

    Parameters
    ----------
    start : callable
        Returns a decompressor of the standard library, or one like these.
    data : bytes-like
        The streams.
    limit : int
        The maximum number of decoded bytes.
    then : {"streams", "padding", "anything"}
        What may follow the first stream: only other streams; these, and zeros after the last one;
        or anything, which is ignored.
    """
    stream = start()
    # One byte more than is permitted, to detect a value that is too long.
    first = stream.decompress(data, limit + 1)
    if len(first) > limit:
        raise too_long(len(first), limit)
    if not stream.eof:
        raise _truncated(first)
    rest = stream.unused_data
    if not rest or then == "anything":
        return first  # type: ignore[no-any-return]
    view, end = memoryview(rest), len(rest.rstrip(b"\0") if then == "padding" else rest)
    # Nearly all values are one stream. A decompressor copies the bytes that follow its stream, so
    # that the decompressors of others get few at a time. Otherwise the time would be quadratic in
    # the number of streams. So it would be if each copied what is decoded.
    decoded, at = bytearray(first), 0
    while at < end:
        stream, step = start(), _FIRST_STEP
        while not stream.eof and at < len(view):
            decoded += stream.decompress(view[at : at + step], limit + 1 - len(decoded))
            if len(decoded) > limit:
                raise too_long(len(decoded), limit)
            at, step = at + step, 2 * step
        if not stream.eof:
            raise _truncated(decoded)
        at = min(at, len(view)) - len(stream.unused_data)
    return decoded


def _truncated(decoded: Buffer) -> TruncatedError:
    return TruncatedError("the value ends early", found=f"{len(decoded)} bytes")


def too_long(size: int, limit: int) -> CodecError:
    """Return the error for a decoded value that is larger than the metadata permit."""
    return CodecError(
        "the decoded value has too many bytes", found=size, expected=f"at most {limit}"
    )
