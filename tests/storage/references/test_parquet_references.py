"""References in Parquet."""

import pickle
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import zarrdask
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.references import parquet_references
from zarrdask.storage.references import reference_store as module
from zarrdask.storage.references.reference_store import open_references

PARQUET = Path(__file__).parents[2] / "data" / "kerchunk_parquet"


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
    monkeypatch.setattr(parquet_references, "MAX_BYTES", 0)
    assert store.get("x/0.0") is not None
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "get_many", None)  # the file that was just read is not kept
        with pytest.raises(TypeError):
            store.get("x/0.0")
    for key in ("x/8.0", "x/0.1", "x/0", "x/-1.0", "x/0.0.0", "y/0.0", "0.0", "x/.zarray/0.0"):
        assert store.get(key) is None


def test_a_reference_may_be_to_the_beginning_of_an_object(bucket, tmp_path):
    shutil.copytree(PARQUET, tmp_path / "refs")
    path = tmp_path / "refs" / "x" / "refs.0.parq"
    table = parquet.read_table(path)
    number = table.column_names.index("offset")
    offsets = pa.array([0, *table["offset"].to_pylist()[1:]], table["offset"].type)
    parquet.write_table(table.set_column(number, "offset", offsets), path)
    size = table["size"][0].as_py()
    assert opened(tmp_path / "refs").get("x/0.0") == bucket.inner.get("data.bin")[:size]


def _rows(tmp_path, **columns):
    """Return references in which one file has other columns."""
    shutil.copytree(PARQUET, tmp_path / "refs")
    path = tmp_path / "refs" / "x" / "refs.0.parq"
    parquet.write_table(pa.table(columns), path, compression="zstd")
    return opened(tmp_path / "refs")


def test_a_file_with_more_rows_than_the_document_says_is_refused(bucket, tmp_path):
    n = 10**6
    numbers = np.zeros(n, "i8")
    store = _rows(tmp_path, path=["a"] * n, offset=numbers, size=numbers, raw=[b""] * n)
    with pytest.raises(StoreError, match=r"refs\.0\.parq: .*too large .*1000000 rows.*record_size"):
        store.get("x/0.0")


def test_a_file_that_is_large_when_it_is_decoded_is_refused(bucket, tmp_path):
    raw = [bytes(parquet_references.MAX_FILE_BYTES // 2), bytes(range(256)) * 2**19, b"x"]
    numbers = np.zeros(3, "i8")
    store = _rows(tmp_path, path=[None] * 3, offset=numbers, size=numbers, raw=raw)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(StoreError, match=r"refs\.0\.parq: .*too large .*bytes, in 3 rows"):
        store.get("x/0.0")
    assert pa.default_memory_pool().max_memory() <= before + 2**20


def test_a_text_of_many_rows_is_in_memory_once(bucket, tmp_path):
    numbers = np.arange(3)
    url = "s3://bucket/" + "a" * 10**5
    store = _rows(tmp_path, path=[url] * 3, offset=numbers, size=numbers + 1, raw=[None] * 3)
    before = pa.default_memory_pool().bytes_allocated()
    with pytest.raises(StoreError, match="missing"):
        store.get("x/1.0")
    kept = pa.default_memory_pool().bytes_allocated() - before
    assert 10**5 <= kept < 2 * 10**5


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
