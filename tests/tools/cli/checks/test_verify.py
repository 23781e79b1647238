"""The command `verify`."""

import json
import os

import zarrdask
from tests.tools.cli.commands import call


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


def test_as_json(capsys, pair):
    assert json.loads(call(capsys, "verify", pair[0], "--json").out)["ok"] is True
    assert json.loads(call(capsys, "diff", *pair, "--json").out)["same_elements"] is True
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "repair", pair[0], pair[1], "--json")
    assert json.loads(done.out)["ok"] is True


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
