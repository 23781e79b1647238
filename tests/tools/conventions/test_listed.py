"""The list of the conventions that a node follows."""

from zarrdask.tools.conventions.listed import PROJ, SPATIAL, list_conventions


def test_a_convention_is_listed_once_after_the_others():
    older = {"uuid": PROJ.uuid, "name": "proj:"}
    listed = list_conventions({"zarr_conventions": [older, {"name": "other"}]}, PROJ, SPATIAL)
    other, proj, spatial = listed["zarr_conventions"]
    assert (other["name"], spatial["name"]) == ("other", "spatial")
    assert proj == {
        "uuid": "f17cb550-5864-4468-aeb7-f3180cfb622f",
        "schema_url": (
            "https://raw.githubusercontent.com/zarr-conventions/proj/refs/tags/v0.1/schema.json"
        ),
        "spec_url": "https://github.com/zarr-conventions/proj/blob/v0.1/README.md",
        "name": "proj",
        "description": "Coordinate reference system information for geospatial data",
    }
