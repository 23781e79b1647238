"""The store in a local directory."""

import contextlib
import errno
import os
import threading
from functools import partial

import fsspec
import pytest

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.listing import key_stamp, listed_entries, value_sizes
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.resolve import resolve
from zarrdask.testing import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return LocalStore(str(tmp_path / "root"))


@pytest.fixture
def store(tmp_path):
    return LocalStore(str(tmp_path / "root"))


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["write", "rename"])
def test_a_write_that_fails_leaves_the_old_value_and_nothing_else(store, monkeypatch, call):
    store.set("d/k", b"old")
    monkeypatch.setattr(os, call, full_disk)
    monkeypatch.setattr(os, "replace", full_disk if call == "rename" else os.replace)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.set("d/k", b"new value")
    with pytest.raises(StoreError):
        store.set("d/other", b"new value")
    monkeypatch.undo()
    assert caught.value.key == f"{store.root}/d/k"
    assert store.get("d/k") == b"old"
    assert os.listdir(f"{store.root}/d") == ["k"]
    assert list(store.list_prefix("")) == ["d/k"]


def test_a_write_that_is_cut_short_goes_on(store, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, memoryview(data)[:3]))
    store.set("k", b"0123456789")
    assert store.get("k") == b"0123456789"


def test_a_file_that_a_killed_writer_left_is_not_listed(store, monkeypatch):
    store.set("d/k", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk)
        patch.setattr(os, "unlink", full_disk)  # as if the process had ended here
        with pytest.raises(StoreError):
            store.set("d/k", b"2")
    assert len(os.listdir(f"{store.root}/d")) == 2
    assert list(store.list_prefix("")) == ["d/k"]
    assert store.list_dir("d/") == (["k"], [])


def test_readers_see_the_old_or_the_new_value_never_a_mixture(store):
    values = [bytes([n]) * 300_000 for n in (1, 2)]
    store.set("k", values[0])
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for value in values:
                store.set("k", value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        scratch = Scratch()
        for _ in range(50):
            assert store.get("k") in values
            assert [bytes(v) in values for v in store.get_many(["k", "k"], scratch)] == [True] * 2
    finally:
        stop.set()
        writer.join()


def test_writing_below_a_file_is_a_store_error(store):
    store.set("a", b"1")
    with pytest.raises(StoreError) as caught:
        store.set("a/b", b"2")
    assert caught.value.key == f"{store.root}/a/b"
    assert store.get("a") == b"1"


@pytest.mark.parametrize(
    "read",
    [
        lambda store, key: store.get(key),
        lambda store, key: list(store.get_many([key], Scratch())),
        lambda store, key: store.get_range(key, 0, 1),
        lambda store, key: list(store.get_ranges(key, [(0, 1)], Scratch())),
    ],
    ids=["get", "get_many", "get_range", "get_ranges"],
)
def test_a_file_that_cannot_be_opened_is_a_store_error(store, monkeypatch, read):
    store.set("k", b"1")

    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("zarrdask.storage.local.local_store.open_file", refuse)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        read(store, "k")
    assert caught.value.key == f"{store.root}/k"


def open_files():
    """Return the files and directories that are open; other threads may open pipes and sockets."""
    paths = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile, such as that of this listing
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sorted(path for path in paths if path[0] == "/" and not path.startswith("/proc/"))


def test_reads_leave_no_file_open(store):
    store.set("k", b"0123")
    before = open_files()
    for _ in range(3):
        store.get("k")
        store.get("absent")
        store.get_range("k", 1, 2)
        list(store.get_many(["k", "absent"], Scratch()))
        list(store.get_ranges("k", [(0, 1), (2, 1)], Scratch()))
        next(iter(store.get_ranges("k", [(0, 1), (2, 1)], Scratch())))
    assert open_files() == before


def test_a_range_far_outside_the_value_needs_no_memory(store):
    store.set("k", b"0123456789")
    [found] = store.get_ranges("k", [(2, 2**50)], Scratch())
    assert bytes(found) == b"23456789"


def test_a_stamp_changes_with_each_write(store):
    stamps = set()
    for _ in range(20):
        store.set("k", b"same")
        stamps.add(key_stamp(store, "k"))
    assert len(stamps) > 1
    assert key_stamp(store, "k") == key_stamp(store, "k") != ""
    assert key_stamp(store, "absent") == ""


def test_erasing_the_root_prefix_empties_the_store(store):
    store.set("a/b", b"1")
    store.set("c", b"1")
    store.erase_prefix("")
    assert list(store.list_prefix("")) == []
    store.set("c", b"2")
    assert store.get("c") == b"2"


def test_calls_that_give_less_than_asked_for_are_repeated(store, monkeypatch):
    store.set("k", b"0123456789" * 10_000)
    whole, few = os.preadv, 1000
    for module in ("storage.local.local_store", "storage.file_calls"):
        monkeypatch.setattr(
            f"zarrdask.{module}.preadv",
            lambda fd, room, at: whole(fd, [room[0][:few]], at),
        )
    assert bytes(store.get_range("k", 5, 5000)) == (b"5678901234" * 500)
    [found] = store.get_ranges("k", [(3, 4000)], Scratch())
    assert bytes(found) == b"3456789012" * 400
    few = 2**16
    [found] = store.get_many(["k"], Scratch())
    assert bytes(found) == b"0123456789" * 10_000


def test_all_parts_are_of_one_value_though_it_is_replaced_meanwhile(store):
    store.set("k", b"old" * 100)
    with store.reading("k", Scratch()) as value:
        assert bytes(value.part(0, 3)) == b"old"
        store.set("k", b"new" * 100)
        assert [*map(bytes, value.parts([(3, 3), (6, 3)]))] == [b"old", b"old"]
    with store.reading("absent", Scratch()) as value:
        assert value.part(0, 3) is None
        assert [*value.parts([(0, 3)])] == [None]


def test_the_size_of_a_value_is_known_without_opening_it(tmp_path, monkeypatch):
    LocalStore(str(tmp_path)).set("k", b"12345")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", None)
        for store in (LocalStore(str(tmp_path)), LocalStore(str(tmp_path)).for_chunks()):
            assert [*value_sizes(store, ["k", "absent"])] == [5, None]


def test_the_sizes_of_files_and_not_of_links_are_listed(tmp_path):
    store = LocalStore(str(tmp_path))
    store.set("a", b"12345")
    os.symlink("a", tmp_path / "link")
    sizes = {each.key: each.size for each in listed_entries(store, "")}
    assert sizes == {"a": 5, "link": None}


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have(tmp_path, name):
    store = LocalStore(str(tmp_path / "root"))
    for key in (name, f"{name}/b", f"b/{name}"):
        assert (store.get(key), store.get_range(key, 1, 1)) == (None, None)
        assert [*value_sizes(store, [key])] == [None]
        assert store.for_chunks().get(key) is None
        assert [*store.get_many([key], Scratch())] == [None]
        assert key_stamp(store, key) == ""
        for write in (store.set, store.create):
            with pytest.raises(StoreError, match="no file can have this name"):
                write(key, b"x")
        store.erase(key)
    assert not (tmp_path / "root").exists()
    for make in (zarrdask.open, partial(zarrdask.create_array, shape=1, dtype="i4")):
        for ending in ("", ".zip"):
            with pytest.raises(StoreError, match="no file can have this name"):
                make(f"{tmp_path}/{name}{ending}")


@pytest.mark.parametrize("links", [{"a": "."}, {"a": ".."}, {"a/x": "b", "b/y": "a"}])
def test_links_to_a_directory_above_are_not_followed(tmp_path, links):
    root = zarrdask.create_group(tmp_path / "root")
    for name in ("a/z", "b/z"):
        root.create_array(name, shape=2, dtype="i4")[...] = 1
    for link, target in links.items():
        place = tmp_path / "root" / link
        place = place if place.parent != tmp_path / "root" else place / "link"
        place.symlink_to(tmp_path / "root" / target, target_is_directory=True)
    for store in (LocalStore(str(tmp_path / "root")), fsspec.get_mapper(str(tmp_path / "root"))):
        assert len(list(resolve(store).list_prefix(""))) <= 15
    assert len(str(root.tree()).splitlines()) <= 9
    assert zarrdask.verify(root).ok
    assert zarrdask.copy(root, tmp_path / "copy").groups <= 6


def test_directories_are_made_whether_those_before_them_were_new_or_not(tmp_path):
    store = LocalStore(str(tmp_path))
    for number in (1, 2, 1, 3, 2, 4):
        store.set(f"c/{number}/0", b"new")
        store.set(f"c/{number}/{number}/0", b"deeper")
    assert {*store.list_prefix("c/")} == {
        key for n in range(1, 5) for key in (f"c/{n}/0", f"c/{n}/{n}/0")
    }
    store.set("d/0", b"file")
    with pytest.raises(StoreError):
        store.set("d/0/0", b"below a file")


def test_a_value_that_another_writer_erases_at_once_is_counted_as_stored(tmp_path, monkeypatch):
    store, replace = LocalStore(str(tmp_path)), os.replace

    def replace_and_erase(*paths):
        replace(*paths)
        os.unlink(paths[1])

    monkeypatch.setattr("zarrdask.storage.local.local_store.replace", replace_and_erase)
    with zarrdask.measured() as measured:
        store.replace("d/k", lambda file: os.write(file, b"12345"))
    assert measured.bytes_stored == 5
    assert not list(store.list())
