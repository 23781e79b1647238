"""Pyramids of OME-Zarr and of xarray's convention, read and written."""

import pytest

import zarrdask
from tests.conventions.nodes import make
from tests.covering import for_each
from zarrdask.conventions import (
    Level,
    multiscales,
    write_multiscales,
)
from zarrdask.errors import NodeNotFoundError, ReadOnlyError


def ome(transformation, **members):
    dataset = {"path": "s0", "coordinateTransformations": [transformation]}
    systems = [
        {"name": "world", "axes": [{"name": "b"}, {"name": "a"}]},
        {"name": "intrinsic", "axes": [{"name": "y", "unit": "m"}, {"name": "x"}]},
    ]
    document = {"datasets": [dataset], "coordinateSystems": systems, **members}
    attributes = {"ome": {"version": "0.6rc0", "multiscales": [document]}}
    [pyramid] = multiscales(zarrdask.create_group({}, attributes=attributes))
    return pyramid


IO = {"input": {"path": "s0"}, "output": {"name": "intrinsic"}}


@for_each(
    ("transformation", "level"),
    [
        ({"type": "scale", "scale": [2, 3]}, Level("s0", (2.0, 3.0))),
        ({"type": "identity"}, Level("s0")),
        (
            {
                "type": "sequence",
                "transformations": [
                    {"type": "scale", "scale": [2, 3]},
                    {"type": "translation", "translation": [1, 1.5]},
                ],
            },
            Level("s0", (2.0, 3.0), (1.0, 1.5)),
        ),
    ],
)
def test_levels_of_ome_zarr_0_6_are_in_the_system_that_they_lead_to(transformation, level):
    onwards = {"type": "scale", "scale": [10, 10], "input": {"name": "intrinsic"}}
    pyramid = ome({**transformation, **IO}, coordinateTransformations=[onwards])
    assert pyramid.levels == (level,)
    assert [axis["name"] for axis in pyramid.axes] == ["y", "x"]
    assert [system["name"] for system in pyramid.coordinate_systems] == ["world", "intrinsic"]
    assert pyramid.transformations == (onwards,)
    assert pyramid.version == "0.6rc0"


def test_a_system_may_be_named_by_text():
    pyramid = ome({"type": "identity", "input": "s0", "output": "world"})
    assert [axis["name"] for axis in pyramid.axes] == ["b", "a"]


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
