"""Arrays of the draft in Dask graphs: the same as those of other formats."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.drafts import NOBODY, array, stored
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import ComplianceWarning

VALUES = np.arange(60 * 70, dtype="i4").reshape(60, 70)
FORMATS = ["v3-draft", "v3-draft-protocol"]
LAYOUTS = [{"chunks": (10, 20)}, {"chunks": (5, 10), "shards": (10, 20)}]


@pytest.fixture(params=FORMATS)
def zarr_format(request):
    return request.param


@pytest.fixture
def layout(zarr_format):
    return LAYOUTS[FORMATS.index(zarr_format)]


@pytest.fixture
def place(tmp_path, zarr_format, layout):
    options = {"shape": VALUES.shape, "dtype": "i4", "order": "F", **layout}
    zarrdask.create_array(tmp_path, "g/a", **options, zarr_format=zarr_format)[...] = VALUES
    return tmp_path


def check_round_trip(place, zarr_format):
    x = zarrdask.from_zarr(place, "g/a")
    np.testing.assert_array_equal(x.compute(), VALUES)
    np.testing.assert_array_equal(x[3:50, ::7].compute(), VALUES[3:50, ::7])
    for blocks in ((10, 20), (17, 13)):
        y = (x + 1).rechunk(blocks)
        options = {"chunks": (5, 10), "shards": (10, 20), "overwrite": True}
        zarrdask.to_zarr(y, place, "g/b", zarr_format=zarr_format, **options)
        np.testing.assert_array_equal(zarrdask.open_array(place, "g/b")[...], VALUES + 1)


def test_in_this_process(place, zarr_format):
    with dask.config.set(scheduler="threads"):
        check_round_trip(place, zarr_format)


def test_a_task_is_small(place):
    z = zarrdask.open_array(place, "g/a")
    assert len(pickle.dumps(chunks_of(z))) < 600
    again = pickle.loads(pickle.dumps(chunks_of(z)))
    assert again.store == z.store
    assert again.metadata.codecs == z.metadata.codecs


def test_a_group_of_the_draft_gives_its_format_to_new_arrays(place, zarr_format):
    group = zarrdask.open_group(place, "g", mode="r+")
    x = da.arange(10, chunks=5)
    zarrdask.to_zarr(x, group, "new")
    assert group["new"].zarr_format == zarr_format
    assert group["new"][...].tolist() == list(range(10))
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.to_zarr(x, group, "other", zarr_format=3)


def test_a_fallback_type_that_was_allowed_is_so_in_tasks(tmp_path):
    kind = {"extension": NOBODY, "type": "x", "fallback": "uint16"}
    for key, value in stored(array(data_type=kind), {"c0": b"\1\0\2\0"}).items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(value)
    allowed = dask.config.set({"zarrdask.draft-fallback": True})
    with allowed, pytest.warns(ComplianceWarning):
        x = zarrdask.from_zarr(tmp_path, "a")
    packed = pickle.dumps(x)
    assert pickle.loads(packed).compute(scheduler="sync").tolist() == [1, 2, 0, 0]
