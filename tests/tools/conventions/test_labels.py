"""Label images of OME-Zarr."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import labels


def label_values(dtype, **options):
    source = zarrdask.create_array(
        {}, shape=(8, 8), dtype=dtype, chunks=4, dimension_names=("y", "x"), **options
    )
    source[...] = np.repeat(np.arange(8), 8).reshape(8, 8)
    return source


def written(group, name="nuclei", dtype="u2", **options):
    source = label_values(dtype, zarr_format=group.zarr_format)
    options = {"axes": ("y", "x"), "levels": 2, **options}
    plan = zarrdask.pyramid(source, group, f"labels/{name}", **options)
    return plan.execute("sync", progress=False)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_labels_are_listed_and_name_their_image(zarr_format):
    image = zarrdask.create_group({}, zarr_format=zarr_format)
    assert labels(image) == ()
    colors = [{"label-value": 7, "rgba": [255, 0, 0, 255]}]
    group = written(image, image_label={"colors": colors})
    written(image, "cells")
    written(image, "cells", overwrite=True)
    assert labels(image) == ("labels/nuclei", "labels/cells")
    attributes = group.attrs.asdict()
    attributes = attributes if zarr_format == 2 else attributes["ome"]
    assert attributes["image-label"] == {"source": {"image": "../../"}, "colors": colors}
    assert group["1"][:, 0].tolist() == [0, 2, 4, 6]  # the mode, of which the least


@pytest.mark.parametrize(("url", "component"), [("labels/nuclei", None), ("labels", "nuclei")])
def test_labels_whose_url_ends_in_their_path_are_listed(tmp_path, url, component):
    image = zarrdask.create_group(tmp_path / "my image.zarr")
    plan = zarrdask.pyramid(label_values("u2"), f"{tmp_path}/my image.zarr/{url}", component)
    group = plan.execute("sync", progress=False)
    assert labels(image) == ("labels/nuclei",)
    assert group.attrs["ome"]["image-label"] == {"source": {"image": "../../"}}
    assert group["1"][:, 0].tolist() == [0, 2, 4, 6]
    # In a directory `labels` that is not part of an image, nothing is added.
    target = tmp_path / "labels/nuclei"
    zarrdask.pyramid(label_values("f4"), target).execute("sync", progress=False)
    assert {path.name for path in (tmp_path / "labels").iterdir()} == {"nuclei"}


def test_labels_that_are_written_concurrently_are_all_listed():
    image, names = zarrdask.create_group({}), [f"n{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(partial(written, image), names))
    assert sorted(labels(image)) == [f"labels/{name}" for name in names]


@pytest.mark.parametrize(
    "options",
    [{"dtype": "f4"}, {"image_label": {"colors": [{"rgba": []}]}}, {"image_label": 3}],
)
def test_labels_that_break_a_rule_are_an_error(options):
    with pytest.raises(MetadataError, match="image_label"):
        written(zarrdask.create_group({}), **options)


def test_attributes_that_are_not_lists_of_names_are_an_error():
    image = zarrdask.create_group({})
    image.create_group("labels").attrs["labels"] = 3
    with pytest.raises(MetadataError, match="labels"):
        labels(image)


def test_a_label_image_has_as_many_levels_as_its_image():
    store = {}
    names = {"dimension_names": ("y", "x"), "dtype": "u1", "shape": (64, 64)}
    image = zarrdask.create_array({}, chunks=16, **names)
    zarrdask.pyramid(image, store).execute(progress=False)
    label = zarrdask.create_array({}, chunks=64, **names)
    zarrdask.pyramid(label, store, "labels/a").execute(progress=False)
    assert sorted(zarrdask.open_group(store, "labels/a")) == ["0", "1", "2"]
    assert zarrdask.verify(store, strict=True).ok
    zarrdask.pyramid(label, store, "labels/b", levels=2).execute(progress=False)
    assert zarrdask.verify(store).ok
    report = zarrdask.verify(store, strict=True)
    assert not report.ok
    [problem] = [each for each in report.problems if "OME-Zarr demands" in each.message]
    assert (problem.kind, problem.path) == ("note", "labels/b")


def test_factors_of_each_level_say_how_many_levels_labels_have():
    store = {}
    names = {"dimension_names": ("y", "x"), "dtype": "u1", "shape": (64, 64)}
    image = zarrdask.create_array({}, chunks=16, **names)
    zarrdask.pyramid(image, store).execute(progress=False)
    plan = zarrdask.pyramid(image, store, "labels/a", factors=[2, {"y": 4, "x": 4}])
    assert len(plan.levels) == 3
    assert len(zarrdask.pyramid(image, {}, levels=2).levels) == 2
