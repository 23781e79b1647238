"""Thumbnails: small images in pages, scaled to their values."""

import struct
from base64 import b64decode
from zlib import decompress

import numpy as np

from tests.covering import for_each
from zarrdask.tools.conventions.thumbnail import thumbnail


def pixels(html):
    """Return the grey and alpha of an image in a page."""
    data = b64decode(html.split("base64,")[1].split('"')[0])
    width, height = struct.unpack(">2I", data[16:24])
    length = int.from_bytes(data[33:37])
    rows = np.frombuffer(decompress(data[41 : 41 + length]), "u1").reshape(height, -1)
    return rows[:, 1:].reshape(height, width, 2)


@for_each(
    ("values", "grey", "alpha"),
    [
        ([[100, 355], [200, 100]], [[0, 255], [100, 0]], [[255, 255], [255, 255]]),
        ([[np.nan, 0.5], [np.inf, 1.5]], [[0, 0], [0, 255]], [[0, 255], [0, 255]]),
        ([[7, 7]], [[0, 0]], [[255, 255]]),
        ([[np.nan]], [[0]], [[0]]),
        ([[False, True]], [[0, 255]], [[255, 255]]),
    ],
)
def test_values_are_scaled_to_grey_and_those_that_are_not_finite_are_transparent(
    values, grey, alpha
):
    found = pixels(thumbnail(np.array(values), "c"))
    assert found[..., 0].tolist() == grey
    assert found[..., 1].tolist() == alpha


def test_large_images_are_thinned_out_and_small_ones_are_enlarged():
    assert pixels(thumbnail(np.zeros((400, 100)), "c")).shape == (134, 34, 2)
    assert 'width="160" height="80"' in thumbnail(np.zeros((2, 4)), "c")


def test_the_caption_is_safe():
    assert "<b>" not in thumbnail(np.zeros((1, 1)), '"<b>')
