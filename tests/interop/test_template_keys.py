"""Arrays whose chunk keys have the encoding ``template``, which zarr-python has from a package."""

import numpy as np
import pytest
import zarr
import zarr_template  # noqa: F401 - registers the encoding

import zarrdask
from zarrdask.formats.grids.keys import parse_keys

VALUES = np.arange(60).reshape(6, 10)
FORMATS = [("{0:03}.{1}", None), ("c/{*:02}", "/"), ("x{-1}/{*}", "_"), ("{{{0}}}-{1}", None)]


@pytest.mark.parametrize(("form", "separator"), FORMATS)
def test_both_packages_read_what_the_other_writes(form, separator, tmp_path):
    own = {"format": form} if separator is None else {"format": form, "separator": separator}
    encoding = {"name": "template", "configuration": own}
    options = {"shape": (6, 10), "chunks": (2, 3), "dtype": "i8", "chunk_key_encoding": encoding}
    ours = zarrdask.create_array(tmp_path / "ours", **options)
    theirs = zarr.create_array(tmp_path / "theirs", **options)
    ours[...] = theirs[...] = VALUES
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours")[...], VALUES)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "theirs")[...], VALUES)
    names = [
        {p.relative_to(root) for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    ]
    assert names[0] == names[1]
    assert theirs.metadata.encode_chunk_key((2, 3)) == parse_keys(encoding).key((2, 3))
