"""Groups that tests open."""

import pytest

from tests.documents import dump, v2
from zarrdask import create_group


@pytest.fixture
def full(root):
    """A group with a/x, a/b/y and z."""
    root.create_array("a/x", shape=(2, 3), dtype="i4")
    root.create_array("a/b/y", shape=4, dtype="u1")
    root.create_array("z", shape=(), dtype="i2")
    return root


@pytest.fixture
def doubtful():
    """A v2 group with an array that has a member which must not be there."""
    return {
        ".zgroup": dump({"zarr_format": 2}),
        "a/.zarray": dump(v2() | {"_NCZARR_ARRAY": {}}),
    }


@pytest.fixture(params=[2, 3])
def root(request, place):
    return create_group(place, zarr_format=request.param)
