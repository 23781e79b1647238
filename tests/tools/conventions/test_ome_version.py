"""The members of OME-Zarr in the attributes of groups of both formats."""

import pytest

from zarrdask.tools.conventions.ome_version import OmeVersion

PYRAMID = {"datasets": [{"path": "0"}]}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_are_read_from_the_attributes_that_have_them(zarr_format):
    version = OmeVersion.of(zarr_format)
    attributes = version.attributes({"labels": ["a"]}, {})
    assert version.members(attributes)["labels"] == ["a"]


def test_other_members_and_their_version_stay():
    before = {"ome": {"version": "0.6", "omero": {}}, "title": "a"}
    after = OmeVersion.of(3).attributes({"labels": []}, before)
    assert after == {"ome": {"version": "0.6", "omero": {}, "labels": []}}


def test_a_pyramid_has_the_version_of_its_description():
    (old,) = OmeVersion.of(2).pyramid(PYRAMID)["multiscales"]
    assert old == {**PYRAMID, "version": "0.4"}
    nested = OmeVersion.of(3).attributes(OmeVersion.of(3).pyramid(PYRAMID), {"ome": {"version": 1}})
    assert nested == {"ome": {"version": "0.5", "multiscales": [PYRAMID]}}


def test_arrays_of_the_old_format_have_keys_with_slashes():
    assert OmeVersion.of(2).keys.key((1, 2)) == "1/2"
    assert OmeVersion.of(3).keys is None
