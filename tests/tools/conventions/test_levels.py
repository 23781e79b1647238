"""Numbers of levels of a pyramid, in any convention."""

import pytest

from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import (
    Level,
    multiscales,
)


def test_unknown_transformations_are_passed_over(root):
    transformations = [{"type": "affine"}, {"type": "scale", "path": "elsewhere"}]
    dataset = {"path": "0", "coordinateTransformations": transformations}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    assert multiscales(root)[0].levels == (Level("0"),)


@pytest.mark.parametrize("scale", [["2"], [True], [None]])
def test_what_is_no_number_is_an_error(root, scale):
    dataset = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    with pytest.raises(MetadataError, match="must be a list of numbers"):
        multiscales(root)


def test_numbers_for_different_axes_are_an_error(root):
    transformations = [
        {"type": "scale", "scale": [1, 2]},
        {"type": "translation", "translation": [1]},
    ]
    dataset = {"path": "0", "coordinateTransformations": transformations}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    with pytest.raises(MetadataError, match="one number for each axis"):
        multiscales(root)
