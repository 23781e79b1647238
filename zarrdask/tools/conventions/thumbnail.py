"""Thumbnails: small grey images of two-dimensional values, as PNG within a page. Pure."""

import struct
from base64 import b64encode
from zlib import compress, crc32

import numpy as np

from zarrdask.display.html import as_html, muted

#: The longest side of a thumbnail, in pixels.
_SIDE = 160
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def thumbnail(values: np.ndarray, caption: str) -> str:
    """Return values of any number type as an image with a caption: the greatest are white.

    Values that are not finite are transparent.
    """
    step = max(-(-max(values.shape) // _SIDE), 1)
    pixels = _grey_and_alpha(values[::step, ::step])
    height, width = pixels.shape[:2]
    zoom = _SIDE // max(height, width)
    data = b64encode(_png(pixels)).decode()
    style = "image-rendering: pixelated; border: 1px solid; max-width: 100%"
    return (
        f'<figure style="margin: 0"><img src="data:image/png;base64,{data}" '
        f'width="{width * zoom}" height="{height * zoom}" alt="{as_html(caption)}" '
        f'style="{style}"/><figcaption>{muted(caption)}</figcaption></figure>'
    )


def _grey_and_alpha(values: np.ndarray) -> np.ndarray:
    numbers = values.astype("f8")
    is_finite = np.isfinite(numbers)
    low = numbers.min(where=is_finite, initial=np.inf)
    high = numbers.max(where=is_finite, initial=-np.inf)
    scale = 255 / (high - low) if high > low else 0
    pixels = np.zeros((*values.shape, 2), "u1")
    pixels[..., 0][is_finite] = ((numbers[is_finite] - low) * scale).round()
    pixels[..., 1] = is_finite * 255
    return pixels


def _png(pixels: np.ndarray) -> bytes:
    """Return pixels of grey and alpha as a PNG file."""
    height, width = pixels.shape[:2]
    header = struct.pack(">2I5B", width, height, 8, 4, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        _SIGNATURE + _part(b"IHDR", header) + _part(b"IDAT", compress(rows)) + _part(b"IEND", b"")
    )


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))
