"""The command `stats`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_the_statistics_of_an_array_are_shown(capsys, tmp_path):
    root = zarrdask.create_group(tmp_path / "data.zarr")
    root.create_array("a", shape=(6, 4), dtype="i4", chunks=(2, 4))[0] = 12
    done = call(capsys, "stats", tmp_path / "data.zarr/a")
    assert done.code == 0
    assert "fill value  20 elements (83%)" in done.out
    assert "mean        2\n" in done.out
    done = call(capsys, "stats", tmp_path / "data.zarr/a", "--json")
    assert json.loads(done.out)["maximum"] == 12


def test_the_statistics_of_the_arrays_of_a_group_are_shown(capsys, tmp_path):
    root = zarrdask.create_group(tmp_path / "data.zarr")
    root.create_array("g/a", shape=4, dtype="f4", attributes={"units": "K"})[...] = [1, 2, 3, "nan"]
    root.create_array("b", shape=2, dtype="u1")[...] = 7
    root.create_array("names", shape=2, dtype="U4")
    done = call(capsys, "stats", tmp_path / "data.zarr")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "array  elements  missing  minimum  maximum  mean  std       units",
            "b      2         0%       7        7        7     0",
            "g/a    4         25%      1        3        2     0.816497  K",
            "names: <U4: no statistics",
        ],
    )
    found = json.loads(call(capsys, "stats", tmp_path / "data.zarr", "--json").out)
    assert (found["arrays"]["g/a"]["units"], found["arrays"]["b"]["maximum"]) == ("K", 7)
    assert list(found["skipped"]) == ["names"]
    root = zarrdask.create_group(tmp_path / "empty.zarr")
    assert "no arrays" in call(capsys, "stats", tmp_path / "empty.zarr").out
