"""The command `copy`."""

import json

import numpy as np

import zarrdask
from tests.tools.cli.commands import call

VALUES = np.arange(64, dtype="i4").reshape(8, 8)


def test_copy_a_hierarchy_into_another_format(capsys, source, tmp_path):
    target = tmp_path / "out"
    done = call(capsys, "copy", source, target, "--zarr-format", "3")
    assert (done.code, done.err) == (0, "")
    assert "x: copied unchanged" in done.out
    group = zarrdask.open_group(target)
    assert (group.zarr_format, dict(group.attrs)) == (3, {"k": 1})
    assert call(capsys, "diff", source, target).code == 0


def test_copy_some_with_other_codecs(capsys, source, tmp_path):
    root = zarrdask.open_group(source, mode="r+")
    root.create_array("y", shape=3, dtype="i4")
    target = tmp_path / "out"
    done = call(
        capsys, "copy", source, target, "--include", "x", "--compressor", "zstd", "--chunks", "4"
    )
    assert done.code == 0, done.err
    assert list(zarrdask.open_group(target)) == ["x"]
    assert zarrdask.open_array(target, "x").chunks == (4, 4)


def test_errors_of_copy(capsys, source, tmp_path):
    assert call(capsys, "copy", source).code == 2
    zarrdask.create_group(tmp_path / "out")
    done = call(capsys, "copy", source, tmp_path / "out")
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_a_dry_run_of_a_copy_writes_nothing(capsys, source, tmp_path):
    done = call(capsys, "copy", source, tmp_path / "out", "--dry-run", "--json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert [array["method"] for array in report["arrays"]] == ["copied unchanged"]
    assert not (tmp_path / "out").exists()
    assert call(capsys, "copy", source, source / "below", "--dry-run").code == 2


def test_copy_and_compare_a_region(capsys, stored, tmp_path):
    target = tmp_path / "out"
    done = call(capsys, "copy", stored, target, "--region", "y=1:5")
    assert (done.code, done.err) == (0, "")
    shapes = {
        path: array.shape for path, array in zarrdask.open_group(target).walk() if path != "g"
    }
    assert shapes == {"a": (4, 4), "g/r": (6,), "g/s": (8, 8)}
    done = call(capsys, "copy", stored, target, "--region", "z=1:5", "--overwrite")
    assert (done.code, "the group has no such dimension" in done.err) == (2, True)
    zarrdask.copy(stored, tmp_path / "b")
    zarrdask.open_array(tmp_path / "b", "a", mode="r+")[7] = 9
    assert call(capsys, "diff", stored, tmp_path / "b", "--region", "y=0:7").code == 0
    assert call(capsys, "diff", stored, tmp_path / "b", "--region", "y=7:8").code == 1
