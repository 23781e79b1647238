"""The command `inventory`."""

import json

from tests.tools.cli.commands import call
from tests.tools.verification.test_inventory import with_holes


def test_it_exits_with_1_if_expected_chunks_are_missing(capsys, tmp_path):
    with_holes(tmp_path / "z.zarr")
    url = tmp_path / "z.zarr"
    assert call(capsys, "inventory", url).code == 0
    assert call(capsys, "inventory", url, "--expect", "time=0:10").code == 0
    done = call(capsys, "inventory", url, "--expect", "8:12,:")
    assert done.code == 1
    assert "missing: time=10:12, x=0:8" in done.out
    assert call(capsys, "inventory", url, "--expect", "...").code == 1
    assert call(capsys, "inventory", url, "--expect", "nothing=0:10").code == 2


def test_as_json(capsys, tmp_path):
    with_holes(tmp_path / "z.zarr", shards=(4, 8))
    arguments = ("--json", "--axis", "x", "--per", "shard")
    values = json.loads(call(capsys, "inventory", tmp_path / "z.zarr", *arguments).out)
    [array] = values["arrays"]
    assert (array["dimension"], array["stored"], array["nchunks_stored"]) == ("x", 5, None)
