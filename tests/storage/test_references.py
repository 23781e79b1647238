"""References of kerchunk: keys that are ranges of other files."""

import base64
import json
import pickle
import shutil
import sys
import threading
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import zarrdask
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.errors import MetadataError, StoreError, UnsupportedError
from zarrdask.storage import parquet_references
from zarrdask.storage import references as module
from zarrdask.storage.base import Scratch
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.references import ReferenceStore, open_references
from zarrdask.storage.resolve import resolve
from zarrdask.testing import VALUES, ReadOnlyStoreContract


@pytest.fixture
def trusted(setting):
    setting({"zarrdask.local-references": True})


class TestContract(ReadOnlyStoreContract):
    @pytest.fixture(params=["inline", "parts"])
    def store(self, tmp_path, trusted, request):
        if request.param == "inline":
            values = {k: f"base64:{base64.b64encode(v).decode()}" for k, v in VALUES.items()}
            return ReferenceStore(values)
        path, refs, data = tmp_path / "all.bin", {}, b"header"
        for key, value in VALUES.items():
            refs[key] = ["{{u}}", len(data), len(value)]
            data += value
        path.write_bytes(data)
        return ReferenceStore({"version": 1, "templates": {"u": str(path)}, "refs": refs})


def array(at="s3://bucket/data.bin"):
    """Return references to the chunks of an array, and the object that holds them."""
    memory = {}
    z = zarrdask.create_array(memory, shape=(8, 4), dtype="f4", chunks=(1, 4), compressors=[])
    z[...] = np.arange(32, dtype="f4").reshape(8, 4)
    refs = {"zarr.json": json.loads(memory.pop("zarr.json"))}
    data = b"header"
    for key, value in memory.items():
        refs[key] = [at, len(data), len(value)]
        data += value
    return refs, data


def test_a_location_without_secrets():
    url = "https://user:secret@host/a.json"
    assert "secret" not in ReferenceStore({}, url=url).url
    assert "host/a.json" in ReferenceStore({}, url=url).url


def test_ranges_of_one_object_are_requested_together(monkeypatch):
    refs, data = array()
    bucket = LatencyStore()
    bucket.inner.set("data.bin", data)
    opened = []
    monkeypatch.setattr(module, "open_remote", lambda *args: opened.append(args) or bucket)
    z = zarrdask.open_array(ReferenceStore(refs, options={"anon": True}, prefix="s3://"))
    np.testing.assert_array_equal(z[...].ravel(), np.arange(32))
    assert zarrdask.from_zarr(z).sum().compute() == 496
    assert opened[0] == ("s3://bucket", {"anon": True})
    assert set(bucket.calls) == {"get_partial_values"}
    assert len(bucket.calls) <= 4


@pytest.mark.parametrize("kind", ["dict", "file"])
def test_the_options_of_fsspec_are_understood(tmp_path, trusted, kind):
    refs, data = array(str(tmp_path / "data.bin"))
    (tmp_path / "data.bin").write_bytes(data)
    (tmp_path / "refs.json").write_text(json.dumps(refs))
    options = {"fo": refs if kind == "dict" else str(tmp_path / "refs.json")}
    x = zarrdask.from_zarr("reference://", storage_options=options)
    assert x.sum().compute(scheduler="processes", num_workers=1) == 496
    store = zarrdask.open_array("reference://", storage_options=options).store
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.get("c/0/0") == store.get("c/0/0") is not None
    if kind == "file":
        assert len(pickle.dumps(store)) < 500


def test_local_files_are_read_only_if_the_user_allows_it(tmp_path, setting):
    (tmp_path / "secret").write_bytes(b"secret")
    for url in (str(tmp_path / "secret"), f"file://{tmp_path}/secret"):
        store = ReferenceStore({"a": [url], "b": "plain"})
        assert store.get("b") == b"plain"
        with pytest.raises(StoreError, match=r"zarrdask\.local-references"):
            store.get("a")
        assert ReferenceStore({"a": [url]}, local=True).get("a") == b"secret"
        setting({"zarrdask.local-references": True})
        assert ReferenceStore({"a": [url]}).get("a") == b"secret"
        setting({"zarrdask.local-references": False})
    for url in (
        "simplecache::file:///etc/passwd",
        "sftp://host/x",
        "file::s3://b/x",
        "s3://b::file/x",
    ):
        with pytest.raises(StoreError, match="scheme"):
            ReferenceStore({"a": [url]}).get("a")


def test_an_object_that_is_missing_or_too_short_is_no_fill_value(tmp_path, trusted):
    (tmp_path / "short").write_bytes(b"123")
    refs = {"a": [str(tmp_path / "short"), 1, 5], "b": [str(tmp_path / "none"), 0, 2]}
    for key in refs:
        with pytest.raises(StoreError, match="missing, or too short"):
            [*ReferenceStore(refs).get_many([key], Scratch())]


@for_each(
    ("refs", "error"),
    [
        ({"a": ["s3://b/x", -1, 2]}, MetadataError),
        ({"a": 7}, MetadataError),
        ({"version": 1, "refs": {}, "gen": [{"key": "x"}]}, UnsupportedError),
        ({"version": 1, "refs": {}, "templates": {"f": "{{c}}"}}, UnsupportedError),
        ({"version": 1, "refs": []}, MetadataError),
        ([1], MetadataError),
        ({"a": "base64:abc"}, MetadataError),
        ({"a": "\ud800"}, MetadataError),
    ],
)
def test_what_is_malformed_is_an_error(refs, error):
    with pytest.raises(error):
        ReferenceStore(refs).get("a")


@pytest.mark.parametrize("text", ["[1]", "[" * 100_000, "{"])
def test_a_document_that_holds_no_references_is_an_error(tmp_path, text):
    (tmp_path / "refs.json").write_text(text)
    with pytest.raises(MetadataError):
        open_references({"fo": str(tmp_path / "refs.json")})


def test_one_document_with_other_options_is_another_store_in_tasks(tmp_path, setting):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "refs.json").write_text(json.dumps({"a": [str(tmp_path / "secret")]}))
    options = {"fo": str(tmp_path / "refs.json"), "remote_options": {"token": "old"}}
    options["remote_prefix"] = "s3://bucket"
    setting({"zarrdask.local-references": True})
    trusted = pickle.loads(pickle.dumps(open_references(options)))
    assert trusted.get("a") == b"secret"
    setting({"zarrdask.local-references": False})
    again = pickle.loads(pickle.dumps(open_references(options)))
    assert again != trusted
    with pytest.raises(StoreError, match=r"zarrdask\.local-references"):
        again.get("a")
    renewed = open_references({**options, "remote_options": {"token": "new"}})
    assert pickle.loads(pickle.dumps(renewed)) == renewed != again


def test_a_document_that_was_changed_is_not_read_by_tasks(tmp_path):
    path = tmp_path / "refs.json"
    path.write_text('{"a": "old"}')
    task = pickle.dumps(open_references({"fo": str(path)}))
    path.write_text('{"a": "new"}')
    with pytest.raises(StoreError, match="changed"):
        pickle.loads(task)


# --------------------------------------------------------------------------------------------
# Parquet

PARQUET = Path(__file__).parents[1] / "data" / "kerchunk_parquet"


@pytest.fixture
def bucket(monkeypatch):
    """Return the bucket that all references are to."""
    bucket = LatencyStore()
    bucket.inner.set("data.bin", b"header" + np.arange(32, dtype="f4").tobytes())
    bucket.inner.set("scalar.bin", b"scalar")
    monkeypatch.setattr(module, "open_remote", lambda *_: bucket)
    return bucket


def opened(folder=PARQUET):
    return open_references({"fo": str(folder), "remote_protocol": "s3", "lazy": True})


def test_files_of_kerchunk_in_parquet_are_read(bucket):
    expected = np.arange(32, dtype="f4").reshape(8, 4)
    expected[5] = -1
    group = zarrdask.open_group("reference://", storage_options={"fo": str(PARQUET)})
    np.testing.assert_array_equal(group["x"][...], expected)
    assert set(bucket.calls) == {"get_partial_values"}
    assert len(bucket.calls) <= 2
    assert [*group["g/inline"][...]] == [1, 2, ord("a")]
    assert group["s"][()] == b"scalar"
    assert (sorted(group), sorted(group["g"])) == (["g", "s", "x"], ["inline"])
    assert group["x"].nchunks_stored() == 7
    x = zarrdask.from_zarr(group["x"])
    assert x.sum().compute() == expected.sum()


def test_only_the_files_that_are_needed_are_read_and_few_are_kept(bucket, tmp_path, monkeypatch):
    shutil.copytree(PARQUET, tmp_path / "refs")
    (tmp_path / "refs" / "x" / "refs.1.parq").write_bytes(b"damaged")
    (tmp_path / "refs" / "x" / "refs.2.parq").unlink()
    store = opened(tmp_path / "refs")
    z = zarrdask.open_array(store, "x")
    np.testing.assert_array_equal(z[:3].ravel(), np.arange(12))
    assert z[7, 0] == -1  # as all of the file's chunks
    with pytest.raises(StoreError, match=r"x/refs\.1\.parq: .*damaged"):
        z[3]
    monkeypatch.setattr(parquet_references, "_MAX_BYTES", 0)
    assert store.get("x/0.0") is not None
    assert not store._entries._files
    for key in ("x/8.0", "x/0.1", "x/0", "x/-1.0", "x/0.0.0", "y/0.0", "0.0", "x/.zarray/0.0"):
        assert store.get(key) is None


def test_a_file_is_read_while_another_one_is_on_its_way(bucket, monkeypatch):
    store, get_many, ended = opened(), LocalStore.get_many, []

    def slow(*arguments):
        if not ended:
            ended.append(False)
            thread = threading.Thread(target=store.get, args=("s/0",), daemon=True)
            thread.start()
            thread.join(10)
            ended[0] = not thread.is_alive()
        return get_many(*arguments)

    monkeypatch.setattr(LocalStore, "get_many", slow)
    assert store.get("x/0.0") is not None
    assert ended == [True]


def test_tasks_carry_where_the_files_are(bucket):
    store = opened()
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.get("s/0") == b"scalar"
    assert len(pickle.dumps(store)) < 500


@for_each(
    "document",
    [
        '{"metadata": {}, "record_size": 0}',
        '{"metadata": []}',
        '{"metadata": {"x/.zarray": {"shape": [4], "chunks": [0]}}, "record_size": 3}',
        '{"metadata": {"../x/.zarray": {"shape": [4], "chunks": [1]}}, "record_size": 3}',
        "[1]",
        "{",
    ],
)
def test_a_malformed_document_of_parquet_is_an_error(tmp_path, document):
    (tmp_path / ".zmetadata").write_text(document)
    with pytest.raises(MetadataError, match="not a document of references in Parquet"):
        opened(tmp_path)


def test_the_error_without_pyarrow_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match=r"zarrdask\[parquet\]"):
        opened()


def test_a_directory_without_references_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="no reference document"):
        opened(tmp_path)


def test_a_document_of_any_name_is_read(tmp_path):
    (tmp_path / "references").write_text('{"a": "value"}')
    assert open_references({"fo": tmp_path / "references"}).get("a") == b"value"


# --------------------------------------------------------------------------------------------
# All ways to open a document


@pytest.fixture
def stolen(tmp_path):
    """Return a document with a reference to a local file, and how this may be opened."""
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "refs.json").write_text(json.dumps({"a": [str(tmp_path / "secret")]}))
    return str(tmp_path / "refs.json")


@for_each(
    ("url", "options"),
    [
        ("reference://", {"fo": "{}"}),
        ("reference://", {"fo": "{}", "max_gap": 0}),
        ("reference://", {"fo": "{}", "lazy": False, "cache_size": 1}),
        ("reference::{}", {}),
        ("reference::file://{}", {}),
        ("reference://::{}", {}),
        ("reference::file://{}", {"file": {"auto_mkdir": False}}),
        ("reference::{}", {"reference": {"max_gap": 0}}),
    ],
)
def test_no_way_to_open_a_document_reads_local_files(stolen, url, options):
    options = {k: v.format(stolen) if k == "fo" else v for k, v in options.items()}
    store = resolve(url.format(stolen), options)
    with pytest.raises(StoreError, match=r"zarrdask\.local-references"):
        store.get("a")


@for_each(
    ("url", "options"),
    [
        ("reference://", {"fo": "{}", "simple_templates": False}),
        ("reference://", {"fo": "{}", "fs": {}}),
        ("reference://", {}),
        ("reference://a", {"fo": "{}"}),
        ("simplecache::reference://", {"reference": {"fo": "{}"}}),
        ("simplecache::reference::{}", {}),
        ("blockcache::simplecache::reference::{}", {}),
        ("dir::reference::{}", {"dir": {"path": ""}}),
        ("simplecache://", {"target_protocol": "reference", "target_options": {"fo": "{}"}}),
    ],
)
def test_other_ways_to_open_a_document_are_errors(stolen, url, options):
    text = json.dumps(options).replace('"{}"', json.dumps(stolen))
    with pytest.raises(StoreError):
        resolve(url.format(stolen), json.loads(text)).get("a")


def test_a_file_system_of_references_is_read_by_the_store_of_references(stolen, setting):
    fs = fsspec.filesystem("reference", fo=stolen, skip_instance_cache=True)
    for mapping in (fsspec.FSMap("", fs), fsspec.FSMap("", DirFileSystem("x", fs))):
        with pytest.raises(StoreError, match="references"):
            resolve(mapping).get("a")
    setting({"zarrdask.local-references": True})
    assert resolve(fsspec.FSMap("", fs)).get("a") == b"secret"


# --------------------------------------------------------------------------------------------
# Options, which may contain credentials

HEADERS = {"headers": {"Authorization": "Bearer secret"}}


@pytest.fixture
def servers(monkeypatch):
    """Return the options with which each server was opened, by its URL."""
    options = {}

    def open_remote(url, storage_options):
        options.setdefault(url, []).append(storage_options)
        return MemoryStore({"x": b"x", "mine/x": b"mine", "mine/../x": b"x"})

    monkeypatch.setattr(module, "open_remote", open_remote)
    return options


@for_each(
    ("prefix", "url", "receives"),
    [
        ("https://host", "https://host/x", True),
        ("https://host/", "https://host/x", True),
        ("https://host/mine", "https://host/mine/x", True),
        ("https://host/mine", "https://host/x", False),
        ("https://host/mine", "https://host/mine/../x", False),
        ("https://host/x", "https://host/x", False),
        ("https://host", "http://host/x", False),
        ("https://host", "https://host:444/x", False),
        ("https://host", "https://host.evil.example/x", False),
        ("https://host", "https://hosts/x", False),
        ("https://host", "https://host@evil.example/x", False),
        ("https://host", "https://user@host/x", False),
        ("s3://", "s3://any/x", True),
        ("s3://", "https://s3/x", False),
        ("s3://mine", "s3://other/x", False),
    ],
)
def test_options_are_only_for_the_servers_that_the_user_names(servers, prefix, url, receives):
    servers.clear()
    ReferenceStore({"a": [url]}, options=HEADERS, prefix=prefix).get("a")
    ((options,),) = servers.values()
    assert options == (HEADERS if receives else None)


def test_options_are_for_all_buckets_of_the_protocol(servers):
    options = {"fo": {"a": ["b1/x"], "b": ["https://host/x"]}, "remote_protocol": "s3"}
    store = open_references({**options, "remote_options": {"secret": "x"}})
    assert [*store.get_many(["a", "b"], Scratch())] == [b"x", b"x"]
    assert servers == {"s3://b1": [{"secret": "x"}], "https://host": [None]}
    assert pickle.loads(pickle.dumps(store)) == store


@for_each(
    "prefix", [None, "", "host", "https://", "https:///x", "https://a b", "file:///x", "az://"]
)
def test_options_without_a_server_are_an_error(prefix):
    with pytest.raises(StoreError, match="remote_prefix"):
        ReferenceStore({}, options=HEADERS, prefix=prefix)


@for_each(
    "place", ["evil.example#", "evil.example?", "evil.example\\@host", "", "a b", "\uff48ost"]
)
def test_a_server_of_an_unusual_spelling_is_an_error(servers, place):
    with pytest.raises(StoreError, match="not followed"):
        ReferenceStore({"a": [f"https://{place}/x"]}).get("a")
