"""The command `sync`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_a_copy_is_made_and_kept_equal(capsys, source, tmp_path):
    target = tmp_path / "out"
    done = call(capsys, "sync", source, target)
    assert (done.code, done.err) == (0, "")
    assert call(capsys, "diff", source, target).code == 0
    del zarrdask.open_group(source, mode="r+")["x"]
    done = call(capsys, "sync", source, target, "--dry-run", "--json", "--by", "digests")
    assert json.loads(done.out)["kept"][-1] == "x/zarr.json" or "x/.zarray" in done.out
    call(capsys, "sync", source, target, "--delete")
    assert list(zarrdask.open_group(target)) == []
