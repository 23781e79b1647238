"""Making nodes: what is checked before, without writing anything; and who makes one."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import dask.array as da
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.covering import for_each
from zarrdask.arrays.hierarchy.node_creation import create_members
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeExistsError
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.draft_store import DraftStore

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


def array(zarr_format=3):
    return plan_array(ArrayOptions(shape=4, dtype="i4", zarr_format=zarr_format))


@for_each("zarr_format", FORMATS)
@for_each("path", ["", "a/b"])
def test_what_is_prepared_can_be_created(zarr_format, path):
    store, metadata = MemoryStore(), array(zarr_format)
    node = NodePath(store, path)
    view = node.check_creation(metadata, overwrite=False)
    assert store.values == {}
    assert node.create(metadata, overwrite=False) == view
    assert isinstance(view.store, DraftStore) == isinstance(zarr_format, str)
    assert zarrdask.open_array(*view).zarr_format == zarr_format


@for_each("zarr_format", FORMATS)
def test_what_can_not_be_created_is_not_prepared(zarr_format):
    store, metadata = MemoryStore(), array(zarr_format)
    node = NodePath(store, "a").create(metadata, overwrite=False)
    before = dict(store.values)
    for new, overwrite in ((node, False), (node.join("b"), True), (node.join("b"), False)):
        for verb in (new.check_creation, new.create):
            with pytest.raises(zarrdask.errors.NodeExistsError):
                verb(metadata, overwrite=overwrite)
    assert node.check_creation(metadata, overwrite=True) == node
    assert store.values == before


def test_names_and_formats_are_checked():
    store = MemoryStore()
    for path in ("zarr.json", "__a"):
        with pytest.raises(zarrdask.errors.MetadataError):
            NodePath(store, path).check_creation(array(), overwrite=False)
    root = NodePath(store, "")
    root.create(GroupMetadata(3), overwrite=False)
    for overwrite, path in ((False, ""), (True, "a")):
        with pytest.raises(zarrdask.errors.NodeExistsError):
            root.at(path).check_creation(array("v3-draft"), overwrite=overwrite)
    # At the root, the hierarchy of the draft may take the place of the node that is there.
    view = root.check_creation(array("v3-draft"), overwrite=True)
    assert view.layout.zarr_format == "v3-draft"
    root.create(array("v3-draft"), overwrite=True)
    assert zarrdask.open_array(store).zarr_format == "v3-draft"


# ---- two that create a node


def race(work, count=2):
    """Let several do the same at once; return what they return, or their errors."""
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait(60)
        try:
            return work(number)
        except NodeExistsError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["memory", "files"])
def test_of_two_threads_that_create_a_node_one_does(form, kind, tmp_path):
    store = MemoryStore() if kind == "memory" else LocalStore(str(tmp_path))
    zarrdask.create_group(store, zarr_format=form)
    for turn in range(16):

        def create(number, path=f"g{turn}/a", differ=turn % 2):
            length = 4 + number * differ  # every other time the documents are the same
            options = {"shape": length, "dtype": "i4", "zarr_format": form}
            return zarrdask.create_array(store, path, attributes={"by": length}, **options)

        found = race(create)
        winners = [array for array in found if not isinstance(array, NodeExistsError)]
        assert len(winners) == 1
        there = zarrdask.open_array(store, f"g{turn}/a")
        assert there.metadata == winners[0].metadata


def test_of_a_group_and_an_array_above_it_one_is_created(tmp_path):
    for turn in range(20):
        store = LocalStore(str(tmp_path / str(turn)))
        found = race(
            lambda number, store=store: zarrdask.create_array(
                store, ["a", "a/b"][number], shape=4, dtype="i4"
            )
        )
        assert isinstance(zarrdask.open(store, "a"), zarrdask.Array) == isinstance(
            found[1], NodeExistsError
        )


def _creates(place, value, barrier, found):
    won = []
    for turn in range(50):
        barrier.wait(60)
        try:
            zarrdask.create_array(place, f"a{turn}", shape=4, dtype="i4", fill_value=value)
            won.append(turn)
        except NodeExistsError:
            pass
    found.put((value, won))


def test_of_two_processes_that_create_a_node_one_does(tmp_path):
    context = get_context("forkserver")
    barrier, found = context.Barrier(2), context.Queue()
    processes = [
        context.Process(target=_creates, args=(str(tmp_path), value, barrier, found))
        for value in (1, 2)
    ]
    for process in processes:
        process.start()
    won = dict(found.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    assert sorted(won[1] + won[2]) == list(range(50))
    for value, turns in won.items():
        for turn in turns:
            assert zarrdask.open_array(tmp_path, f"a{turn}").fill_value == value


def test_who_comes_late_changes_no_attributes(monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(
        "zarrdask.arrays.hierarchy.find.node_exists", lambda *_: False
    )  # both looked before
    options = {"shape": 4, "dtype": "i4", "zarr_format": 2}
    zarrdask.create_array(store, "a", attributes={"by": "first"}, **options)
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a", attributes={"by": "second"}, **options)
    assert dict(zarrdask.open_array(store, "a").attrs) == {"by": "first"}


def test_attributes_that_are_left_of_another_node_are_replaced():
    store = MemoryStore()
    store.set("a/.zattrs", b'{"by": "another"}')
    z = zarrdask.create_array(
        store, "a", attributes={"by": "me"}, shape=4, dtype="i4", zarr_format=2
    )
    assert dict(zarrdask.open_array(store, "a").attrs) == dict(z.attrs) == {"by": "me"}


def test_who_comes_late_erases_no_chunks(monkeypatch):
    store = MemoryStore()
    z = zarrdask.create_array(store, "a", shape=4, dtype="i4", chunks=2)
    z[...] = 1
    real, calls = zarrdask.arrays.hierarchy.find.node_exists, []

    def exists(*args):
        calls.append(args)
        return len(calls) > 2 and real(*args)  # what is asked before the other one came

    monkeypatch.setattr("zarrdask.arrays.hierarchy.find.node_exists", exists)
    with pytest.raises(NodeExistsError):
        zarrdask.to_zarr(da.zeros(4, chunks=2, dtype="i4"), store, "a")
    assert z[...].tolist() == [1] * 4


@pytest.mark.parametrize("root", ["{tmp}", "memory://bucket/{tmp}", "file://{tmp}"])
@for_each("zarr_format", [2, 3])
def test_no_node_is_created_in_the_directory_of_an_array(tmp_path, root, zarr_format):
    url = root.format(tmp=tmp_path) + f"/{zarr_format}.zarr"
    zarrdask.create_array(url, shape=4, dtype="i4", zarr_format=zarr_format)
    for create in (
        lambda: zarrdask.create_group(f"{url}/x"),
        lambda: zarrdask.create_array(f"{url}/x", shape=4, dtype="i4", overwrite=True),
        lambda: zarrdask.create_array(f"{url}/x", "y/z", shape=4, dtype="i4"),
        lambda: zarrdask.create_array(f"{url}/x", shape=4, dtype="i4", zarr_format="v3-draft"),
        lambda: zarrdask.to_zarr(da.ones(4), f"{url}/x", commit="last"),
    ):
        with pytest.raises(NodeExistsError, match=r"\.zarr: this is an array, which can't hold"):
            create()


class Far(MemoryStore):
    """A store with latency, in a directory that is one, too: both are read at the same time."""

    capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS)
    begun = threading.Barrier(2, timeout=20)

    def above(self):
        return Far()

    def get_many(self, keys, scratch):
        if not self.values:  # later, nothing is read above the store
            self.begun.wait()
        return super().get_many(keys, scratch)


def test_the_directory_above_is_read_in_the_same_round():
    assert zarrdask.create_array(Far(), shape=4, dtype="i4").shape == (4,)


def test_new_members_of_a_group_take_nothing_over_from_an_interrupted_run():
    store = MemoryStore()
    zarrdask.create_group(store)
    store.set("x/.zarrdask-rewrite/plan.json", b"{}")
    store.set("x/.zarrdask-rewrite/0/1", b"between passes")
    create_members(NodePath(store, ""), {"x": array()})
    assert sorted(store.list_prefix("x/")) == ["x/zarr.json"]


def test_nothing_is_read_where_there_is_no_directory(tmp_path):
    store = CountingStore(LocalStore(str(tmp_path)))
    zarrdask.create_array(store, "a", shape=2, dtype="i4")
    # Only whether another writer has claimed it, when the document is written.
    assert {key: n for key, n in store.reads.items() if key.startswith("a/")} == {
        "a/.zarrdask-creator": 1
    }


def test_overwriting_replaces_a_node_that_another_writer_creates_meanwhile():
    other = {}
    zarrdask.create_array(other, "a", shape=9, chunks=1, dtype="i4")[...] = 1

    class Raced(MemoryStore):
        def create(self, key, value):
            if key == "a/zarr.json" and key not in self.values:
                self.values.update({key: other[key] for key in other if key.startswith("a/")})
            return super().create(key, value)

    store = Raced()
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a", shape=4, chunks=2, dtype="i4")
    store.values.clear()
    zarrdask.create_array(store, "a", shape=4, chunks=2, dtype="i4", overwrite=True)[...] = 7
    assert zarrdask.open_array(store, "a")[...].tolist() == [7] * 4
    assert {key for key in store.values if key.startswith("a/c/")} == {"a/c/0", "a/c/1"}
