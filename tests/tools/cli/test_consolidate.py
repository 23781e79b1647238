"""The command `consolidate`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_consolidate(capsys, stored):
    done = call(capsys, "consolidate", stored)
    assert (done.code, done.out) == (0, "consolidated metadata of 4 nodes\n")
    assert "consolidated_metadata" in json.loads((stored / "zarr.json").read_text())
    assert zarrdask.open_group(stored, consolidated=True)["a"].shape == (10, 4)
    done = call(capsys, "consolidate", stored / "a")
    assert done.code == 2
    assert "an array has no consolidated metadata" in done.err


def test_a_dry_run_of_consolidate(capsys, stored):
    assert call(capsys, "consolidate", stored, "--dry-run") == (
        0,
        "consolidated metadata of 4 nodes\n",
        "",
    )
    assert "consolidated_metadata" not in json.loads((stored / "zarr.json").read_text())
    assert "expected a group" in call(capsys, "consolidate", stored / "a", "--dry-run").err
    nodes = json.loads(call(capsys, "consolidate", stored, "--json").out)["nodes"]
    assert nodes == ["a", "g", "g/r", "g/s"]
    assert "consolidated_metadata" in json.loads((stored / "zarr.json").read_text())
