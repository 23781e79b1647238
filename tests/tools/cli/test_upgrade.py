"""The command `upgrade`."""

import zarrdask
from tests.tools.cli.commands import call


def test_upgrade_writes_metadata_only(capsys, tmp_path):
    path = tmp_path / "old.zarr"
    zarrdask.create_array(path, shape=4, dtype="i4", zarr_format=2)[...] = 1
    assert "metadata only" in call(capsys, "upgrade", path, "--dry-run").out
    assert not (path / "zarr.json").exists()
    done = call(capsys, "upgrade", path, "--remove-v2")
    assert (done.code, sorted(f.name for f in path.iterdir())) == (0, ["0", "zarr.json"])
    for command in ("copy", "convert"):
        assert "zarrdask upgrade URL" in call(capsys, command, path, "--in-place").err
