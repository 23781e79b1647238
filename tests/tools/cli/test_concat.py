"""The command `concat`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def _store_days(folder):
    for day in range(3):
        group = zarrdask.create_group(folder / f"day-{day}.zarr")
        z = group.create_array("t", shape=(2, 3), dtype="i4", dimension_names=("time", "x"))
        z[...] = day


def test_arrays_are_joined_and_saved(capsys, tmp_path):
    _store_days(tmp_path)
    pattern, saved = f"{tmp_path}/day-*.zarr", tmp_path / "t.json"
    done = call(capsys, "concat", pattern, "--component", "t", "--save", saved, "--json")
    assert (done.code, json.loads(done.out)["shape"]) == (0, [6, 3])
    assert json.loads(call(capsys, "info", saved, "--json").out)["shape"] == [6, 3]
    assert call(capsys, "rechunk", saved, tmp_path / "out.zarr", "--chunks", "6,1").code == 0
    assert zarrdask.open_array(tmp_path / "out.zarr")[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_groups_are_joined_by_the_name_of_a_dimension(capsys, tmp_path):
    _store_days(tmp_path)
    pattern, saved = f"{tmp_path}/day-*.zarr", tmp_path / "all.json"
    assert call(capsys, "concat", pattern, "--axis", "time", "--save", saved).code == 0
    assert zarrdask.open(saved)["t"].shape == (6, 3)
    done = call(capsys, "concat", pattern, "--save", saved)
    assert (done.code, "named dimensions" in done.err) == (2, True)
