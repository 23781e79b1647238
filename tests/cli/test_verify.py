"""`zarrdask verify`: what it prints, and what it exits with."""

import json
import os
import shutil

import pytest

import zarrdask
from tests.cli.commands import call


@pytest.fixture
def pair(tmp_path):
    """Two equal hierarchies."""
    root = zarrdask.create_group(tmp_path / "a")
    root.create_array("x", shape=8, dtype="i4", chunks=2)[:6] = 1
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    return tmp_path / "a", tmp_path / "b"


def test_all_is_well(capsys, pair):
    done = call(capsys, "verify", pair[0])
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "ok"
    assert done.out == f"{zarrdask.verify(pair[0])}\n"


def test_damage_exits_with_1(capsys, pair):
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "verify", pair[0])
    assert done.code == 1
    assert "truncated  x/c/1" in done.out
    assert done.out.splitlines()[-1] == "NOT OK: 1 truncated"
    assert call(capsys, "verify", pair[0], "--component", "x").code == 1


def test_a_deviation_fails_in_strict_mode_only(capsys, pair):
    document = json.loads((pair[0] / "x/zarr.json").read_text())
    document["codecs"][0]["name"] = "endian"
    (pair[0] / "x/zarr.json").write_text(json.dumps(document))
    assert call(capsys, "verify", pair[0]).code == 0
    assert call(capsys, "verify", pair[0], "--strict").code == 1


def test_missing_units_are_listed_on_request(capsys, pair):
    assert "missing    x/c/3" in call(capsys, "verify", pair[0], "--every").out


def test_two_that_differ(capsys, pair):
    zarrdask.open_array(pair[1], "x", mode="r+")[3] = 2
    done = call(capsys, "diff", *pair)
    assert done.code == 1
    assert "x: 1 of 8 elements differ, the first at (3,)" in done.out


def test_metadata_may_be_left_out(capsys, pair):
    zarrdask.open_array(pair[1], "x", mode="r+").attrs["k"] = 1
    assert call(capsys, "diff", *pair).code == 1
    done = call(capsys, "diff", *pair, "--values-only")
    assert (done.code, done.out.splitlines()[1:]) == (0, ["the same"])
    done = call(capsys, "diff", *pair, "--values-only", "--json")
    assert (json.loads(done.out)["ok"], json.loads(done.out)["differences"]) == (True, [])
    zarrdask.open_array(pair[1], "x", mode="r+").resize(3)
    done = call(capsys, "diff", *pair, "--values-only")
    assert (done.code, done.out.splitlines()[-1]) == (1, "NOT THE SAME")
    assert "shape" in done.out
    assert "attributes" not in done.out


def test_repair(capsys, pair):
    a, b = pair
    os.truncate(a / "x/c/1", 3)
    (a / "x/c/2").unlink()
    done = call(capsys, "repair", a, b)
    assert done.code == 0
    assert "NOT OK: 1 truncated" in done.out
    assert done.out.splitlines()[-1] == "ok"
    assert call(capsys, "diff", a, b).code == 1
    assert call(capsys, "repair", a, b, "--missing").code == 0
    assert call(capsys, "diff", a, b).code == 0


def test_what_is_to_be_repaired_from_must_be_there(capsys, pair, monkeypatch):
    monkeypatch.setattr("zarrdask.cli.repair.verify", lambda *_, **__: pytest.fail("work began"))
    done = call(capsys, "repair", pair[0], pair[0].parent / "gone")
    assert (done.code, done.out) == (1, "")
    assert "gone: there is no array or group here" in done.err


def test_as_json(capsys, pair):
    assert json.loads(call(capsys, "verify", pair[0], "--json").out)["ok"] is True
    assert json.loads(call(capsys, "diff", *pair, "--json").out)["same_elements"] is True
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "repair", pair[0], pair[1], "--json")
    assert json.loads(done.out)["ok"] is True


def test_diff(capsys, pair):
    same = call(capsys, "diff", *pair)
    assert (same.code, same.out.splitlines()[-1]) == (0, "the same")
    zarrdask.open_array(pair[1], "x", mode="r+").attrs["k"] = 1
    done = call(capsys, "diff", *pair, "--json")
    assert (done.code, json.loads(done.out)["same_elements"]) == (1, True)
    assert call(capsys, "diff", *pair, "--values-only").code == 0
    assert call(capsys, "diff", pair[0], pair[1] / "x", "--component", "x").code == 1


def test_a_dry_run_of_a_repair_only_checks(capsys, pair):
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "repair", pair[0], pair[1], "--dry-run")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "NOT OK: 1 truncated"
    assert (pair[0] / "x/c/1").stat().st_size == 3


def test_verify_of_two_names_the_command_that_compares(capsys, pair):
    done = call(capsys, "verify", *pair)
    assert done.code == 2
    assert f"zarrdask diff {pair[0]} {pair[1]}" in done.err


def test_progress_is_told_on_request_when_there_is_no_terminal(capsys, pair):
    assert not call(capsys, "verify", pair[0]).err
    assert "verify" in call(capsys, "verify", pair[0], "--progress").err


def test_on_a_cluster(capsys, pair, cluster_address):
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "verify", pair[0], "--scheduler", cluster_address)
    assert done.code == 1
    assert "truncated  x/c/1" in done.out


def test_a_repair_of_what_is_intact_says_so(capsys, pair):
    a, b = pair
    assert call(capsys, "repair", b, a).out.endswith("ok\nnothing to repair\n")
