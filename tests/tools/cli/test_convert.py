"""The command `convert`."""

import numpy as np

import zarrdask
from tests.tools.cli.commands import call

VALUES = np.arange(64, dtype="i4").reshape(8, 8)


def test_convert_is_a_copy_into_a_format(capsys, source, tmp_path):
    done = call(capsys, "convert", source, tmp_path / "old.zarr", "--zarr-format", "2", "--dry-run")
    assert done.code == 0
    assert done.out.startswith("the source is Zarr v2 already, so it is copied without")
    assert not (tmp_path / "old.zarr").exists()
    assert call(capsys, "convert", source, tmp_path / "old.zarr", "--zarr-format", "2").code == 0
    done = call(capsys, "convert", source, tmp_path / "new.zarr")
    assert done.out.startswith("convert from Zarr v2 to Zarr v3\n")
    assert zarrdask.open(tmp_path / "old.zarr").zarr_format == 2
    assert call(capsys, "convert", source).code == 2
