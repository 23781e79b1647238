"""What is said where there is no node."""

import os

import fsspec
import fsspec.implementations.memory
import pytest

import zarrdask
from tests.documents import dump, v2, v3
from tests.storage.latency import LatencyStore
from zarrdask.errors import ComplianceWarning, NodeNotFoundError
from zarrdask.storage.local.local_store import LocalStore

ENTRY = {
    "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
    "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0",
    "metadata_key_suffix": ".json",
    "extensions": [],
}


def message(url):
    with pytest.raises(NodeNotFoundError) as caught:
        zarrdask.open(url)
    return caught.value.message


def test_nothing_at_all(tmp_path):
    assert message(tmp_path / "none.zarr").endswith("there is no such directory")
    assert message(tmp_path) == message({}) == "there is no array or group here"


def test_usual_mistakes(tmp_path):
    zarrdask.create_group(tmp_path).create_array("a", shape=4, dtype="i4")[...] = 1
    assert message(tmp_path / "a/c").endswith(f"it is inside an array, {tmp_path}/a")
    assert "pass the directory of" in message(tmp_path / "zarr.json")
    (tmp_path / "a/zarr.json").write_text("{")
    assert message(tmp_path / "a/c") == "there is no array or group here"


@pytest.mark.parametrize(
    ("below", "component"),
    [
        ("g/a", "'g/a'"),
        ("meta/root/g", "'g'"),
        ("data/root/g/a", "'g/a'"),
        ("meta", None),
        ("meta/root", None),
    ],
)
@pytest.mark.parametrize("place", ["path", "url"])
def test_a_path_within_a_hierarchy_of_the_draft(tmp_path, below, component, place):
    root = tmp_path / "x.zarr"
    (root / below).mkdir(parents=True)
    (root / "zarr.json").write_bytes(dump(ENTRY))
    found = message(
        root / below if place == "path" else fsspec.get_mapper(f"file://{root}/{below}")
    )
    assert "open that at its root" in found
    assert "x.zarr" in found
    assert found.endswith(f"with component={component}") if component else "component" not in found


def test_of_two_formats_at_one_path_v3_is_taken_and_said():
    both = {".zarray": dump(v2(dtype="<u4")), "zarr.json": dump(v3())}
    with pytest.warns(ComplianceWarning, match=r"read as Zarr 3, and \.zarray is ignored"):
        assert zarrdask.open(both).dtype == "u2"


class Guarded(fsspec.implementations.memory.MemoryFileSystem):
    """A file system of which a user may see one directory only."""

    protocol = "guarded"
    cachable = False

    def cat_file(self, path, *args, **options):
        if "/mine" not in path:
            raise PermissionError(403)
        return super().cat_file(path, *args, **options)


def test_what_is_around_a_store_need_not_be_readable():
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    assert message("guarded://bucket/mine/x") == message({})
    assert list(zarrdask.open_group("guarded://bucket/mine/x", mode="a")) == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_path_below_an_array_of_a_group(tmp_path, zarr_format):
    for place in (tmp_path / "x.zarr", {}):
        root = zarrdask.create_group(place, zarr_format=zarr_format)
        root.create_array("g/a", shape=2, dtype="i4")
        with pytest.raises(NodeNotFoundError, match=r"it is inside an array, .*/g/a, which"):
            _ = root["g/a/b"]
        with pytest.raises(NodeNotFoundError, match=r"it is inside an array, .*/g/a, which"):
            zarrdask.from_zarr(place, "g/a/b/c")
    far = LatencyStore(LocalStore(str(tmp_path / "x.zarr")), seconds=0)
    with pytest.raises(NodeNotFoundError, match="it is inside an array"):
        zarrdask.open_array(far, "g/a/b")


def test_a_directory_of_stores_lists_them(tmp_path):
    zarrdask.create_group(tmp_path / "b.zarr")
    zarrdask.create_array(tmp_path / "a", shape=2, dtype="i4", zarr_format=2)
    zarrdask.create_group(f"{tmp_path}/c.zarr.zip")
    (tmp_path / "other").mkdir()
    expected = "but below it: pass one of 'a', 'b.zarr', 'c.zarr.zip'"
    assert message(tmp_path) == f"there is no array or group here, {expected}"
    for number in range(10):
        zarrdask.create_group(tmp_path / f"d{number}")
    assert message(tmp_path).endswith("'d4', ...")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89HDF\r\n\x1a\n", "NetCDF or HDF5"),
        (b"CDF\x01", "NetCDF"),
        (b"GRIB", "GRIB"),
        (b"II*\0", "TIFF"),
    ],
)
def test_a_file_of_another_format_points_to_references(tmp_path, head, kind):
    (tmp_path / "data.nc").write_bytes(head + bytes(20))
    found = message(tmp_path / "data.nc")
    assert f"this is a {kind} file; to read its chunks as Zarr, make references" in found


def test_a_fifo_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "data.zarr")
    assert "pass the directory of the array or the group" in message(tmp_path / "data.zarr")


def test_a_mode_in_the_place_of_a_path_is_said(tmp_path):
    zarrdask.create_array(tmp_path, shape=2, dtype="i4")
    with pytest.raises(NodeNotFoundError, match=r"pass mode='r\+' by name"):
        zarrdask.open_array(tmp_path, "r+")


def test_a_mode_may_be_meant_as_a_name():
    root = zarrdask.create_group({})
    root.create_array("A", shape=2, dtype="i4")
    root.create_array("b", shape=2, dtype="i4")
    with pytest.raises(NodeNotFoundError, match=r"the nearest name is 'A'; if 'a' is meant as"):
        zarrdask.from_zarr(root, "a")
    with pytest.raises(NodeNotFoundError, match=r"the names there are 'A', 'b'; if 'w' is meant"):
        zarrdask.open(root, "w")


def test_a_member_with_the_name_of_a_mode_is_no_mode():
    for use in (lambda group: group["a"], lambda group: group.__delitem__("a")):
        with pytest.raises(NodeNotFoundError) as caught:
            use(zarrdask.create_group({}))
        assert "mode" not in str(caught.value)


def test_the_nearest_name_is_suggested(tmp_path):
    for place in (tmp_path / "data.zarr", {}):
        root = zarrdask.create_group(place)
        root.create_array("g/temperature", shape=2, dtype="i4")
        with pytest.raises(KeyError, match="the nearest name is 'temperature'"):
            _ = root["g/temprature"]
        with pytest.raises(NodeNotFoundError, match="the nearest name is 'temperature'"):
            zarrdask.open(place, "g/temprature")
        with pytest.raises(NodeNotFoundError) as caught:
            _ = root["nonsense"]
        assert "nearest name is" not in str(caught.value)
        assert "the only name there is 'g'" in str(caught.value)
        with pytest.raises(NodeNotFoundError, match="the nearest name is 'g'"):
            zarrdask.from_zarr(root, "G")
    with pytest.raises(NodeNotFoundError, match=r"the nearest name is 'data\.zarr'"):
        zarrdask.open(tmp_path / "dta.zarr")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_that_lacks_a_node_is_named(zarr_format):
    store = {}
    root = zarrdask.create_group(store, zarr_format=zarr_format)
    root.create_array("a", shape=2, dtype="i4")
    zarrdask.consolidate_metadata(store)
    stale = dict(store)
    root.create_array("late", shape=2, dtype="i4")
    document = ".zmetadata" if zarr_format == 2 else "zarr.json"
    store[document] = stale[document]
    with pytest.raises(NodeNotFoundError, match=r"out of date.*consolidated=False"):
        _ = zarrdask.open_group(store)["late"]
    with pytest.raises(NodeNotFoundError, match=r"the only name there is|names there are"):
        _ = zarrdask.open_group(store)["other"]
    assert list(zarrdask.open_group(store, consolidated=False)) == ["a", "late"]
