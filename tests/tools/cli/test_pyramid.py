"""The command `pyramid`."""

import json

import numpy as np
import pytest

import zarrdask
from tests.tools.cli.commands import call
from zarrdask.tools.conventions import crs, multiscales

VALUES = np.arange(64, dtype="u1").reshape(8, 8)


@pytest.fixture
def image(tmp_path):
    z = zarrdask.create_array(
        tmp_path / "image.zarr", shape=(8, 8), dtype="u1", chunks=4, dimension_names=("y", "x")
    )
    z[...] = VALUES
    return tmp_path / "image.zarr"


def test_pyramid_prints_the_plan_and_does_it(capsys, image, tmp_path):
    target = tmp_path / "out"
    options = "--levels 3 --method max --factors y=2,x=2 --scale y=0.5,x=0.25"
    more = "--units y=micrometer,x=micrometer --name cells --chunks 2"
    done = call(capsys, "pyramid", image, target, *options.split(), *more.split())
    assert (done.code, done.err) == (0, "")
    assert "level 2" in done.out
    group = zarrdask.open_group(target)
    np.testing.assert_array_equal(group["1"][...], VALUES[1::2, 1::2])
    assert group["2"].chunks == (2, 2)
    [pyramid] = multiscales(group)
    assert pyramid.name == "cells"
    assert [level.scale for level in pyramid.levels] == [(0.5, 0.25), (1.0, 0.5), (2.0, 1.0)]
    assert pyramid.axes[0]["unit"] == "micrometer"


def test_the_method_is_by_default_that_of_the_values(capsys, image, tmp_path):
    z = zarrdask.create_array(tmp_path / "mask", shape=(8, 8), dtype="?", chunks=4)
    z[...] = VALUES < 20
    assert "mode" in call(capsys, "pyramid", tmp_path / "mask", tmp_path / "a", "--dry-run").out
    assert "mean" in call(capsys, "pyramid", image, tmp_path / "b", "--dry-run").out


def test_a_pyramid_of_a_map(capsys, image, tmp_path):
    target = tmp_path / "out"
    options = "--convention geozarr --crs EPSG:4326 --transform=1,0,-180,0,-1,90"
    assert call(capsys, "pyramid", image, target, *options.split()).code == 0
    group = zarrdask.open_group(target)
    assert crs(group["1"]).code == "EPSG:4326"
    [pyramid] = multiscales(group)
    assert pyramid.levels[1].spatial.transform == (2.0, 0.0, -180.0, 0.0, -2.0, 90.0)


def test_a_dry_run_of_a_pyramid_does_nothing(capsys, image, tmp_path):
    done = call(capsys, "pyramid", image, tmp_path / "out", "--dry-run", "--json")
    assert done.code == 0
    assert json.loads(done.out)["target"].endswith("out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--crs", "EPSG:4326"], "takes 'crs' with convention='geozarr'"),
        (["--factors", "2,a"], "not a number of cells"),
        (["--factors", "auto"], "not a number of cells"),
        (["--scale", "y=a"], "no float"),
        (["--scale", "0.5"], "key=value"),
        (["--transform", "a"], "six numbers"),
        (["--convention", "none", "--name", "n"], "'name'"),
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(capsys, image, tmp_path, options, message):
    done = call(capsys, "pyramid", image, tmp_path / "out", *options)
    assert done.code == 2
    assert message in done.err
