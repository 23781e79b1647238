"""A.1: stores and keys of v2."""

import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import dask
import fsspec
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.documents import dump, stored, v2
from tests.storage.unlisted import UnlistedStore

VALUES = np.arange(16, dtype="<u2").reshape(4, 4)
CHUNKS = {
    f"{i}{{}}{j}": VALUES[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes()
    for i in range(2)
    for j in range(2)
}
OPTIONS = {"shape": (4, 4), "chunks": (2, 2), "dtype": "<u2", "zarr_format": 2, "compressors": []}
GROUP = dump({"zarr_format": 2})
NODES = {
    ".zgroup": GROUP,
    "foo/.zgroup": GROUP,
    "foo/bar/.zarray": dump(v2((4, 4), (2, 2))),
    "foo/bar/.zattrs": b'{"unit": "K"}',
    **{f"foo/bar/{key.format('.')}": data for key, data in CHUNKS.items()},
}


def files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def fill(root, values):
    for key, data in values.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)


def test_a1_values_are_any_bytes_under_ascii_keys():
    store, every = {}, bytes(range(256))
    z = zarrdask.create_array(
        store, "foo/bar", shape=(256,), dtype="|u1", chunks=-1, zarr_format=2, compressors=[]
    )
    z[...] = np.frombuffer(every, "u1")
    assert store["foo/bar/0"] == every
    assert z[...].tobytes() == every
    assert all(type(key) is str and key.isascii() for key in store)


def test_a1_reading_writing_and_deleting_are_all_that_is_asked_of_a_store():
    class Plain(UnlistedStore):
        def list_dir(self, prefix):
            pytest.fail("listing is not one of the three")

    store = Plain()
    z = zarrdask.create_array(store, "foo/bar", **OPTIONS)
    z[...] = VALUES
    assert zarrdask.open_array(store, "foo/bar")[...].tolist() == VALUES.tolist()
    z[:2, :2] = 0
    chunks = {f"foo/bar/{key}" for key in (".zarray", "0.1", "1.0", "1.1")}
    assert set(store.values) == {".zgroup", "foo/.zgroup", *chunks}


def test_a1_a_path_that_is_not_ascii_is_written_and_read_unless_strict():
    # The text has ASCII keys; all software that writes v2 writes others, too.
    store = {}
    with dask.config.set({"zarrdask.strict": True}):
        with refused("A-1"):
            zarrdask.create_array(store, "größe", **OPTIONS)
        with refused("A-1"):
            zarrdask.create_group(store, "größe/x", zarr_format=2)
    assert store == {}
    zarrdask.create_array(store, "größe", **OPTIONS)
    assert "größe/.zarray" in store
    assert zarrdask.open_array(store, "größe").shape == OPTIONS["shape"]
    with refused("A-1"):
        zarrdask.open_array(store, "größe", strict=True)


def test_a2_a_directory_store_has_a_file_for_each_key_and_chunks_side_by_side(tmp_path):
    root = zarrdask.create_group(tmp_path, zarr_format=2)
    z = root.create_array("foo/bar", **{k: v for k, v in OPTIONS.items() if k != "zarr_format"})
    z.attrs["unit"] = "K"
    z[...] = VALUES
    assert set(files(tmp_path)) == set(NODES)
    chunks = {path.name for path in (tmp_path / "foo" / "bar").iterdir()}
    assert chunks == {".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"}
    assert {key: files(tmp_path)[f"foo/bar/{key}"] for key in chunks if key[0] != "."} == {
        key.format("."): data for key, data in CHUNKS.items()
    }


def test_a2_a_directory_store_is_read(tmp_path):
    fill(tmp_path, NODES)
    z = zarrdask.open_array(tmp_path, "foo/bar")
    assert z[...].tolist() == VALUES.tolist()
    assert dict(z.attrs) == {"unit": "K"}


def test_a3_a_nested_directory_store_has_slashes_between_indices(tmp_path):
    zarrdask.create_array(tmp_path, separator="/", **OPTIONS)[...] = VALUES
    assert set(files(tmp_path)) == {".zarray", "0/0", "0/1", "1/0", "1/1"}
    assert (tmp_path / "1" / "0").read_bytes() == CHUNKS["1{}0"]


def test_a3_a_nested_directory_store_is_read(tmp_path):
    document = v2((4, 4), (2, 2), dimension_separator="/")
    fill(tmp_path, {".zarray": dump(document)})
    fill(tmp_path, {key.format("/"): data for key, data in CHUNKS.items()})
    assert zarrdask.open_array(tmp_path)[...].tolist() == VALUES.tolist()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a4_members_of_a_zip_file_are_the_keys(tmp_path, compression):
    place = tmp_path / "store.zip"
    with zipfile.ZipFile(place, "w", compression) as archive:
        for key, data in NODES.items():
            archive.writestr(key, data)
    root = zarrdask.open_group(place)
    assert [path for path, _ in root.walk()] == ["foo", "foo/bar"]
    assert root["foo/bar"][...].tolist() == VALUES.tolist()
    x = zarrdask.from_zarr(place, "foo/bar", chunks="stored")
    assert x.compute(scheduler="sync").tolist() == VALUES.tolist()


def test_a4_a_directory_store_is_one_zip_file_when_it_is_zipped(tmp_path):
    zarrdask.create_array(tmp_path / "in", "foo/bar", **OPTIONS)[...] = VALUES
    place = tmp_path / "store.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for key, data in files(tmp_path / "in").items():
            archive.writestr(key, data)
    assert zarrdask.open_array(place, "foo/bar")[...].tolist() == VALUES.tolist()


def test_a5_keys_of_an_object_store_are_relative_to_bucket_and_prefix():
    bucket = uuid4().hex
    zarrdask.create_array(f"memory://{bucket}/some/prefix", "foo/bar", **OPTIONS)[...] = VALUES
    fs = fsspec.filesystem("memory")
    keys = {name.partition(f"{bucket}/some/prefix/")[2] for name in fs.find(f"/{bucket}")}
    assert keys == set(NODES) - {"foo/bar/.zattrs"}
    assert zarrdask.open_array(f"memory://{bucket}/some/prefix/foo", "bar")[3, 3] == 15


class NoIndex(SimpleHTTPRequestHandler):
    """A web server for files, which lists nothing."""

    def list_directory(self, path):
        self.send_error(404)

    def log_message(self, *args):
        """Keep quiet."""


@pytest.fixture
def url(tmp_path):
    fill(tmp_path, NODES)

    def handler(*args):
        return NoIndex(*args, directory=tmp_path)

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        httpd.daemon_threads = True
        httpd.block_on_close = False
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a5_an_http_store_is_read_by_key_relative_to_the_root_url(url):
    for place, path in ((url, "foo/bar"), (f"{url}/foo", "bar"), (f"{url}/foo/bar", None)):
        z = zarrdask.open_array(place, path)
        assert z[...].tolist() == VALUES.tolist()
        assert dict(z.attrs) == {"unit": "K"}
    assert zarrdask.open_group(url)["foo"]["bar"][2, 1] == 9


def test_a5_an_http_store_need_not_list_nor_be_written(url, tmp_path):
    with pytest.raises(zarrdask.errors.UnsupportedError, match="listed"):
        list(zarrdask.open_group(url))
    before = files(tmp_path)
    with pytest.raises(zarrdask.errors.StoreError):
        zarrdask.open_array(url, "foo/bar", mode="r+")[...] = 0
    assert files(tmp_path) == before


def test_a6_documents_stand_at_the_prefix_of_their_path():
    store = {}
    root = zarrdask.create_group(store, attributes={"n": 0}, zarr_format=2)
    root.create_group("foo", attributes={"n": 1})
    root.create_array("foo/bar", shape=2, dtype="i4", attributes={"n": 2})
    assert set(store) == {
        ".zgroup",
        ".zattrs",
        "foo/.zgroup",
        "foo/.zattrs",
        "foo/bar/.zarray",
        "foo/bar/.zattrs",
    }
    at_root = {}
    zarrdask.create_array(at_root, shape=2, dtype="i4", attributes={"n": 3}, zarr_format=2)
    assert set(at_root) == {".zarray", ".zattrs"}


def test_a6_documents_are_read_there_and_nowhere_else():
    store = {f"foo/bar/{key}": value for key, value in stored(v2(), attributes={"a": 1}).items()}
    assert dict(zarrdask.open(store, "foo/bar").attrs) == {"a": 1}
    for path in ("", "foo", "bar", "foo/bar/baz"):
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open(store, path)
