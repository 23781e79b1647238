"""`copy`: arrays and hierarchies, to other places and into other formats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.parallel.rewrite.hierarchies import FORMATS, VALUES, hierarchy, make
from tests.test_samples import ARRAYS, SAMPLES, expected
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    UnsupportedError,
)

#: The samples that not all formats can hold: types, codecs and grids that these lack.
LACKING = {
    **dict.fromkeys([("zarr218_v2_dtypes", "Oj"), ("zarr218_v2_dtypes", "Om")], (3, "v3-draft")),
    ("zarr218_v2_dtypes", "O"): ("v3-draft",),
    ("zarr218_v2_dtypes", "flt"): ("v3-draft",),
    ("zarr218_v2_dtypes", "st"): (3,),
    **{
        ("tensorstore", name): (2, "v3-draft", "v3-draft-protocol")
        for name in ("float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "int4", "v3")
    },
    ("tensorstore", "c_crc32c"): ("v3-draft",),
    ("zarr342", "nc"): ("v3-draft",),
    **{("zarr342", name): (2, "v3-draft", "v3-draft-protocol") for name in ("rect", "rect2", "sc")},
}


class TestArrays:
    @pytest.mark.parametrize("target", FORMATS)
    @pytest.mark.parametrize("source", FORMATS)
    def test_from_each_format_to_each(self, tmp_path, source, target):
        z = make(tmp_path / "a", zarr_format=source, attributes={"a": 1})
        report = zarrdask.copy(z, tmp_path / "b", zarr_format=target)
        found = zarrdask.open_array(tmp_path / "b")
        assert (found.zarr_format, dict(found.attrs)) == (target, {"a": 1})
        np.testing.assert_array_equal(found[...], VALUES)
        [copied] = report.arrays
        assert (copied.method, copied.objects) == ("copied unchanged", 20)
        assert copied.bytes_read == copied.bytes_written > 0

    def test_it_is_the_same_format_if_nobody_says(self, tmp_path):
        for zarr_format in FORMATS:
            make(tmp_path / str(zarr_format), zarr_format=zarr_format)
            zarrdask.copy(tmp_path / str(zarr_format), tmp_path / f"{zarr_format}-copy")
            assert zarrdask.open(tmp_path / f"{zarr_format}-copy").zarr_format == zarr_format

    def test_into_a_group_it_has_the_groups_format(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "root", zarr_format=2)
        z = make(tmp_path / "a")
        zarrdask.copy(z, root, "x/y")
        assert root["x/y"].zarr_format == 2
        np.testing.assert_array_equal(root["x/y"][...], VALUES)

    def test_shards_that_come_and_go_are_not_decoded(self, tmp_path):
        z = make(tmp_path / "a", shards=(4, 6))
        report = zarrdask.copy(z, tmp_path / "b", shards=False)
        assert (report.arrays[0].method, report.arrays[0].objects) == ("repacked", 20)
        report = zarrdask.copy(tmp_path / "b", tmp_path / "c", shards=(10, 3))
        assert (report.arrays[0].method, report.arrays[0].objects) == ("repacked", 4)
        found = zarrdask.open_array(tmp_path / "c")
        assert (found.chunks, found.shards) == ((2, 3), (10, 3))
        np.testing.assert_array_equal(found[...], VALUES)

    def test_sparse_arrays_stay_sparse(self, tmp_path):
        shape = (10**9, 10**9)
        z = zarrdask.create_array(tmp_path / "a", shape=shape, chunks=1000, dtype="u1")
        z[5, 7] = 1
        recoded = {"dtype": "f4"}, {"chunks": (300, 700)}, {"compressors": "gzip", "zarr_format": 2}
        for options in ({}, {"zarr_format": 2}, {"shards": (10_000, 10_000)}, *recoded):
            report = zarrdask.copy(z, tmp_path / "b", overwrite=True, **options)
            assert report.objects == 1
            assert zarrdask.open_array(tmp_path / "b")[4:7, 7].tolist() == [0, 1, 0]

    def test_absent_units_keep_their_values_under_another_fill_value(self):
        z = zarrdask.create_array({}, shape=9, chunks=2, dtype="i4", fill_value=3)
        z[2:4] = 1
        target = {}
        zarrdask.copy(z, target, fill_value=5, codecs=["gzip"])
        found = zarrdask.open_array(target)
        assert found[...].tolist() == [3, 3, 1, 1, 3, 3, 3, 3, 3]
        assert found.fill_value == 5

    def test_absent_units_are_stored_on_request(self, setting):
        z = zarrdask.create_array({}, shape=9, chunks=2, dtype="i4")
        setting({"zarrdask.write-empty-chunks": True})
        assert zarrdask.copy(z, {}, codecs=["gzip"]).objects == 5

    @pytest.mark.parametrize(
        "changes",
        [
            {"codecs": ["zstd"]},
            {"chunks": (3, 5)},
            {"dtype": "f8"},
            {"fill_value": 7},
            {"chunks": ((4, 6), 12), "shards": False},
        ],
        ids=str,
    )
    def test_other_bytes_are_decoded_and_encoded(self, tmp_path, changes):
        z = make(tmp_path / "a")
        report = zarrdask.copy(z, tmp_path / "b", **changes)
        found = zarrdask.open_array(tmp_path / "b")
        assert report.arrays[0].method == "recoded"
        assert report.objects == found.nchunks_stored()
        np.testing.assert_array_equal(found[...], VALUES)

    @pytest.mark.parametrize("verb", [zarrdask.copy, zarrdask.rechunk])
    def test_another_compressor_keeps_what_objects_of_v2_are(self, tmp_path, verb):
        options = {"dtype": object, "filters": "vlen-bytes", "zarr_format": 2}
        z = zarrdask.create_array(tmp_path / "a", shape=3, chunks=2, **options)
        z[...] = [b"", b"\xff", b"a\0"]
        done = verb(z, tmp_path / "b", chunks=3, compressors="gzip")
        if verb is zarrdask.rechunk:
            done.execute()
        found = zarrdask.open_array(tmp_path / "b")
        assert found[...].tolist() == z[...].tolist()
        assert [codec.name for codec in found.metadata.codecs] == ["vlen-bytes", "gzip"]

    def test_absent_chunks_hold_the_old_fill_value_under_a_new_one(self, tmp_path):
        z = zarrdask.create_array(tmp_path / "a", shape=4, chunks=2, dtype="i4", fill_value=5)
        zarrdask.copy(z, tmp_path / "b", fill_value=0)
        assert zarrdask.open_array(tmp_path / "b")[...].tolist() == [5] * 4

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
    def test_arrays_without_axes_or_elements(self, tmp_path, shape):
        z = zarrdask.create_array(tmp_path / "a", shape=shape, dtype="i4", compressors="gzip")
        z[...] = 3
        for at, zarr_format in enumerate(FORMATS):
            zarrdask.copy(z, tmp_path / f"b{at}", zarr_format=zarr_format)
            found = zarrdask.open_array(tmp_path / f"b{at}")
            np.testing.assert_array_equal(found[...], np.full(shape, 3, "i4"))

    def test_any_mapping(self):
        z, store = make({}), {}
        assert zarrdask.copy(z, store).objects == 20
        np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)


class TestReport:
    def test_it_prints(self, tmp_path):
        make(tmp_path / "a", shards=(4, 6))
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=2)
        lines = str(report).splitlines()
        assert lines[0] == f"{tmp_path / 'a'} -> {tmp_path / 'b'}: 1 array, 0 groups"
        assert lines[1].startswith("/: repacked, 20 chunks or shards, ")
        assert lines[2] == "  note: shards of 4 x 6 became chunks of 2 x 3"

    def test_progress_is_told(self, tmp_path, capsys):
        z = make(tmp_path / "a")
        zarrdask.copy(z, tmp_path / "b", progress=True)
        assert "copy: 100%" in capsys.readouterr().err
        zarrdask.copy(z, tmp_path / "c")
        assert capsys.readouterr().err == ""


class TestSamples:
    @for_each(("number", "array"), enumerate(ARRAYS))
    def test_every_sample_in_half_of_the_formats_and_in_those_that_lack_it(self, number, array):
        folder, name = array
        lacking = LACKING.get(array, ())
        for zarr_format in {FORMATS[number % 4], FORMATS[(number // 4 + 1) % 4], *lacking}:
            z, store = zarrdask.open_array(SAMPLES / folder, name), {}
            if zarr_format in lacking:
                with pytest.raises(UnsupportedError) as caught:
                    zarrdask.copy(z, store, zarr_format=zarr_format)
                assert caught.value.key
                assert not store
                continue
            zarrdask.copy(z, store, zarr_format=zarr_format)
            found = zarrdask.open_array(store)
            assert (found.zarr_format, dict(found.attrs)) == (zarr_format, dict(z.attrs))
            assert found.dimension_names == z.dimension_names
            values, copied = expected(folder, name), found[...]
            if values.dtype.hasobject:
                assert copied.tolist() == values.tolist()
            else:
                assert copied.astype(values.dtype).tobytes() == values.tobytes()
                assert copied.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")


@given(data=st.data())
def test_any_array_in_any_format(data):
    draw = data.draw
    source, target = draw(st.sampled_from(FORMATS)), draw(st.sampled_from(FORMATS))
    shape = draw(st.sampled_from([(), (7,), (5, 6), (3, 4, 5)]))
    options = {
        "dtype": draw(st.sampled_from(["?", "i1", "u2", "i4", "f4", "f8", "c8"])),
        "chunks": tuple(draw(st.integers(1, 4)) for _ in shape),
        "compressors": draw(st.sampled_from(["blosc", "gzip", {"id": "zlib"}, "zstd"])),
        "order": draw(st.sampled_from("CF")),
    }
    if source != 2 and draw(st.booleans()):
        options["shards"] = tuple(n * draw(st.integers(1, 3)) for n in options["chunks"])
    if source == 3 and isinstance(options["compressors"], dict):
        options["compressors"] = "numcodecs.zlib"
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = (rng.integers(0, 3, shape) * (rng.random(shape) < 0.6)).astype(options["dtype"])
    z = zarrdask.create_array({}, shape=shape, zarr_format=source, **options)
    z[...] = values
    changes, store = {"zarr_format": target}, {}
    if draw(st.booleans()):
        changes["codecs" if target in (3, "v3-draft") else "compressors"] = "gzip"
    if draw(st.booleans()):
        changes["shards"] = False
    report = zarrdask.copy(z, store, scheduler="sync", **changes)
    found = zarrdask.open_array(store)
    np.testing.assert_array_equal(found[...], values)
    assert (found.zarr_format, found.dtype) == (target, z.dtype)
    if set(changes) <= {"zarr_format", "shards"}:
        assert report.arrays[0].method != "recoded"


class TestDryRun:
    def test_it_reports_and_writes_nothing(self, tmp_path):
        source = hierarchy(tmp_path / "a")
        planned = zarrdask.copy(source, tmp_path / "b", zarr_format=2, dry_run=True)
        assert not (tmp_path / "b").exists()
        done = zarrdask.copy(source, tmp_path / "b", zarr_format=2)
        assert [(a.path, a.method, a.notes) for a in planned.arrays] == [
            (a.path, a.method, a.notes) for a in done.arrays
        ]
        assert (planned.groups, planned.notes) == (done.groups, done.notes)
        assert all(array.objects is None for array in planned.arrays)
        assert "0 chunks or shards" not in str(planned)

    def test_it_finds_the_errors_of_a_copy(self, tmp_path):
        source = hierarchy(tmp_path / "a")
        zarrdask.create_group(tmp_path / "b", attributes={"k": 1})
        with pytest.raises(NodeExistsError):
            zarrdask.copy(source, tmp_path / "b", dry_run=True)
        zarrdask.copy(source, tmp_path / "b", dry_run=True, overwrite=True)
        with pytest.raises(MetadataError, match="unknown scheduler"):
            zarrdask.copy(source, tmp_path / "c", dry_run=True, scheduler="nonsense")
        assert dict(zarrdask.open_group(tmp_path / "b").attrs) == {"k": 1}
