"""Arrays that another writer replaces while they are open."""

import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from zarrdask.errors import CodecError, StoreError, ZarrdaskError
from zarrdask.storage.memory import MemoryStore

OLD = {"shape": 8, "chunks": 4, "dtype": "i8"}
#: What the array is replaced by: chunks are encoded in another way, or have other places.
OTHERS = {
    "codecs": OLD | {"compressors": ()},
    "data type": OLD | {"dtype": "i4"},
    "chunks": OLD | {"chunks": 2},
    "fill value": OLD | {"fill_value": 5},
    "shards": OLD | {"chunks": 2, "shards": 4},
    "axes": OLD | {"shape": (8, 2), "chunks": (4, 2)},
}
VERBS = {
    "whole": lambda z: z.__setitem__(slice(0, 4), 7),
    "part": lambda z: z.__setitem__(0, 7),
    "erase": lambda z: z.erase(slice(0, 4)),
    "mask": lambda z: z.__setitem__(np.arange(8) % 2 == 0, 7),
}


@pytest.fixture(params=["directory", "archive"])
def url(request, tmp_path):
    """A store whose documents can be looked at without a request."""
    return tmp_path / ("a.zip" if request.param == "archive" else "a.zarr")


def replaced(url, options):
    """Return a handle of an array that is replaced then, and values of the new one."""
    root = zarrdask.open_group(url, mode="a")
    root.create_array("a", **OLD)[...] = 1
    handle = zarrdask.open_array(url, "a", mode="r+")
    assert handle[0] == 1
    new = zarrdask.create_array(url, "a", overwrite=True, **options)
    new[...] = 3
    return handle, new[...]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_written_through_an_array_that_was_replaced(url, name, verb):
    handle, values = replaced(url, OTHERS[name])
    with pytest.raises(StoreError, match="another writer has replaced this array"):
        VERBS[verb](handle)
    np.testing.assert_array_equal(zarrdask.open_array(url, "a")[...], values)


def test_nothing_is_written_through_an_array_that_was_removed(url):
    handle, _ = replaced(url, OLD)
    del zarrdask.open_group(url, mode="r+")["a"]
    with pytest.raises(ZarrdaskError):
        handle[0:4] = 7
    assert list(zarrdask.open_group(url)) == []


def test_an_array_that_has_only_other_attributes_is_written(url):
    handle, _ = replaced(url, OLD)
    zarrdask.open_array(url, "a", mode="r+").attrs["title"] = "t"
    handle[0:2] = 7
    assert zarrdask.open_array(url, "a")[...].tolist() == [7, 7, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("layout", [{"chunks": 4}, {"chunks": 2, "shards": 4}])
def test_the_error_for_chunks_of_a_replaced_array_says_why_they_may_be_there(layout):
    """In a store where looking at the documents is a request, the write is not refused."""
    store = CountingStore(MemoryStore())
    zarrdask.create_array(store, shape=8, dtype="i8", compressors=(), **layout)
    stale = zarrdask.open_array(store, mode="r+")
    zarrdask.create_array(store, overwrite=True, **OLD | layout)
    stale[0:4] = 7
    for read in (lambda z: z[0], lambda z: z.__setitem__(0, 1), zarrdask_read):
        with pytest.raises(CodecError, match="array was replaced while"):
            read(zarrdask.open_array(store, mode="r+"))


def zarrdask_read(z):
    """Read an array in the tasks of a Dask array."""
    return zarrdask.from_zarr(z).compute(scheduler="sync")
