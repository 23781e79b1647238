"""Packages that have codecs which are not known here."""

import pytest

from tests.covering import for_each
from zarrdask.errors import UnsupportedError
from zarrdask.formats.codecs.registry import parse_codec


def test_the_package_that_has_an_unknown_codec_is_named():
    with pytest.raises(UnsupportedError, match="imagecodecs-zarr") as caught:
        parse_codec({"name": "imagecodecs_jetraw"})
    assert caught.value.found == "imagecodecs_jetraw"


@for_each(
    ("name", "package"),
    [
        ("cft_zarr.jpegxl", "cft-zarr"),
        ("hcc-dct", "healpix-compress"),
        ("htj2k", "nd-image-codecs"),
        ("nd_lift", "nd-image-codecs"),
        ("vlen-ndarray", "zarr-vlen-ndarray"),
    ],
)
def test_packages_for_zarr_python_are_known_by_the_names_of_their_codecs(name, package):
    with pytest.raises(UnsupportedError, match=f"zarr-python reads it with the package {package}"):
        parse_codec({"name": name})
