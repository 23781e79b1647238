"""Pyramids of OME-Zarr and of xarray's convention, read and written."""

import pytest

import zarrdask
from tests.tools.conventions.nodes import make
from zarrdask.errors import NodeNotFoundError, ReadOnlyError
from zarrdask.tools.conventions import (
    Level,
    multiscales,
    write_multiscales,
)


def test_pyramids_beside_another_attribute_of_ome(root):
    root.attrs.update(ome={"omero": {}}, multiscales=[{"datasets": [{"path": "0"}]}])
    assert multiscales(root)[0].levels == (Level("0"),)


def test_axes_may_be_names(root):
    root.attrs["multiscales"] = [{"datasets": [{"path": "0"}], "axes": ["y", "x"]}]
    assert multiscales(root)[0].axes == ({"name": "y"}, {"name": "x"})


def test_several_pyramids(root):
    root.attrs["multiscales"] = [{"datasets": [{"path": n}], "name": n} for n in "ab"]
    assert [found.name for found in multiscales(root)] == ["a", "b"]


def test_scales_are_written_also_where_they_need_not_be(root):
    make(root, "0")
    write_multiscales(root, [Level("0", (2.0,), (1.0,))], axes=["t"])
    (found,) = multiscales(root)
    assert found.levels == (Level("0", (2.0,), (1.0,)),)
    assert found.axes == ({"name": "t"},)


def test_a_level_that_is_not_there_is_an_error(root):
    with pytest.raises(NodeNotFoundError, match="gone"):
        write_multiscales(root, ["gone"])
    assert dict(root.attrs) == {}


def test_a_group_that_was_opened_for_reading_stays(root):
    make(root, "0")
    with pytest.raises(ReadOnlyError):
        write_multiscales(zarrdask.open_group(root.store), ["0"])
