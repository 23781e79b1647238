"""`verify` of one store: damage of each kind is found and named, and repair mends it."""

import json
import os
import shutil

import dask.config
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.faults import Faults, FaultyStore
from tests.test_samples import READABLE, SAMPLES
from tests.tools.verification.damage import FORMATS, key_of, kinds, make, told
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MemoryStore


class TestHealthy:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_all_is_counted(self, place, zarr_format):
        make(place, zarr_format)
        report = zarrdask.verify(place)
        assert report.ok
        assert not report.problems
        assert report.groups == 2
        (found,) = report.arrays
        assert (found.path, found.objects, found.stored, found.missing) == ("g/a", 10, 9, 1)
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
        assert (report.arrays[0].stored, report.arrays[0].objects) == (6, 6)

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


class TestReport:
    def test_it_prints(self, tmp_path):
        make(tmp_path)
        os.truncate(tmp_path / "g/a/c/3", 0)
        lines = str(zarrdask.verify(tmp_path)).splitlines()
        assert lines[0] == f"{tmp_path}: 2 groups, 1 array"
        assert lines[1].startswith("  g/a (40,) int32: 9 of 10 chunks or shards stored, ")
        assert (
            lines[2] == "truncated  g/a/c/3: the value is truncated; found 0 bytes; expected more"
        )
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


def test_the_repr_names_the_first_failure():
    store = {}
    make(store)
    assert repr(zarrdask.verify(store)).endswith("; ok>")
    store["g/a/c/1"] = b""
    assert repr(zarrdask.verify(store)).endswith("; NOT OK: 1 truncated (the first: g/a/c/1)>")


def test_only_chosen_groups_are_checked(tmp_path):
    for path in ("a/x", "a/y", "b/x"):
        group = zarrdask.create_group(tmp_path, path)
        group.create_array("t", shape=4, chunks=2, dtype="i4", compressors="crc32c")[...] = 1
        (tmp_path / path / "t/c/0").write_bytes(b"damaged.")
    zarrdask.consolidate_metadata(tmp_path)
    (tmp_path / "b/stray").write_bytes(b"")
    report = zarrdask.verify(tmp_path, group_filter="*/x")
    assert [array.path for array in report.arrays] == ["a/x/t", "b/x/t"]
    assert [problem.key for problem in report.problems] == ["a/x/t/c/0", "b/x/t/c/0"]
    assert [each.path for each in zarrdask.verify(tmp_path, group_filter="b").arrays] == []
