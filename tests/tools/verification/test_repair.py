"""Chunks and shards that are damaged are replaced by those of another copy."""

import shutil
from pathlib import Path

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.tools.verification.damage import FORMATS, flip, key_of, make
from zarrdask.arrays.nodes.array import chunks_of


class TestRepair:
    def pair(self, tmp_path, zarr_format=3, **options):
        make(tmp_path / "a", zarr_format, **options)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        return str(tmp_path / "a"), str(tmp_path / "b")

    def damage(self, root, zarr_format=3):
        z = zarrdask.open_array(root, "g/a")
        for index, action in ((1, flip), (4, lambda data: data[:5]), (6, lambda data: b"")):
            path = Path(root) / key_of(z, index)
            path.write_bytes(action(path.read_bytes()))

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_only_the_bad_units_are_copied(self, tmp_path, zarr_format):
        a, b = self.pair(tmp_path, zarr_format)
        self.damage(a)
        before = {f: f.stat().st_mtime_ns for f in Path(a).rglob("*") if f.is_file()}
        report = zarrdask.verify(a)
        assert len(report.bad["g/a"]) == 3
        mended = report.repair(b)
        assert mended.ok
        assert not mended.problems
        assert mended == zarrdask.verify(a)
        assert zarrdask.compare(a, b).ok
        after = {f: f.stat().st_mtime_ns for f in Path(a).rglob("*") if f.is_file()}
        assert after.keys() == before.keys()
        assert sum(after[f] != before[f] for f in after) == 3

    def test_values_are_encoded_anew_for_other_codecs_and_grids(self, tmp_path):
        make(tmp_path / "a")
        other = zarrdask.create_group(tmp_path / "b", zarr_format=2)
        z = other.create_array("g/a", shape=40, dtype=">i4", chunks=7, compressors="blosc")
        z[:36] = np.arange(1, 37)
        a = str(tmp_path / "a")
        values = zarrdask.open_array(a, "g/a")[...]
        self.damage(a)
        assert zarrdask.verify(a).repair(tmp_path / "b").ok
        np.testing.assert_array_equal(zarrdask.open_array(a, "g/a")[...], values)

    @for_each("seed", range(25))
    def test_whatever_is_damaged_is_found_and_mended(self, seed):
        rng = np.random.default_rng(seed)
        zarr_format = (3, 2)[seed % 2]
        options = {"compressors": "crc32c" if zarr_format == 3 else {"id": "crc32"}}
        if seed % 4 == 0:
            options |= {"chunks": (2, 3), "shards": (4, 6)}
        stores = {}, {}
        for store in stores:
            z = zarrdask.create_array(
                store,
                **{"shape": (9, 11), "dtype": "i2", "chunks": (4, 5), "zarr_format": zarr_format}
                | options,
            )
            z[...] = np.arange(1, 100).reshape(9, 11)
        store, other = stores
        units = {chunks_of(z).key(index): index for index in z.metadata.grid.indices()}
        damaged = {*rng.choice(sorted(units), 3)}
        for key in damaged:
            value = bytearray(store[key])
            if rng.random() < 0.3:
                store[key] = bytes(value[: rng.integers(len(value))])
            else:
                value[rng.integers(len(value))] ^= int(rng.integers(1, 256))
                store[key] = bytes(value)
        report = zarrdask.verify(store, scheduler="sync")
        assert {problem.key for problem in report.failures} == damaged
        assert sorted(report.bad[""]) == sorted(units[key] for key in damaged)
        assert report.repair(other, scheduler="sync").ok
        assert store == other

    def test_the_other_one_must_be_there_even_if_nothing_is_bad(self, tmp_path):
        a, _ = self.pair(tmp_path)
        with pytest.raises(zarrdask.errors.NodeNotFoundError, match="gone"):
            zarrdask.verify(a).repair(tmp_path / "gone")

    def test_what_is_bad_in_both_stays(self, tmp_path):
        a, b = self.pair(tmp_path)
        self.damage(a)
        (Path(b) / "g/a/c/4").write_bytes(b"??")
        damaged = (Path(a) / "g/a/c/4").read_bytes()
        mended = zarrdask.verify(a).repair(b)
        assert mended.bad == {"g/a": ((4,),)}
        assert (Path(a) / "g/a/c/4").read_bytes() == damaged

    def test_missing_units_are_not_copied_unless_asked(self, tmp_path):
        a, b = self.pair(tmp_path)
        self.damage(a)
        (Path(a) / "g/a/c/2").unlink()
        (Path(b) / "g/a/c/4").unlink()
        report = zarrdask.verify(a)
        left = report.repair(b)
        assert left.bad == {"g/a": ((4,),)}
        assert left.arrays[0].missing == 2
        whole = zarrdask.verify(a).repair(b, missing=True)
        assert whole.ok
        assert whole == zarrdask.verify(a)
        assert zarrdask.compare(a, b).ok
        assert not (Path(a) / "g/a/c/4").exists()

    def test_chunks_in_shards_too(self, tmp_path):
        z = zarrdask.create_array(tmp_path / "a", shape=8, dtype="u1", chunks=2, shards=4)
        z[...] = 3
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        path = tmp_path / "a/c/1"
        path.write_bytes(flip(path.read_bytes()))
        assert zarrdask.verify(tmp_path / "a").repair(tmp_path / "b").ok
        assert path.read_bytes() == (tmp_path / "b/c/1").read_bytes()

    @pytest.mark.parametrize(
        "options", [{"shape": 41}, {"dtype": "u4"}, {"fill_value": 3}], ids=str
    )
    def test_another_array_is_refused_and_nothing_changed(self, tmp_path, options):
        a, _ = self.pair(tmp_path)
        self.damage(a)
        same = {"shape": 40, "dtype": "i4", "chunks": 4}
        zarrdask.create_group(tmp_path / "c").create_array("g/a", **(same | options))
        report = zarrdask.verify(a)
        with pytest.raises(zarrdask.errors.MetadataError, match="can't be repaired from"):
            report.repair(tmp_path / "c")
        assert zarrdask.verify(a) == report

    def test_an_array_that_is_not_there(self, tmp_path):
        a, _ = self.pair(tmp_path)
        self.damage(a)
        zarrdask.create_group(tmp_path / "c")
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.verify(a).repair(tmp_path / "c")

    def test_a_report_that_was_made_by_hand_has_no_store(self):
        from zarrdask.tools.verification.verification_report import VerifyReport

        with pytest.raises(zarrdask.errors.MetadataError, match="verify the node again"):
            VerifyReport("here", 0, (), ()).repair({})


@pytest.mark.parametrize("chunks", [{"chunks": 4}, {"chunks": 6}, {"chunks": 2, "shards": 4}])
def test_chunks_that_only_the_backup_stores_are_reported(chunks):
    store, backup = {}, {}
    z = zarrdask.create_array(store, "a", shape=16, dtype="i4", chunks=4)
    other = zarrdask.create_array(backup, "a", shape=16, dtype="i4", **chunks)
    z[:4] = other[:12] = 7
    with dask.config.set({"zarrdask.write-empty-chunks": True}):
        other[12:] = 0  # as a missing chunk of `z` reads
    report = zarrdask.verify(store).repair(backup, dry_run=True)
    assert [(p.kind, p.index) for p in report.problems] == [("absent", (1,)), ("absent", (2,))]
    repaired = report.repair(backup)
    assert (repaired.ok, repaired.problems) == (False, report.problems)
    assert repaired.repair(backup, missing=True).ok
    assert zarrdask.compare(store, backup).ok


@pytest.mark.parametrize("backup", [{"chunks": 2, "shards": 4}, {"chunks": 3}, {"chunks": 1}])
def test_a_chunk_that_is_missing_in_a_shard_is_copied(backup):
    z = zarrdask.create_array({}, shape=(7, 3), dtype="i4", chunks=(2, 3), shards=(4, 3))
    options = {name: (length, 3) for name, length in backup.items()}
    other = zarrdask.create_array({}, shape=(7, 3), dtype="i4", **options)
    z[:2], other[:4], other[6:] = 7, 7, 5
    z[4:6] = 9  # only the shard stores this, so it stays
    report = zarrdask.verify(z).repair(other)
    found = {
        (p.kind, p.index, "of this shard is stored only in" in p.message) for p in report.problems
    }
    assert found == {("absent", (0, 0), True), ("absent", (1, 0), True)}
    assert report.repair(other, missing=True).ok
    assert z[:, 0].tolist() == [7, 7, 7, 7, 9, 9, 5]


def test_a_shard_whose_backup_is_damaged_stays_as_it_is():
    store, backup = {}, {}
    z, other = (
        zarrdask.create_array(each, shape=4, dtype="i4", chunks=2, shards=4, compressors="crc32c")
        for each in (store, backup)
    )
    z[:2] = other[...] = 7
    backup["c/0"] = flip(backup["c/0"])
    before = store["c/0"]
    zarrdask.verify(z).repair(other, missing=True)
    assert store["c/0"] == before
