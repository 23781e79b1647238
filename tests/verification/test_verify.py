"""`verify` of one store: damage of each kind is found and named, and repair mends it."""

import json
import os
import shutil
import struct
from pathlib import Path

import dask.config
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, dump, v3
from tests.drafts import hierarchy, older
from tests.storage.faults import Faults, FaultyStore
from tests.test_samples import READABLE, SAMPLES
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MemoryStore
from zarrdask.verification.check import check_unit

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")
EMPTY = 2**64 - 1


def kinds(report):
    return [problem.kind for problem in report.problems]


def told(report):
    return [(problem.kind, problem.path, problem.key) for problem in report.problems]


def make(place, zarr_format=3, **options):
    """Store an array of ten chunks at ``g/a``, of which the last is not stored."""
    options = {"compressors": "gzip"} | options
    root = zarrdask.create_group(place, zarr_format=zarr_format)
    z = root.create_array("g/a", shape=40, dtype="i4", chunks=4, **options)
    z[:36] = np.arange(1, 37)
    return z


def key_of(z, *index):
    key = z.stored.key(index)
    return z.store.real(key) if hasattr(z.store, "real") else key


def change(store, key, action):
    """Change a value in a dict."""
    store[key] = action(store[key])


def flip(data):
    """Change a byte of the checksum at the end of a gzip member."""
    return data[:-6] + bytes([data[-6] ^ 255]) + data[-5:]


class TestHealthy:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_all_is_counted(self, place, zarr_format):
        make(place, zarr_format)
        report = zarrdask.verify(place)
        assert report.ok
        assert not report.problems
        assert report.groups == 2
        (found,) = report.arrays
        assert (found.path, found.units, found.stored, found.missing) == ("g/a", 10, 9, 1)
        assert found.fill_only == 0
        assert found.size > 9

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_missing_and_fill_only_units_are_listed_on_request(self, zarr_format, setting):
        store = {}
        z = make(store, zarr_format)
        setting({"zarrdask.write-empty-chunks": True})
        z[4:8] = 0
        quiet, report = zarrdask.verify(store), zarrdask.verify(store, every=True)
        assert quiet.ok
        assert report.ok
        assert quiet.arrays == report.arrays
        assert report.arrays[0].fill_only == 1
        assert not quiet.problems
        assert told(report) == [
            ("fill-only", "g/a", key_of(z, 1)),
            ("missing", "g/a", key_of(z, 9)),
        ]

    def test_an_array_by_itself(self):
        z = make({})
        report = zarrdask.verify(z)
        assert report.ok
        assert [found.path for found in report.arrays] == ["g/a"]

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
    def test_arrays_without_axes_or_elements(self, shape):
        z = zarrdask.create_array({}, shape=shape, dtype="f8", fill_value=1)
        z[...] = 7
        report = zarrdask.verify(z.store)
        assert report.ok
        assert report.arrays[0].stored == (shape == ())
        assert zarrdask.verify(z.store, every=True).ok

    def test_a_rectilinear_grid_in_which_chunks_hang_over(self):
        z = zarrdask.create_array({}, shape=(5, 5), dtype="u2", chunks=((1, 4), (2, 2, 2)))
        z[...] = 3
        report = zarrdask.verify(z)
        assert report.ok
        assert (report.arrays[0].stored, report.arrays[0].units) == (6, 6)

    def test_chunks_in_shards_in_shards_are_counted(self):
        z = zarrdask.create_array({}, shape=(8, 8), dtype="u2", chunks=(2, 2), shards=(4, 8))
        z[:4, :4] = 3
        report = zarrdask.verify(z)
        assert (report.arrays[0].stored, report.arrays[0].chunks) == (1, 4)
        assert report.arrays[0].size == len(z.store.get("c/0/0"))

    @pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
    def test_on_each_scheduler(self, tmp_path, scheduler):
        make(tmp_path / "a")
        os.truncate(tmp_path / "a/g/a/c/3", 7)
        report = zarrdask.verify(tmp_path / "a", scheduler=scheduler)
        assert told(report) == [("truncated", "g/a", "g/a/c/3")]

    def test_on_a_cluster_of_two_processes(self, tmp_path, cluster_address):
        make(tmp_path / "a")
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        os.truncate(tmp_path / "a/g/a/c/3", 7)
        report = zarrdask.verify(tmp_path / "a", scheduler=cluster_address)
        assert told(report) == [("truncated", "g/a", "g/a/c/3")]
        assert report.repair(tmp_path / "b", scheduler=cluster_address).ok

    def test_a_store_of_one_process_is_refused_on_a_cluster(self, cluster_address):
        from distributed import Client

        with (
            Client(cluster_address),
            pytest.raises(zarrdask.errors.StoreError, match="memory of one process"),
        ):
            zarrdask.verify(make({}))

    def test_a_store_of_one_process_is_refused_by_other_processes(self):
        report = zarrdask.verify(z := make({}))
        z.store.set("g/a/c/2", b"")
        damaged = zarrdask.verify(z)
        for action in (
            lambda: zarrdask.verify(z, scheduler="processes"),
            lambda: zarrdask.compare(z, z, scheduler="processes"),
            lambda: damaged.repair(make({}), scheduler="processes"),
        ):
            with pytest.raises(zarrdask.errors.StoreError, match="memory of one process"):
                action()
        assert report.ok

    def test_many_arrays(self):
        root = zarrdask.create_group({})
        for number in range(150):
            root.create_array(f"{number:03}", shape=2, dtype="u1", chunks=1)[...] = 1
        root.store.set("077/c/1", b"")
        report = zarrdask.verify(root)
        assert len(report.arrays) == 150
        assert told(report) == [("truncated", "077", "077/c/1")]
        assert "... and 130 more: arrays" in str(report)

    def test_more_units_than_a_task_looks_at(self):
        z = zarrdask.create_array({}, shape=2000, dtype="u1", chunks=1, compressors=())
        z[...] = 1
        z.store.set("c/1999", b"ab")
        report = zarrdask.verify(z)
        assert report.arrays[0].stored == 2000
        assert told(report) == [("corrupt", "", "c/1999")]


class TestDamage:
    @for_each("zarr_format", FORMATS)
    @for_each("codec", ["gzip", "zlib", "zstd", "blosc", "bz2", ()])
    def test_a_truncated_unit_is_named(self, zarr_format, codec):
        if codec in ("zlib", "bz2") and zarr_format != 2:
            codec = "gzip"  # only v2 has these
        if codec == "zstd" and str(zarr_format).startswith("v3-draft"):
            codec = "gzip"
        store = {}
        z = make(store, zarr_format, compressors=codec)
        key = key_of(z, 2)
        change(store, key, lambda data: data[:-1])
        report = zarrdask.verify(store)
        assert not report.ok
        assert told(report) == [("truncated", "g/a", key)]
        assert report.bad == {"g/a": ((2,),)}

    def test_an_empty_value_is_truncated(self):
        store = {}
        make(store)
        store["g/a/c/2"] = b""
        assert kinds(zarrdask.verify(store)) == ["truncated"]

    @for_each("zarr_format", FORMATS)
    def test_a_flipped_byte_is_found(self, zarr_format):
        store = {}
        z = make(store, zarr_format)
        key = key_of(z, 2)
        change(store, key, flip)
        assert told(zarrdask.verify(store)) == [("corrupt", "g/a", key)]

    def test_a_checksum_tells_of_swapped_bytes(self):
        store = {}
        make(store, compressors="crc32c")
        change(store, "g/a/c/2", lambda d: d[4:8] + d[:4] + d[8:])
        report = zarrdask.verify(store)
        assert told(report) == [("corrupt", "g/a", "g/a/c/2")]
        assert "the checksum does not match" in report.problems[0].message

    def test_a_unit_of_another_array_is_found(self):
        store = {}
        make(store, compressors=())
        store["g/a/c/2"] = bytes(40)
        report = zarrdask.verify(store)
        assert told(report) == [("corrupt", "g/a", "g/a/c/2")]
        assert "wrong size" in report.problems[0].message

    def test_a_unit_that_may_not_be_read(self):
        store = FaultyStore(MemoryStore(), Faults())
        make(store)

        class Denied(FaultyStore):
            def get(self, key):
                if key.endswith("c/2"):
                    raise zarrdask.errors.ReadOnlyError("denied", key=key)
                return super().get(key)

        report = zarrdask.verify(Denied(store.inner, Faults()))
        assert told(report) == [("unreadable", "g/a", "g/a/c/2")]
        assert report.arrays[0].stored == 9

    @for_each("zarr_format", FORMATS)
    def test_keys_that_belong_to_nothing(self, zarr_format):
        store = {}
        z = make(store, zarr_format)
        outside = key_of(z, 10)
        junk = outside.removesuffix("10") + "junk"
        store |= {outside: b"1", junk: b"2", "g/what": b"3"}
        report = zarrdask.verify(store)
        assert report.ok
        assert {(p.kind, p.key) for p in report.problems} == {
            ("extra", outside),
            ("extra", junk),
            ("extra", "g/what"),
        }

    def test_what_a_write_left_in_a_directory(self, tmp_path):
        root = tmp_path / "a"
        make(root)
        (root / "g/a/c/.zarrdask-ab-1-2.partial").write_bytes(b"half")
        (root / "g/.zarrdask-0123456789abcdef.partial").mkdir()
        (root / "g/.zarrdask-0123456789abcdef.partial/zarr.json").write_bytes(b"{}")
        (root / "g/b/.zarrdask-rewrite").mkdir(parents=True)
        (root / "g/b/.zarrdask-rewrite/plan.json").write_bytes(b"{}")
        (tmp_path / ".zarrdask-0123456789abcdee.partial").mkdir()
        report = zarrdask.verify(root)
        assert report.ok
        assert set(kinds(report)) == {"partial"}
        assert {problem.key for problem in report.problems} == {
            "../.zarrdask-0123456789abcdee.partial",
            "g/.zarrdask-0123456789abcdef.partial",
            "g/a/c/.zarrdask-ab-1-2.partial",
            "g/b/.zarrdask-rewrite",
        }

    def test_documents_of_netcdf_are_no_strays(self):
        store = {}
        make(store, 2)
        store |= {"g/.nczgroup": b"{}", "g/a/.nczarray": b"{}"}
        assert not zarrdask.verify(store).problems


class TestShards:
    def store(self, **options):
        z = zarrdask.create_array(
            {},
            shape=(4, 4),
            dtype="u2",
            chunks=(2, 2),
            shards=(4, 4),
            compressors="crc32c",
            **options,
        )
        z[...] = np.arange(16).reshape(4, 4)
        return z.store.values

    def test_each_damaged_chunk_is_named(self):
        store = self.store()
        change(store, "c/0/0", lambda d: b"?" + d[1:12] + b"?" + d[13:])
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt", "corrupt"]
        assert "inner chunk (0, 0): codec crc32c" in report.problems[0].message
        assert "inner chunk (0, 1): codec crc32c" in report.problems[1].message
        assert report.bad == {"": ((0, 0),)}
        assert report.arrays[0].chunks == 4

    def test_a_damaged_index(self):
        store = self.store()
        change(store, "c/0/0", lambda d: d[:-1] + bytes([d[-1] ^ 1]))
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt"]
        assert "shard index: codec crc32c" in report.problems[0].message

    def test_a_shard_shorter_than_its_index(self):
        store = self.store()
        change(store, "c/0/0", lambda d: d[:20])
        assert kinds(zarrdask.verify(store)) == ["truncated"]

    def indexed(self, entries, body=bytes(8)):
        """Store a shard of four chunks of two bytes, and an index without checksum before it."""
        index = struct.pack("<8Q", *(n for entry in entries for n in entry))
        inner = {"chunk_shape": [1], "codecs": [LITTLE], "index_codecs": [LITTLE]}
        codec = {
            "name": "sharding_indexed",
            "configuration": inner | {"index_location": "start"},
        }
        document = v3((4,), (4,), codecs=[codec])
        return {"zarr.json": dump(document), "c/0": index + body}

    def test_ranges_that_overlap_are_noted(self):
        store = self.indexed([(64, 2), (65, 2), (68, 2), (10, 2)])
        report = zarrdask.verify(store)
        assert report.ok
        assert kinds(report) == ["overlap", "overlap"]
        assert (
            report.problems[0].message
            == "inner chunk (3,): bytes 10 to 12 also belong to the index"
        )
        assert "inner chunk (1,): bytes 65 to 67 also belong to inner chunk (0,)" in str(report)
        assert not zarrdask.verify(store, strict=True).ok

    def test_ranges_outside_are_truncated(self):
        store = self.indexed([(64, 2), (66, 2), (68, 2), (71, 2)])
        report = zarrdask.verify(store)
        assert kinds(report) == ["truncated"]
        assert "inner chunk (3,): the index of the shard points outside it" in str(report)

    def test_impossible_entries_are_corrupt(self):
        store = self.indexed([(64, 2), (66, 2), (EMPTY, 2), (EMPTY, EMPTY)])
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt"]
        assert "inner chunk (2,): an impossible entry in the index" in str(report)
        assert report.arrays[0].chunks == 2

    def test_a_shard_of_nothing_but_an_index_is_fill_only(self):
        store = self.indexed([(EMPTY, EMPTY)] * 4, b"")
        report = zarrdask.verify(store, every=True)
        assert kinds(report) == ["fill-only"]
        assert report.ok

    def test_shards_in_shards(self):
        inner = {"chunk_shape": [1], "codecs": [LITTLE, CRC32C], "index_codecs": [LITTLE]}
        middle = {
            "chunk_shape": [2],
            "codecs": [{"name": "sharding_indexed", "configuration": inner}],
            "index_codecs": [LITTLE],
        }
        outer = {"name": "sharding_indexed", "configuration": middle}
        store = {"zarr.json": dump(v3((4,), (4,), codecs=[outer]))}
        zarrdask.open_array(store, mode="r+")[...] = np.arange(4)
        report = zarrdask.verify(store)
        assert report.ok
        assert report.arrays[0].chunks == 3
        change(store, "c/0", lambda d: b"?" + d[1:])
        message = zarrdask.verify(store).problems[0].message
        assert message.startswith("inner chunk (0,): inner chunk (1,): codec crc32c")


class TestMetadata:
    def test_an_array_that_is_not_valid_is_named_and_the_others_are_checked(self):
        store = {}
        make(store)
        root = zarrdask.open_group(store, mode="r+")
        root.create_array("b", shape=2, dtype="u1")[...] = 1
        document = json.loads(store["g/a/zarr.json"])
        store["g/a/zarr.json"] = dump(document | {"shape": "many"})
        report = zarrdask.verify(store)
        assert not report.ok
        assert told(report) == [("invalid", "g/a", "g/a")]
        assert [found.path for found in report.arrays] == ["b"]

    def test_an_unknown_codec_can_not_be_checked(self):
        store = {"zarr.json": dump(v3(codecs=[{"name": "nobody.knows"}]))}
        report = zarrdask.verify(store)
        assert not report.ok
        assert kinds(report) == ["unsupported"]
        assert "nobody.knows" in str(report)

    def test_what_is_tolerated_is_noted_and_fails_in_strict_mode(self):
        store = {
            "zarr.json": dump(
                v3(codecs=[{"name": "endian", "configuration": {"endian": "little"}}])
            )
        }
        report, strict = zarrdask.verify(store), zarrdask.verify(store, strict=True)
        assert report.ok
        assert kinds(report) == kinds(strict) == ["note"]
        assert "X-C7" in str(report)
        assert not strict.ok
        assert [p.kind for p in strict.failures] == ["note"]

    def test_it_warns_of_nothing(self):
        # It would be an error here: pytest is told so.
        store = {"zarr.json": dump(v3()), ".zarray": b"{}"}
        assert kinds(zarrdask.verify(store)) == ["note"]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_metadata_that_are_stale(self, zarr_format):
        store = {}
        make(store, zarr_format)
        zarrdask.consolidate_metadata(store)
        assert not zarrdask.verify(store).problems
        key = "g/a/zarr.json" if zarr_format == 3 else "g/a/.zarray"
        store[key] = dump(json.loads(store[key]) | {"shape": [44]})
        report = zarrdask.verify(store)
        assert told(report) == [("stale", "", "")]
        assert "g/a" in report.problems[0].message
        assert not report.ok

    def test_an_entry_point_of_the_draft_that_is_wrong(self):
        store = hierarchy({"a.array": older()})
        store["zarr.json"] = store["zarr.json"].replace(b"/3.0", b"/9.0")
        report = zarrdask.verify(store)
        assert not report.ok
        assert set(kinds(report)) <= {"invalid", "unsupported"}

    def test_nothing_there_is_an_error(self):
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.verify({})


class TestStores:
    def test_a_store_that_loses_connections(self):
        make(inner := MemoryStore())
        store = FaultyStore(inner, Faults(lost=0.1), seed=3)
        with dask.config.set({"zarrdask.retry-delay": 0.001}):
            report = zarrdask.verify(store, scheduler="sync")
        assert store.failures
        assert report.ok
        assert report.arrays[0].stored == 9

    def test_values_that_come_short_are_read_twice(self):
        make(inner := MemoryStore())
        store = FaultyStore(inner, Faults(), seed=1)
        short = {"g/a/c/3": 1}

        class Once(FaultyStore):
            def get(self, key):
                value = super().get(key)
                if short.pop(key, 0):
                    return value[:3]
                return value

        store = Once(inner, Faults())
        assert zarrdask.verify(store, scheduler="sync").ok
        assert not short

    def test_a_store_that_can_not_be_reached_is_an_error(self):
        z = make(inner := MemoryStore())

        class Gone(FaultyStore):
            def get(self, key):
                if "/c/" in key:
                    raise ConnectionResetError("gone")
                return super().get(key)

        with (
            dask.config.set({"zarrdask.retry-delay": 0.001}),
            pytest.raises((ConnectionResetError, zarrdask.errors.StoreError)),
        ):
            zarrdask.verify(Gone(inner, Faults()), scheduler="sync")
        assert z.nchunks_stored() == 9

    def test_a_store_that_can_not_be_listed(self):
        class Deaf(FaultyStore):
            capabilities = Capabilities(listable=False)

            def list_dir(self, prefix):
                raise zarrdask.errors.UnsupportedError("can't be listed")

            list_prefix = list_dir

        make(inner := MemoryStore())
        inner.set("g/a/c/2", b"?")
        inner.set("g/a/junk", b"?")
        store = Deaf(inner, Faults())
        report = zarrdask.verify(store, component="g/a")
        assert [p.key for p in report.problems] == ["g/a/c/2"]
        assert not report.listed
        assert (report.arrays[0].stored, report.arrays[0].missing) == (9, 1)
        assert "can't be listed" in str(report)
        with pytest.raises(zarrdask.errors.UnsupportedError):
            zarrdask.verify(store)
        zarrdask.consolidate_metadata(inner)
        assert [p.key for p in zarrdask.verify(store).problems] == ["g/a/c/2"]

    @for_each("folder", [*READABLE])
    def test_samples_are_clean(self, folder):
        for name in READABLE[folder]:
            report = zarrdask.verify(SAMPLES / folder, component=name)
            assert report.ok, report
            assert not {"extra", "overlap", "partial"} & set(kinds(report)), report

    @for_each(
        "folder", ["gdal362_v3draft.zarr", "zarr218_v3draft", "xarray/v2", "xarray/v3", "zarr342"]
    )
    def test_sample_hierarchies_are_clean(self, folder):
        report = zarrdask.verify(SAMPLES / folder)
        assert set(kinds(report)) <= {"note"}, report


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
        units = {z.stored.key(index): index for index in z.metadata.grid.indices()}
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
        from zarrdask.verification.report import VerifyReport

        with pytest.raises(zarrdask.errors.MetadataError, match="verify the node again"):
            VerifyReport("here", 0, (), ()).repair({})


class TestReport:
    def test_it_prints(self, tmp_path):
        make(tmp_path)
        os.truncate(tmp_path / "g/a/c/3", 0)
        lines = str(zarrdask.verify(tmp_path)).splitlines()
        assert lines[0] == f"{tmp_path}: 2 groups, 1 array"
        assert lines[1].startswith("  g/a (40,) int32: 9 of 10 chunks or shards stored, ")
        assert lines[2] == "truncated  g/a/c/3: the value is cut off; found 0 bytes; expected more"
        assert lines[3] == "NOT OK: 1 truncated"

    def test_html_is_escaped(self):
        root = zarrdask.create_group({})
        root.create_array("<b>", shape=1, dtype="u1")
        assert "&lt;b&gt;" in zarrdask.verify(root)._repr_html_()

    def test_as_json(self):
        store = {}
        make(store)
        store["g/a/c/1"] = b""
        found = json.loads(json.dumps(zarrdask.verify(store).to_dict()))
        assert found["ok"] is False
        assert found["arrays"][0]["path"] == "g/a"
        assert found["problems"][0]["kind"] == "truncated"
        assert found["problems"][0]["index"] == [1]

    def test_progress_is_told(self, capsys):
        zarrdask.verify(make({}), progress=True)
        assert "verify" in capsys.readouterr().err
        zarrdask.verify(make({}))
        assert not capsys.readouterr().err


def test_a_codec_that_raises_anything_makes_a_unit_corrupt(monkeypatch):
    z = make({})
    chunks = z.stored

    def fail(self, data):
        raise LookupError("what?")

    monkeypatch.setattr(type(chunks.metadata.pipeline), "decode", fail)
    (fault,) = check_unit(chunks, (0,)).faults
    assert fault == ("corrupt", "LookupError: what?")


def test_a_lack_of_memory_is_no_fault_of_the_unit(monkeypatch):
    chunks = make({}).stored

    def fail(self, data):
        raise MemoryError

    monkeypatch.setattr(type(chunks.metadata.pipeline), "decode", fail)
    with pytest.raises(MemoryError):
        check_unit(chunks, (0,))
