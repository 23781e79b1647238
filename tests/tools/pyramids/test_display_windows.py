"""Channels are displayed between percentiles of the coarsest level, by default."""

import numpy as np
import pytest

import zarrdask
from zarrdask.tools.pyramids import display_windows

COLORS = [{"color": "FF0000"}, {"color": "00FF00", "window": {"start": 3, "end": 9}}]


def image(dtype="u2", **options):
    values = np.arange(2 * 64 * 64).reshape(2, 64, 64).astype(dtype)
    options = {"chunks": (1, 16, 16), "dimension_names": ("c", "y", "x"), **options}
    array = zarrdask.create_array({}, shape=values.shape, dtype=dtype, **options)
    array[...] = values
    return array


def windows(group):
    attributes = group.attrs.asdict()
    return [each["window"] for each in attributes.get("ome", attributes)["omero"]["channels"]]


def written(array, **options):
    plan = zarrdask.pyramid(array, {}, omero={"channels": COLORS}, **options)
    return plan.execute("sync", progress=False)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_channel_without_a_window_gets_the_percentiles_of_the_coarsest_level(zarr_format):
    group = written(image(zarr_format=zarr_format), levels=2)
    start, end = np.percentile(group["1"][0], (0.5, 99.5))
    first, second = windows(group)
    assert first == {"min": 0, "max": 65535, "start": int(start), "end": int(np.ceil(end))}
    assert second == {"min": 0, "max": 65535, "start": 3, "end": 9}


def test_nan_does_not_count_and_the_limits_of_floats_are_widened():
    array = image("f4")
    array[0, :32] = np.nan
    window, _ = windows(written(array, levels=2))
    assert window["min"] == 0
    assert 2000 < window["start"] < window["end"] == window["max"] < 4096


@pytest.mark.parametrize("value", [0, 7, float("nan")])
def test_a_channel_of_one_value_keeps_the_range_of_the_data_type(value):
    array = image("f4")
    array[...] = value
    assert windows(written(array, levels=2))[0] == {"min": 0, "max": 1, "start": 0, "end": 1}


def test_a_large_level_is_sampled(monkeypatch):
    monkeypatch.setattr(display_windows, "MAX_VALUES", 64)
    start, end = (windows(written(image(), levels=2))[0][name] for name in ("start", "end"))
    assert 0 <= start < 500
    assert 3500 < end < 4096


def test_an_update_keeps_the_display_settings():
    group = written(image(), levels=2)
    before = windows(group)
    group["0"].append(np.zeros((2, 16, 64), "u2"), axis=1)
    assert windows(zarrdask.update_pyramid(group).execute(progress=False)) == before


def test_a_label_image_is_named_after_its_path():
    group = written(image())
    cells = zarrdask.create_array(
        {}, shape=(64, 64), dtype="u2", chunks=16, dimension_names=("y", "x")
    )
    names = {}
    for options in {}, {"name": "cell bodies"}:
        plan = zarrdask.pyramid(cells, group, "labels/cells", levels=2, overwrite=True, **options)
        [pyramid] = zarrdask.conventions.multiscales(plan.execute("sync", progress=False))
        names[pyramid.name] = options
    assert [*names] == ["cells", "cell bodies"]
