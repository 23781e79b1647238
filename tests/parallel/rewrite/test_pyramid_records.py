"""What is recorded about pyramids goes with the groups that are copied or rewritten."""

import json

import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError


@pytest.fixture
def levels(tmp_path):
    image = zarrdask.create_array({}, shape=(16, 16), dtype="u1", chunks=4)
    image[...] = np.arange(256).reshape(16, 16)
    zarrdask.pyramid(image, tmp_path / "a", levels=3).execute("sync", progress=False)
    return tmp_path / "a"


def copied(source, target):
    zarrdask.copy(source, target)


def rechunked(source, target):
    zarrdask.rechunk(source, target, chunks=8).execute("sync", progress=False)


@pytest.mark.parametrize("write", [copied, rechunked])
def test_a_copy_is_stale_if_the_source_is_and_can_be_updated(tmp_path, levels, write):
    write(levels, tmp_path / "b")
    assert zarrdask.verify(tmp_path / "b").ok
    zarrdask.open_array(levels, "0", mode="r+")[0, 0] = 9
    write(levels, tmp_path / "c")
    assert [problem.kind for problem in zarrdask.verify(tmp_path / "c").failures] == ["stale"]
    group = zarrdask.update_pyramid(tmp_path / "c").execute("sync", progress=False)
    assert group["1"][0, 0] == 11
    assert zarrdask.verify(tmp_path / "c").ok


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_a_record_among_the_attributes_is_not_copied_as_one_of_them(tmp_path, levels, dtype):
    # As in stores that take no values but those of nodes.
    key = levels / ".zarrdask/pyramid.json"
    group = zarrdask.open_group(levels, mode="r+")
    group.attrs["zarrdask:pyramid"] = json.loads(key.read_bytes())
    key.unlink()
    zarrdask.rechunk(levels, tmp_path / "b", dtype=dtype).execute("sync", progress=False)
    assert "zarrdask:pyramid" not in zarrdask.open_group(tmp_path / "b").attrs
    assert zarrdask.verify(tmp_path / "b").ok
    assert (tmp_path / "b/.zarrdask/pyramid.json").exists() == (dtype == "u1")
    assert zarrdask.compare(levels, tmp_path / "b").ok == (dtype == "u1")


def test_a_copy_of_some_levels_or_of_other_values_has_no_record(tmp_path, levels):
    zarrdask.copy(levels, tmp_path / "b", exclude="2")
    zarrdask.copy(levels, tmp_path / "c", dtype="u2")
    for name in "bc":
        assert zarrdask.verify(tmp_path / name).ok
        with pytest.raises(
            MetadataError, match="there is no record of how these levels were computed"
        ):
            zarrdask.update_pyramid(tmp_path / name).execute(progress=False)
