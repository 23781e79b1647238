"""Symbolic links: what they point to is never erased, and is read only where that is allowed."""

import os
import pickle
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from zarrdask.errors import StoreError
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(24).reshape(4, 6)
FORMATS = [2, 3, "v3-draft", "v3-draft-protocol"]


@pytest.fixture
def outside(tmp_path):
    """A directory that belongs to somebody else: an array, and files that are none of Zarr."""
    place = tmp_path / "outside"
    zarrdask.create_array(place, shape=VALUES.shape, dtype="i8", chunks=2)[...] = VALUES
    (place / "notes.txt").write_text("mine")
    (place / "more").mkdir()
    (place / "more" / "deep.txt").write_text("mine, too")
    return place


@pytest.fixture
def root(tmp_path, outside):
    """A group with the array as a member, by a link."""
    group = zarrdask.create_group(tmp_path / "store")
    group.create_array("own", shape=4, dtype="i8")[...] = 1
    (tmp_path / "store" / "linked").symlink_to(outside)
    return group


def files(place):
    """Every file in a directory, by its path."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in Path(place).rglob("*")
        if path.is_file()
    }


def grouped(z):
    """A group in memory with two copies of an array."""
    group = zarrdask.create_group({})
    for name in ("own", "linked"):
        zarrdask.copy(z, group, component=name)
    return group


SMALL = {"shape": 3, "dtype": "i4"}
REPLACED = {
    "create_array": lambda root: root.create_array("linked", overwrite=True, **SMALL),
    "create_group": lambda root: root.create_group("linked", overwrite=True),
    "to_zarr": lambda root: zarrdask.to_zarr(da.ones(3), root, "linked", overwrite=True),
    "to_zarr, last": lambda root: zarrdask.to_zarr(
        da.ones(3), root, "linked", overwrite=True, commit="last"
    ),
    "to_zarr, of itself": lambda root: zarrdask.to_zarr(
        zarrdask.from_zarr(root, "linked") + 1, root, "linked", overwrite=True
    ),
    "rechunk": lambda root: zarrdask.rechunk(
        grouped(root["own"]), root, chunks=2, overwrite=True
    ).execute(progress=False),
    "copy": lambda root: zarrdask.copy(root["own"], root.store, component="linked", overwrite=True),
}


@pytest.mark.parametrize("change", REPLACED.values(), ids=REPLACED)
def test_of_a_node_that_is_a_link_the_link_is_replaced(root, outside, change):
    before = files(outside)
    change(root)
    assert files(outside) == before
    place = root.store.path("linked")
    assert os.path.isdir(place)
    assert not os.path.islink(place)
    assert zarrdask.verify(root.store).ok


def test_of_a_member_that_is_a_link_the_link_is_erased(root, outside):
    before = files(outside)
    del root["linked"]
    assert files(outside) == before
    assert sorted(root) == ["own"]
    assert not os.path.lexists(root.store.path("linked"))


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_links_within_a_node_are_erased_and_not_followed(tmp_path, outside, zarr_format):
    group = zarrdask.create_group(tmp_path / "g", zarr_format=zarr_format)
    z = group.create_array("a", shape=4, dtype="i8", chunks=2)
    z[...] = 1
    [chunk, *_] = [p for p in (tmp_path / "g").rglob("*") if p.is_file() and p.name.endswith("0")]
    chunk.unlink()
    chunk.symlink_to(outside / "notes.txt")
    (chunk.parent / "folder").symlink_to(outside)
    before = files(outside)
    del group["a"]
    assert files(outside) == before
    assert not os.path.lexists(chunk)
    assert "a" not in group


ROOTS = {
    "create_array": lambda place: zarrdask.create_array(place, overwrite=True, **SMALL),
    "create_group": lambda place: zarrdask.create_group(place, overwrite=True),
    "draft": lambda place: zarrdask.create_array(
        place, overwrite=True, zarr_format="v3-draft", **SMALL
    ),
    "to_zarr": lambda place: zarrdask.to_zarr(da.ones(3), place, overwrite=True),
    "to_zarr, last": lambda place: zarrdask.to_zarr(
        da.ones(3), place, overwrite=True, commit="last"
    ),
    "to_zarr, of itself": lambda place: zarrdask.to_zarr(
        zarrdask.from_zarr(place) + 1, place, overwrite=True
    ),
    "rechunk": lambda place: zarrdask.rechunk(da.ones(3), place, chunks=2, overwrite=True).execute(
        progress=False
    ),
    "copy": lambda place: zarrdask.copy(zarrdask.create_array({}, **SMALL), place, overwrite=True),
}


@covering(strength=1, change=ROOTS, slash=["", "/"])
def test_a_root_that_is_a_link_is_a_store_and_stays_one(tmp_path, change, slash):
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    zarrdask.create_array(real, shape=VALUES.shape, dtype="i8", chunks=2)[...] = VALUES
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (real / "c" / "7").symlink_to(tmp_path / "elsewhere")
    link.symlink_to(real)
    change(f"{link}{slash}")
    assert link.is_symlink()
    assert not (real / "c" / "1" / "2").exists()
    assert files(tmp_path / "elsewhere") == {"kept": b""}
    assert zarrdask.verify(real).ok
    assert type(zarrdask.open(link)) is type(zarrdask.open(real))


def test_a_store_whose_root_ends_with_a_slash_is_emptied_no_further(tmp_path, outside):
    (tmp_path / "link").symlink_to(outside)
    LocalStore(f"{tmp_path}/link/").erase_prefix("")
    assert (tmp_path / "link").is_symlink()
    assert files(outside) == {}


# ---- behind a link


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root["more"].create_array("x", overwrite=True, **SMALL),
        lambda root: root["more"].__delitem__("x"),
        lambda root: zarrdask.to_zarr(da.ones(3), root, "more/x", overwrite=True, commit="last"),
        lambda root: root["more/x"].resize(2),
    ],
)
def test_nothing_is_erased_behind_a_link(tmp_path, change):
    other = zarrdask.create_group(tmp_path / "other")
    other.create_array("x", shape=8, dtype="i8", chunks=2)[...] = 1
    root = zarrdask.create_group(tmp_path / "store")
    (tmp_path / "store" / "more").symlink_to(tmp_path / "other")
    zarrdask.consolidate_metadata(root)
    before, own = files(tmp_path / "other"), files(tmp_path / "store")
    root = zarrdask.open_group(tmp_path / "store", mode="r+", consolidated=False)
    with pytest.raises(zarrdask.errors.LinkError, match="symbolic link") as caught:
        change(root)
    assert caught.value.key == f"{tmp_path}/store/more"
    assert files(tmp_path / "other") == before
    assert files(tmp_path / "store") == own


def test_an_array_behind_a_link_can_be_written_with_the_fill_value(root, outside):
    z = root["linked"]
    z[...] = 0
    assert not zarrdask.open_array(outside)[...].any()
    assert zarrdask.open_array(outside).nchunks_stored() == 6


def test_consolidated_metadata_behind_a_link_stay(tmp_path):
    zarrdask.create_group(tmp_path / "other", zarr_format=2).create_array("x", **SMALL)
    zarrdask.consolidate_metadata(tmp_path / "other")
    root = zarrdask.create_group(tmp_path / "store", zarr_format=2)
    (tmp_path / "store" / "more").symlink_to(tmp_path / "other")
    before = files(tmp_path / "other")
    with pytest.raises(zarrdask.errors.LinkError):
        root.create_array("more/y", **SMALL)
    assert files(tmp_path / "other") == before


# ---- reading


@pytest.fixture
def secret(tmp_path):
    """A file that a store's author may not read, but its reader may."""
    place = tmp_path / "secret"
    place.write_bytes(b"secret!!")
    return place


@pytest.fixture
def hostile(tmp_path, secret):
    """An array with a chunk that is a link to it."""
    z = zarrdask.create_array(
        tmp_path / "h", shape=4, dtype="S8", chunks=1, compressors=[], fill_value=b""
    )
    z[...] = b"public"
    (tmp_path / "h" / "c" / "1").unlink()
    (tmp_path / "h" / "c" / "1").symlink_to(secret)
    return tmp_path / "h"


def read_all(place):
    return zarrdask.open_array(place)[...]


READS = {
    "all": read_all,
    "one": lambda place: zarrdask.open_array(place)[1],
    "dask": lambda place: zarrdask.from_zarr(place).compute(scheduler="sync"),
    "copy": lambda place: zarrdask.copy(place, MemoryStore(), scheduler="sync"),
    "local copy": lambda place: zarrdask.copy(place, f"{place}2", scheduler="sync"),
    "recode": lambda place: zarrdask.copy(
        place, MemoryStore(), compressors="gzip", scheduler="sync"
    ),
    "rechunk": lambda place: zarrdask.rechunk(
        place, MemoryStore(), chunks=2, scheduler="sync"
    ).execute(progress=False),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_links_are_followed_unless_that_is_forbidden(hostile, read, setting):
    read(hostile)
    assert read_all(hostile).tolist()[1] == b"secret!!"
    setting({"zarrdask.follow-links": False})
    if hostile.with_name("h2").exists():
        zarrdask.copy(zarrdask.create_array({}, **SMALL), hostile.with_name("h2"), overwrite=True)
        hostile.with_name("h2").rename(hostile.with_name("h3"))
    with pytest.raises(zarrdask.errors.LinkError, match="symbolic link") as caught:
        read(hostile)
    assert f"{hostile}/c/1" in str(caught.value)


@pytest.mark.parametrize("path", ["zarr.json", "c"])
def test_so_it_is_with_documents_and_directories(tmp_path, path):
    zarrdask.create_array(tmp_path / "real", shape=4, dtype="i4", chunks=2)[...] = 1
    zarrdask.create_array(tmp_path / "a", shape=4, dtype="i4", chunks=2)
    if path == "zarr.json":
        (tmp_path / "a" / path).unlink()
    (tmp_path / "a" / path).symlink_to(tmp_path / "real" / path)
    assert read_all(tmp_path / "a").tolist() == [1 if path == "c" else 0] * 4
    with pytest.raises(zarrdask.errors.LinkError) as caught:
        read_all(LocalStore(f"{tmp_path}/a", follow_links=False))
    assert f"{tmp_path}/a/{path}" in str(caught.value)
    with (
        dask.config.set({"zarrdask.follow-links": False}),
        pytest.raises(zarrdask.errors.LinkError),
    ):
        read_all(tmp_path / "a")
    with dask.config.set({"zarrdask.follow-links": False}):
        assert read_all(LocalStore(f"{tmp_path}/a", follow_links=True)).shape == (4,)


def test_where_none_are_followed_none_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    store = LocalStore(f"{tmp_path}/s", follow_links=False)
    z = zarrdask.create_array(store, shape=4, dtype="i4", chunks=2)
    (tmp_path / "s" / "c").symlink_to(tmp_path / "real")
    with pytest.raises(zarrdask.errors.LinkError):
        z[...] = 1
    assert files(tmp_path / "real") == {}


def test_the_root_may_be_a_link_also_where_none_are_followed(tmp_path, outside):
    (tmp_path / "link").symlink_to(outside)
    store = LocalStore(f"{tmp_path}/link", follow_links=False)
    assert (read_all(store) == VALUES).all()
    assert zarrdask.verify(store, scheduler="sync").ok


def test_what_a_user_forbids_is_forbidden_in_workers(hostile, setting):
    """A worker's configuration is its own."""
    allowed, forbidden = LocalStore(str(hostile)), LocalStore(str(hostile))
    sent = pickle.dumps(allowed)
    setting({"zarrdask.follow-links": False})
    assert len(pickle.dumps(forbidden)) > len(sent)
    sent = pickle.loads(sent), pickle.loads(pickle.dumps(forbidden))
    setting({"zarrdask.follow-links": True})
    assert read_all(sent[0])[1] == b"secret!!"
    with pytest.raises(zarrdask.errors.LinkError):
        read_all(sent[1])


def test_a_link_without_a_target_is_named(tmp_path):
    (tmp_path / "a.zarr").symlink_to(tmp_path / "missing")
    with pytest.raises(
        StoreError, match=r"a\.zarr: expected a directory but found a symbolic link"
    ):
        zarrdask.to_zarr(da.ones(2), tmp_path / "a.zarr")
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_a_directory_is_removed_while_another_writer_stores_a_file_in_it(tmp_path, monkeypatch):
    (tmp_path / "g" / "a").mkdir(parents=True)
    rmdir, late = os.rmdir, iter([tmp_path / "g" / "a" / "0"])

    def store_first(*arguments, **options):
        for path in late:
            path.write_bytes(b"x")
        rmdir(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", store_first)
    LocalStore(str(tmp_path)).erase_prefix("g/")
    assert not (tmp_path / "g").exists()
