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
    done = call(capsys, "stats", tmp_path / "data.zarr")
    assert done.code == 2
    assert "expected an array but found a group; its arrays: a" in done.err
