"""References of kerchunk: keys that are ranges of other files."""

import base64
import json
import pickle

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.errors import MetadataError, StoreError, UnsupportedError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.references import reference_store as module
from zarrdask.storage.references.reference_store import ReferenceStore, open_references
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


def test_a_document_of_any_name_is_read(tmp_path):
    (tmp_path / "references").write_text('{"a": "value"}')
    assert open_references({"fo": tmp_path / "references"}).get("a") == b"value"


def test_workers_with_another_working_directory_find_the_document(tmp_path, monkeypatch):
    (tmp_path / "references.json").write_text(json.dumps({"a": "7"}))
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(open_references({"fo": "references.json"}))
    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path / "worker")
    assert pickle.loads(pickled).get("a") == b"7"
