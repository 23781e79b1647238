"""When a new array appears, and what is there if it does not come to that."""

import os

import dask
import dask.array as da
import numpy as np
import pytest
from dask.delayed import Delayed

import zarrdask
from tests.covering import covering, for_each
from tests.parallel.graph.writes import WritesStore
from tests.storage.faults import Faults, FaultyStore
from zarrdask.storage.memory import MemoryStore

OLD = np.arange(1.0, 121.0).reshape(12, 10)
NEW = -OLD[:11]
FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")
PLACES = ["memory", "local"]
SCHEDULERS = ["sync", "threads"]
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", "array.json", "group.json")


def is_document(key):
    return key.endswith(DOCUMENTS)


class OrderStore(WritesStore):
    """Keeps the order of what is stored."""

    def __init__(self):
        super().__init__()
        self.order = []

    def set(self, key, value):
        self.order.append(key)
        super().set(key, value)


@pytest.fixture(autouse=True)
def scheduler(request):
    name = getattr(request, "param", "threads")
    with dask.config.set(scheduler=name):
        yield name


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    return {} if request.param == "memory" else tmp_path / "root"


def read(place, name="g/a"):
    return zarrdask.open_array(place, name)[...]


def is_there(place, name="g/a"):
    try:
        zarrdask.open(place, name)
    except zarrdask.errors.NodeNotFoundError:
        return False
    return True


def names(place):
    """Return all that there is at the top, also what is hidden."""
    return (
        sorted({key.split("/")[0] for key in place}) if type(place) is dict else os.listdir(place)
    )


# ---- last


@for_each("zarr_format", FORMATS)
def test_documents_come_last(zarr_format):
    store = OrderStore()
    x = da.from_array(NEW, chunks=4)
    zarrdask.to_zarr(
        x, store, "g/a", commit="last", chunks=3, zarr_format=zarr_format, attributes={"a": 1}
    )
    np.testing.assert_array_equal(read(store), NEW)
    assert zarrdask.open_array(store, "g/a").attrs["a"] == 1
    order = [key for key in store.order if not key.endswith("/.zarrdask-creator")]
    assert len(order) == len(store.order) - 1  # the claim of the writer, which is erased
    chunks = [at for at, key in enumerate(order) if not is_document(key)]
    assert chunks == list(range(16))
    # That which makes it an array is the very last one.
    names = {2: "g/a/.zarray", 3: "g/a/zarr.json", "v3-draft": "meta/g/a.array.json"}
    assert store.order[-1] == names.get(zarr_format, "meta/root/g/a.array.json")
    assert {store.writes[key] for key in order} == {1}


@for_each("zarr_format", FORMATS)
def test_documents_come_first(zarr_format):
    store = OrderStore()
    zarrdask.to_zarr(da.from_array(NEW, chunks=4), store, "g/a", zarr_format=zarr_format)
    order = [key for key in store.order if not key.endswith("/.zarrdask-unfinished")]
    documents = [at for at, key in enumerate(order) if is_document(key)]
    assert documents == list(range(len(documents)))


def test_nothing_is_there_before_it_is_computed(place):
    x = da.from_array(NEW, chunks=4)
    later = zarrdask.to_zarr(x, place, "g/a", commit="last", compute=False)
    assert isinstance(later, Delayed)
    assert not is_there(place)
    assert type(place) is not dict or place == {}
    assert later.compute() is None
    np.testing.assert_array_equal(read(place), NEW)
    # It may be done again.
    later.compute()
    np.testing.assert_array_equal(read(place), NEW)


def test_a_commit_that_was_cut_short_is_done_when_it_is_done_again():
    x = da.from_array(NEW, chunks=4)
    for left in range(13, 9, -1):

        class Fails(MemoryStore):
            count = 0

            def set(self, key, value):
                self.count += 1
                if self.count == left:  # noqa: B023 - used in this turn of the loop only
                    raise zarrdask.errors.StoreError("no", key=key)
                super().set(key, value)

        store = Fails()
        later = zarrdask.to_zarr(
            x, store, "g/a", commit="last", compute=False, zarr_format=2, attributes={"a": 1}
        )
        with pytest.raises(zarrdask.errors.StoreError):
            later.compute()
        assert not is_there(store)
        later.compute()
        np.testing.assert_array_equal(read(store), NEW)
        assert zarrdask.open_array(store, "g/a").attrs["a"] == 1


def test_tasks_do_not_see_the_array(place):
    seen = []

    def look(block):
        seen.append(is_there(place))
        return block

    x = da.from_array(NEW, chunks=4).map_blocks(look, dtype=NEW.dtype, meta=NEW[:0])
    zarrdask.to_zarr(x, place, "g/a", commit="last")
    zarrdask.to_zarr(x, place, "g/b", commit="first")
    assert seen == [False] * 9 + [True] * 9
    assert is_there(place, "g/b")


@covering(
    place=PLACES,
    compute=[True, False],
    there=[True, False],
    scheduler=SCHEDULERS,
    indirect=["place", "scheduler"],
)
def test_the_stored_array_is_returned(place, compute, there):
    if there:
        zarrdask.to_zarr(da.from_array(OLD, chunks=5), place, "g/a")
    x = da.from_array(NEW, chunks=4)
    y = zarrdask.to_zarr(
        x,
        place,
        "g/a",
        overwrite=there,
        commit="last",
        chunks=3,
        dtype="f4",
        compute=compute,
        return_stored=True,
    )
    assert isinstance(y, da.Array)
    assert y.dtype == "f4"
    np.testing.assert_array_equal((y + 1).compute(), NEW.astype("f4") + 1)
    np.testing.assert_array_equal(read(place), NEW.astype("f4"))


def test_an_array_of_the_fill_value_only_appears(place):
    zarrdask.to_zarr(da.zeros((4, 4)), place, "g/a", commit="last", fill_value=0)
    assert zarrdask.open_array(place, "g/a").nchunks_stored() == 0
    np.testing.assert_array_equal(read(place), np.zeros((4, 4)))
    zarrdask.to_zarr(da.zeros((2, 2)), place, "g/a", commit="last", overwrite=True)
    assert zarrdask.open_array(place, "g/a").shape == (2, 2)


def test_what_stood_there_before_is_an_error_before_and_after(place):
    x = da.from_array(NEW, chunks=4)
    later = zarrdask.to_zarr(x, place, "g/a", commit="last", compute=False)
    zarrdask.to_zarr(da.from_array(OLD, chunks=5), place, "g/a")
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.to_zarr(x, place, "g/a", commit="last")
    with pytest.raises(zarrdask.errors.NodeExistsError):
        later.compute()
    zarrdask.to_zarr(x, place, "b")
    with pytest.raises(zarrdask.errors.NodeExistsError, match="can't hold other nodes"):
        zarrdask.to_zarr(x, place, "b/c", commit="last")
    with pytest.raises(zarrdask.errors.MetadataError, match="reserved"):
        zarrdask.to_zarr(x, place, "zarr.json", commit="last")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commit": "never"}, "commit: unknown value"),
        ({"commit": "last", "region": np.s_[:11]}, "commit"),
        ({"commit": "last", "mode": "r+"}, "commit"),
    ],
    ids=str,
)
def test_where_it_makes_no_sense_it_is_an_error(options, message):
    store = {}
    zarrdask.to_zarr(da.from_array(OLD, chunks=5), store)
    with pytest.raises(zarrdask.errors.MetadataError, match=message):
        zarrdask.to_zarr(da.from_array(NEW, chunks=4), store, **options)
    np.testing.assert_array_equal(read(store, ""), OLD)


# ---- overwriting


@covering(
    commit=["first", "last"],
    zarr_format=FORMATS,
    scheduler=SCHEDULERS,
    indirect=["scheduler"],
)
def test_no_old_chunk_is_seen_under_new_metadata(commit, zarr_format):
    """Whoever opens the array meanwhile sees the old, or the new, and nothing else."""
    store = MemoryStore()
    options = {"chunks": 4, "zarr_format": zarr_format, "compressors": ()}
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), store, "g/a", **options)
    states = []

    class Watched(MemoryStore):
        def _look(self):
            copy = MemoryStore(dict(self.values))
            if not is_there(copy):
                states.append("none")
                return
            found = read(copy)
            if found.shape == OLD.shape:
                np.testing.assert_array_equal(found, OLD)
                states.append("old")
            else:
                assert set(found[found != NEW]) <= {0}
                states.append("new" if (found == NEW).all() else "part")

        def set(self, key, value):
            super().set(key, value)
            self._look()

        def erase(self, key):
            super().erase(key)
            self._look()

        def erase_values(self, keys):
            for key in list(keys):
                self.erase(key)

    watched = Watched(store.values)
    with dask.config.set(scheduler="sync"):
        zarrdask.to_zarr(
            da.from_array(NEW, chunks=4), watched, "g/a", overwrite=True, commit=commit, **options
        )
    assert states[-1] == "new"
    assert ("part" in states) == (commit == "first")
    np.testing.assert_array_equal(read(store), NEW)


def leftovers(place, keys=("g/a/c/0/0", "g/a/c/2/1", "g/a/c/9/9", "g/a/other")):
    """Put chunks, and other things, where no array is."""
    zarrdask.create_group(place)
    store = zarrdask.open_group(place).store
    for key in keys:
        store.set(key, b"\1" * 8 * 16)
    return store


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"mode": "w-"}], ids=str)
def test_chunks_of_an_array_that_is_gone_are_not_seen(place, options):
    store = leftovers(place)
    later = zarrdask.to_zarr(
        da.ones((12, 10), chunks=4), place, "g/a", compute=False, compressors=(), **options
    )
    np.testing.assert_array_equal(read(place), np.zeros((12, 10)))
    later.compute()
    np.testing.assert_array_equal(read(place), np.ones((12, 10)))
    assert store.get("g/a/other")  # not ours


def test_chunks_of_an_array_that_is_gone_are_replaced_at_last(place):
    leftovers(place)
    values = np.zeros((12, 10))
    zarrdask.to_zarr(da.from_array(values, chunks=4), place, "g/a", commit="last", compressors=())
    np.testing.assert_array_equal(read(place), values)


# ---- what is there if it fails


class Failure(Exception):
    pass


def failing(values):
    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (1, 1):
            raise Failure
        return block

    return da.from_array(values, chunks=4).map_blocks(fail, dtype=values.dtype, meta=values[:0])


def failed(place, name="g/a", **options):
    """Write what fails, and return what the error says beside itself."""
    with pytest.raises(Failure) as caught:
        zarrdask.to_zarr(failing(NEW), place, name, **options)
    (note,) = caught.value.__notes__
    assert note.split(":")[0].endswith(name) or "mapping" in note
    return note


def test_a_new_array_whose_write_failed_does_not_open(place):
    note = failed(place, compressors=())
    assert "no array was created; run the same call again" in note
    assert not is_there(place)
    zarrdask.to_zarr(da.from_array(NEW, chunks=4), place, "g/a", compressors=())
    np.testing.assert_array_equal(read(place), NEW)


def test_a_new_array_is_not_there_at_last(place):
    assert "no array was created" in failed(place, commit="last")
    assert not is_there(place)
    zarrdask.to_zarr(da.from_array(NEW, chunks=4), place, "g/a", commit="last")
    np.testing.assert_array_equal(read(place), NEW)


def test_in_memory_a_failed_overwrite_leaves_no_array():
    place = {}
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), place, "g/a")
    assert "the previous content was erased" in failed(place, overwrite=True)
    assert not is_there(place)


def test_in_memory_a_failed_overwrite_with_late_metadata_leaves_no_array():
    place = {}
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), place, "g/a")
    note = failed(place, overwrite=True, commit="last")
    assert "no array was created, and the previous content was erased" in note
    assert not is_there(place)


@covering(
    options=[{"overwrite": True}, {"mode": "w"}],
    commit=["first", "last"],
    name={"nested": "g/a", "root": ""},
    is_link=[False, True],
    scheduler=SCHEDULERS,
    indirect=["scheduler"],
)
def test_on_disk_a_failed_overwrite_leaves_the_old_array(tmp_path, options, commit, name, is_link):
    directory = place = tmp_path / "root"
    if is_link:
        directory = tmp_path / "elsewhere" / "root"
        directory.mkdir(parents=True)
        place.symlink_to(directory)
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), place, name)
    before = sorted(map(str, tmp_path.rglob("*")))
    note = failed(place, name, commit=commit, **options)
    assert "the previous content is unchanged" in note
    np.testing.assert_array_equal(read(place, name), OLD)
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    zarrdask.to_zarr(da.from_array(NEW, chunks=4), place, name, commit=commit, **options)
    np.testing.assert_array_equal(read(place, name), NEW)
    assert place.is_symlink() == is_link
    assert sorted(os.listdir(directory.parent)) == ["root"]


@pytest.mark.parametrize("fails", [False, True])
def test_on_disk_a_group_is_replaced_when_the_array_is_complete(tmp_path, fails):
    zarrdask.to_zarr({"a": da.from_array(OLD, chunks=4)}, tmp_path, "g")
    zarrdask.consolidate_metadata(tmp_path)
    if fails:
        failed(tmp_path, "g", overwrite=True)
        np.testing.assert_array_equal(read(tmp_path, "g/a"), OLD)
        assert dict(zarrdask.open_group(tmp_path).walk()).keys() == {"g", "g/a"}
    else:
        zarrdask.to_zarr(da.from_array(NEW, chunks=4), tmp_path, "g", overwrite=True)
        np.testing.assert_array_equal(read(tmp_path, "g"), NEW)
        assert dict(zarrdask.open_group(tmp_path).walk()).keys() == {"g"}
    assert sorted(os.listdir(tmp_path)) == ["g", "zarr.json"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_above_a_replaced_array_are_created_if_they_are_missing(tmp_path, zarr_format):
    path = tmp_path / "g" / "h" / "a"
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), path, zarr_format=zarr_format)
    zarrdask.to_zarr(
        da.from_array(NEW, chunks=4), tmp_path, "g/h/a", overwrite=True, zarr_format=zarr_format
    )
    assert dict(zarrdask.open_group(tmp_path).walk()).keys() == {"g", "g/h", "g/h/a"}
    np.testing.assert_array_equal(read(tmp_path, "g/h/a"), NEW)


@pytest.mark.parametrize("reason", ["mount point", "protected directory"])
def test_a_directory_that_cannot_be_renamed_is_overwritten_in_place(tmp_path, monkeypatch, reason):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path / "root")
    (tmp_path / "link").symlink_to(tmp_path / "root")
    if reason == "mount point":
        monkeypatch.setattr(os.path, "ismount", lambda path: path == f"{tmp_path}/root")
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path))
    monkeypatch.setattr("zarrdask.storage.local.staged.replace_directory", None)
    for place in (tmp_path / "root", tmp_path / "link"):
        zarrdask.to_zarr(da.from_array(NEW, chunks=4), place, overwrite=True)
        np.testing.assert_array_equal(read(place, ""), NEW)


# ---- reads that no search of the graph finds


def values_of(path):
    """Read an array as another library does: the graph holds no more than a path."""
    return zarrdask.open_array(path)[...]


@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("options", [{"overwrite": True}, {"mode": "w"}], ids=str)
def test_an_array_that_a_function_reads_is_replaced_when_all_is_read(tmp_path, options, compute):
    path = tmp_path / "a"
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), path)

    def block_of(block_info=None):
        region = tuple(slice(*pair) for pair in block_info[None]["array-location"])
        return values_of(path)[region] + 1

    x = da.map_blocks(block_of, chunks=((4, 4, 4), (4, 4, 2)), dtype="f8", meta=OLD[:0])
    task = zarrdask.to_zarr(x, path, compute=compute, **options)
    if not compute:
        np.testing.assert_array_equal(read(path, ""), OLD)
        task.compute()
    np.testing.assert_array_equal(read(path, ""), OLD + 1)
    assert os.listdir(tmp_path) == ["a"]


def test_an_array_that_is_read_before_a_block_fails_is_left(tmp_path):
    path = tmp_path / "a"
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), path)
    x = da.from_delayed(dask.delayed(values_of)(path), OLD.shape, OLD.dtype).rechunk(4)

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (2, 2):
            raise Failure
        return block + 1

    with pytest.raises(Failure):
        zarrdask.to_zarr(x.map_blocks(fail, dtype="f8"), path, overwrite=True)
    np.testing.assert_array_equal(read(path, ""), OLD)


def test_units_of_an_array_that_is_there_are_old_or_new(place):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), place, "g/a")
    note = failed(place, region=np.s_[:11])
    assert "each stored chunk or shard has either its old or its new content" in note
    found = read(place)
    assert (np.abs(found) == OLD).all()


def test_a_store_that_fails_before_anything_is_computed_says_so_too():
    inner = MemoryStore()
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), inner, "g/a")
    faulty = FaultyStore(inner, Faults())
    x = da.from_array(NEW, chunks=4)

    def denied(prefix):
        raise zarrdask.errors.StoreError("denied", key=prefix)

    faulty.erase_prefix = denied
    with pytest.raises(zarrdask.errors.StoreError, match="denied") as caught:
        zarrdask.to_zarr(x, faulty, "g/a", overwrite=True)
    assert "the previous content was erased" in caught.value.__notes__[0]
    # The chunks that were left are not seen under the new metadata.
    later = zarrdask.to_zarr(x, inner, "g/a", overwrite=True, compute=False, chunks=4)
    assert not read(inner).any()
    later.compute()
    np.testing.assert_array_equal(read(inner), NEW)


# ---- an array that is computed from itself


@covering(
    commit=["first", "last"],
    compute=[True, False],
    scheduler=SCHEDULERS,
    indirect=["scheduler"],
)
def test_an_array_on_disk_is_replaced_by_what_is_computed_from_it(tmp_path, commit, compute):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path, "g/a")
    x = zarrdask.from_zarr(tmp_path, "g/a", chunks="stored")
    y = (x[::-1] + x.mean()).rechunk(5)
    expected = OLD[::-1] + OLD.mean()
    later = zarrdask.to_zarr(
        y, tmp_path, "g/a", overwrite=True, commit=commit, compute=compute, chunks=3
    )
    if not compute:
        np.testing.assert_array_equal(read(tmp_path), OLD)
        later.compute()
    np.testing.assert_array_equal(read(tmp_path), expected)
    assert zarrdask.open_array(tmp_path, "g/a").chunks == (3, 3)
    assert sorted(os.listdir(tmp_path / "g")) == ["a", "zarr.json"]
    assert dict(zarrdask.open_group(tmp_path).walk()).keys() == {"g", "g/a"}


def test_an_open_array_on_disk_is_replaced_by_what_is_computed_from_it(tmp_path):
    z = zarrdask.create_array(
        tmp_path, "a", shape=OLD.shape, dtype="f8", chunks=(5, 4), attributes={"unit": "K"}
    )
    z[...] = OLD
    x = zarrdask.from_zarr(z)
    y = zarrdask.to_zarr(x[::-1] + 1, z, return_stored=True)
    np.testing.assert_array_equal(y.compute(), OLD[::-1] + 1)
    found = zarrdask.open_array(tmp_path, "a")
    np.testing.assert_array_equal(found[...], OLD[::-1] + 1)
    assert found.metadata == z.metadata
    assert sorted(os.listdir(tmp_path)) == ["a", "zarr.json"]


def test_a_part_of_an_array_that_is_computed_from_that_part_is_refused(place):
    z = zarrdask.create_array(place, "g/a", shape=OLD.shape, dtype="f8", chunks=(5, 4))
    z[...] = OLD
    x = zarrdask.from_zarr(z, chunks="stored")
    with pytest.raises(
        zarrdask.errors.SelectionError, match=r"read less: from_zarr\(\.\.\., region="
    ):
        zarrdask.to_zarr(x[:-5], z, region=np.s_[5:])
    np.testing.assert_array_equal(z[...], OLD)


def test_a_part_of_an_array_that_is_computed_from_another_part_is_written(place):
    z = zarrdask.create_array(place, "g/a", shape=OLD.shape, dtype="f8", chunks=(5, 4))
    z[...] = OLD
    x = zarrdask.from_zarr(z, region=np.s_[:6])
    zarrdask.to_zarr(x * 2, z, region=np.s_[6:])
    np.testing.assert_array_equal(z[...], np.concatenate([OLD[:6], OLD[:6] * 2]))
    y = zarrdask.from_zarr(z, chunks="stored")[:5]
    zarrdask.to_zarr(y * 3, z, region=np.s_[5:10])
    np.testing.assert_array_equal(z[5:10], OLD[:5] * 3)


def test_one_that_fails_leaves_the_old_one(tmp_path):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path, "g/a")

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (2, 1):
            raise Failure
        return block + 1

    x = zarrdask.from_zarr(tmp_path, "g/a", chunks="stored").map_blocks(fail, dtype="f8")
    for _ in range(5):
        with pytest.raises(Failure) as caught:
            zarrdask.to_zarr(x, tmp_path, "g/a", overwrite=True)
        assert "the previous content is unchanged" in caught.value.__notes__[0]
        np.testing.assert_array_equal(read(tmp_path), OLD)
        assert sorted(os.listdir(tmp_path / "g")) == ["a", "zarr.json"]


def test_a_hidden_directory_that_cannot_be_removed_is_mentioned(tmp_path, monkeypatch):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path, "g/a")

    def denied(path, *, ignore_errors=False):
        if not ignore_errors:
            raise PermissionError(13, "denied", path)

    monkeypatch.setattr("zarrdask.storage.local.staged.shutil.rmtree", denied)
    with pytest.raises(Failure) as caught:
        zarrdask.to_zarr(failing(NEW), tmp_path, "g/a", overwrite=True, commit="last")
    assert "the hidden directory of the new node is left: " in caught.value.__notes__[0]
    assert "denied" in caught.value.__notes__[0]
    np.testing.assert_array_equal(read(tmp_path), OLD)
    assert list(zarrdask.open_group(tmp_path, "g")) == ["a"]


@pytest.mark.parametrize("zarr_format", FORMATS[2:])
def test_an_array_of_the_draft_is_not_replaced_by_what_is_computed_from_it(tmp_path, zarr_format):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path, "g/a", zarr_format=zarr_format)
    x = zarrdask.from_zarr(tmp_path, "g/a")
    with pytest.raises(zarrdask.errors.NodeExistsError, match="computed from"):
        zarrdask.to_zarr(x + 1, tmp_path, "g/a", overwrite=True, zarr_format=zarr_format)
    np.testing.assert_array_equal(read(tmp_path), OLD)
