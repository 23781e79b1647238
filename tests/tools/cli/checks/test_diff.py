"""The command `diff`."""

import json

import zarrdask
from tests.tools.cli.commands import call


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


def test_diff(capsys, pair):
    same = call(capsys, "diff", *pair)
    assert (same.code, same.out.splitlines()[-1]) == (0, "the same")
    zarrdask.open_array(pair[1], "x", mode="r+").attrs["k"] = 1
    done = call(capsys, "diff", *pair, "--json")
    assert (done.code, json.loads(done.out)["same_elements"]) == (1, True)
    assert call(capsys, "diff", *pair, "--values-only").code == 0
    assert call(capsys, "diff", pair[0], pair[1] / "x", "--component", "x").code == 1
