"""Archives that are read."""

import os
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zarrdask
from tests.storage.zips import run_python, zipped
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.zip.store import ZipStore

DATA = np.arange(96 * 64, dtype="i4").reshape(96, 64)


class TestReading:
    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_threads_read_parts_of_shards(self, tmp_path, compression):
        folder = tmp_path / "a.zarr"
        zarrdask.create_array(folder, shape=DATA.shape, dtype="i4", chunks=4, shards=32)[...] = DATA
        with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
            for path in folder.rglob("*"):
                archive.write(path, path.relative_to(folder))
        z = zarrdask.open_array(tmp_path / "a.zip")

        def read(seed):
            random = np.random.default_rng(seed)
            for _ in range(20):
                i, j = random.integers(0, 80), random.integers(0, 50)
                np.testing.assert_array_equal(
                    read_region(chunks_of(z), (slice(i, i + 9, 1), slice(j, j + 7, 1)), threads=1),
                    DATA[i : i + 9, j : j + 7],
                )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(read, range(8)))
        np.testing.assert_array_equal(zarrdask.from_zarr(tmp_path / "a.zip").compute(), DATA)

    def test_one_that_is_changed_in_its_place_is_an_error(self, tmp_path):
        path = zipped(tmp_path / "a.zip", {"k": b"1" * 1000, "l": b"2"})
        store = ZipStore(path)
        assert store.get("l") == b"2"
        data = path.read_bytes()
        path.write_bytes(data.replace(b"1" * 1000, b"9" * 1000) + b"more")
        for read in (
            lambda: store.get("k"),
            lambda: store.get_range("k", 0, 4),
            lambda: list(store.get_many(["k"], Scratch())),
            lambda: list(store.get_ranges("k", [(0, 4)], Scratch())),
        ):
            with pytest.raises(StoreError, match="was changed"):
                read()

    def test_one_that_took_its_place_is_read(self, tmp_path):
        path = zipped(tmp_path / "a.zip", {"k": b"1"})
        store = ZipStore(path)
        assert store.get("k") == b"1"
        os.replace(zipped(tmp_path / "b.zip", {"k": b"22"}), path)
        assert store.get("k") == b"22"
        assert ZipStore(path).get("k") == b"22"

    def test_a_store_pickles_small(self, store):
        with store.batch():
            for n in range(1000):
                store.set(f"a/{n}", b"x")
        store.get("a/1")
        assert len(pickle.dumps(store)) < 500

    def test_fsspec_is_not_imported(self, store):
        store.set("k", b"1")
        code = (
            "import sys\nfrom zarrdask.storage.resolve import resolve\n"
            "store = resolve(sys.argv[1]); store.set('l', store.get('k'))\n"
            "print({'fsspec'} & set(sys.modules))"
        )
        done = run_python(code, store.path)
        assert (done.stdout, done.returncode) == (b"set()\n", 0), done.stderr
