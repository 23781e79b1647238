"""The objects that references name: which may be read, and with which options."""

import json
import pickle

import fsspec
import pytest
from fsspec.implementations.dirfs import DirFileSystem

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.references import reference_store as module
from zarrdask.storage.references.reference_store import ReferenceStore, open_references
from zarrdask.storage.resolve import resolve


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
