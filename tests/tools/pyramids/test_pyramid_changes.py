"""Levels that are added to a group that exists."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import zarrdask
from zarrdask.errors import NodeExistsError
from zarrdask.tools.pyramids.pyramid_changes import change_attributes


def group_of(source, **attributes):
    """Return a group with an array, of which levels can be made."""
    group = zarrdask.create_group({}, attributes=attributes)
    options = {"shape": (8, 8), "dtype": "u1", "chunks": 4, "dimension_names": ("y", "x")}
    group.create_array(source, **options)
    return group


def test_attributes_that_change_after_the_plan_stay_changed():
    conventions = [{"uuid": "other"}]
    group = group_of("image", title="before", zarr_conventions=conventions)
    plan = zarrdask.pyramid(group["image"], group, convention="geozarr")
    group.attrs["title"] = "after"
    attributes = plan.execute(progress=False).attrs
    assert attributes["title"] == "after"
    listed = [each.get("name", each["uuid"]) for each in attributes["zarr_conventions"]]
    assert listed == ["other", "multiscales"]


@pytest.mark.parametrize("convention", ["ome", "geozarr"])
def test_the_description_of_another_pyramid_is_replaced_with_overwrite_only(convention):
    group = group_of("image")
    options = {"levels": 2, "convention": convention}
    for _ in range(2):  # the description of the same levels is replaced
        zarrdask.pyramid(group["image"], group, **options, overwrite=True).execute(progress=False)
        options["method"] = "nearest"
    array = {"shape": (8, 8), "dtype": "u1", "chunks": 4, "dimension_names": ("y", "x")}
    source = group.create_array("b", **array)
    del group["1"]
    with pytest.raises(NodeExistsError, match=r"another pyramid already.*levels image"):
        zarrdask.pyramid(source, group, **options)
    plan = zarrdask.pyramid(source, group, **options, overwrite=True)
    [pyramid] = zarrdask.conventions.multiscales(plan.execute(progress=False))
    assert [level.path for level in pyramid.levels] == ["b", "1"]


def test_attributes_that_are_changed_concurrently_are_all_kept():
    group = zarrdask.create_group({}, attributes={"ome": {"version": "0.5"}})
    names = {f"n{number}": number for number in range(6)}

    def add(name):
        change_attributes(group.node_path, lambda _: {"ome": {name: names[name]}})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, names))
    attributes = zarrdask.open_group(group.store).attrs.asdict()
    assert attributes == {"ome": {"version": "0.5", **names}}
