"""Opening a path where a write was interrupted says so, and how it goes on."""

import dask
import dask.array as da
import pytest
import xarray as xr

import zarrdask
from zarrdask.errors import NodeNotFoundError
from zarrdask.xarray import to_zarr


class Failing:
    """A block that can't be computed, until it is repaired."""

    def __init__(self):
        self.fails = True

    def block(self, block, block_id):
        if self.fails and block_id == (1, 1):
            raise RuntimeError("on purpose")
        return block


@pytest.fixture
def failing():
    return Failing()


@pytest.fixture
def x(failing):
    return da.ones((8, 8), chunks=4).map_blocks(failing.block, dtype="f8", name="x")


@pytest.mark.parametrize(
    "options", [{}, {"commit": "last"}, {"mode": "w"}, {"zarr_format": 2}, {"shards": (8, 8)}]
)
def test_a_new_array_whose_write_failed_does_not_open(tmp_path, failing, x, options):
    with pytest.raises(RuntimeError) as caught:
        zarrdask.to_zarr(x, tmp_path / "a", chunks=(4, 4), **options)
    assert "no array was created" in caught.value.__notes__[-1]
    with pytest.raises(NodeNotFoundError):
        zarrdask.open(tmp_path / "a")
    failing.fails = False
    zarrdask.to_zarr(x, tmp_path / "a", chunks=(4, 4), **options)
    assert (zarrdask.open_array(tmp_path / "a")[...] == 1).all()


def test_a_failed_write_to_a_group_is_no_member(failing, x):
    group = zarrdask.create_group({})
    with pytest.raises(RuntimeError):
        zarrdask.to_zarr(x, group, "a")
    assert "a" not in group


def test_a_failed_write_leaves_an_array_that_another_writer_has_created(tmp_path, failing):
    def replace(block, block_id):
        if block_id == (1, 1):
            zarrdask.create_array(tmp_path, shape=3, dtype="i4", overwrite=True)
            raise RuntimeError("on purpose")
        return block

    x = da.ones((8, 8), chunks=4).map_blocks(replace, dtype="f8")
    # In one thread: the chunk that another one is storing may lose its directory.
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError) as caught:
        zarrdask.to_zarr(x, tmp_path)
    assert "another writer has replaced the array" in caught.value.__notes__[-1]
    assert zarrdask.open_array(tmp_path).shape == (3,)


def test_opening_an_unfinished_write_says_how_it_goes_on(tmp_path, failing, x):
    with pytest.raises(RuntimeError):
        zarrdask.to_zarr(x, tmp_path / "a", resume=True)
    text = "an unfinished write: the same call with resume=True finishes it, .* overwrite=True"
    for open_node in (zarrdask.open, zarrdask.open_array, zarrdask.from_zarr):
        with pytest.raises(NodeNotFoundError, match=text):
            open_node(tmp_path / "a")
    failing.fails = False
    zarrdask.to_zarr(x, tmp_path / "a", resume=True)
    assert (zarrdask.open_array(tmp_path / "a")[...] == 1).all()


def test_opening_an_unfinished_dataset_names_the_array_with_the_record(tmp_path, failing, x):
    with pytest.raises(RuntimeError):
        to_zarr(xr.Dataset({"t": (("y", "x"), x)}), tmp_path, resume=True)
    with pytest.raises(NodeNotFoundError, match=r"an unfinished write at 't': .* resume=True"):
        zarrdask.open_group(tmp_path)


def test_a_damaged_record_is_an_unfinished_write(tmp_path, failing, x):
    with pytest.raises(RuntimeError):
        zarrdask.to_zarr(x, tmp_path, resume=True)
    (tmp_path / ".zarrdask-rewrite" / "plan.json").write_bytes(b"[")
    with pytest.raises(NodeNotFoundError, match="an unfinished write"):
        zarrdask.open(tmp_path)
