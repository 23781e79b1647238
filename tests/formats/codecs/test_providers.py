"""Packages that have codecs which are not known here."""

import pytest

from zarrdask.errors import UnsupportedError
from zarrdask.formats.codecs.registry import parse_codec


def test_the_package_that_has_an_unknown_codec_is_named():
    with pytest.raises(UnsupportedError, match="imagecodecs-zarr") as caught:
        parse_codec({"name": "imagecodecs_jetraw"})
    assert caught.value.found == "imagecodecs_jetraw"
