"""The command `plan-write`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_a_write_is_planned_and_nothing_is_written(capsys, tmp_path):
    z = zarrdask.create_array(tmp_path / "in", shape=(10, 6), dtype="i4", chunks=(5, 6))
    z[...] = 1
    plan = ["plan-write", tmp_path / "in", tmp_path / "out"]
    done = call(capsys, *plan, "--chunks", "4,6", "--blocks", "5,6", "--json")
    found = json.loads(done.out)
    assert found["requests_by_class"] == {"GET": 0, "PUT": 3}
    assert (found["whole"], found["merged"]) == (2, 1)
    assert not (tmp_path / "out").exists()
    zarrdask.create_array(tmp_path / "out", shape=(20, 6), dtype="i4", chunks=(4, 6))
    done = call(capsys, *plan, "--region", "5:15,:")
    assert "costs   2 GET, 3 PUT" in done.out
