"""`copy`: arrays and hierarchies, to other places and into other formats."""

import json
import os

import dask
import numpy as np
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import covering, for_each
from tests.storage.faults import Faults, FaultyStore
from tests.storage.latency import LatencyStore
from tests.test_samples import ARRAYS, SAMPLES, expected
from zarrdask.errors import (
    CodecError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
)
from zarrdask.hierarchy import journal
from zarrdask.storage.wrapper import WrappedStore

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")
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
VALUES = np.arange(1, 121, dtype="i4").reshape(10, 12)


class FullStore(WrappedStore):
    """A store in which no room is left for chunks after a few."""

    def __init__(self, inner, room):
        super().__init__(inner)
        self.room = room

    def set(self, key, value):
        chunk = not key.endswith(("zarr.json", ".zarray", ".zattrs"))
        if chunk and not self.room:
            raise StoreError("full", key=key)
        self.room -= chunk
        super().set(key, value)


def make(place, name=None, **options):
    options = {"shape": (10, 12), "chunks": (2, 3), "dtype": "i4", "compressors": "gzip"} | options
    z = zarrdask.create_array(place, name, **options)
    z[...] = VALUES
    return z


def hierarchy(place, zarr_format=3):
    root = zarrdask.create_group(place, zarr_format=zarr_format, attributes={"title": "t"})
    group = root.create_group("g", attributes={"n": 1})
    names = {"dimension_names": ("y", "x"), "attributes": {"units": "m"}}
    for where, name in ((root, "a"), (group, "b")):
        make(where, name, zarr_format=zarr_format, **names)
    group.create_group("empty")
    return root


def check(root, zarr_format):
    assert root.zarr_format == zarr_format
    assert dict(root.attrs) == {"title": "t"}
    assert dict(root["g"].attrs) == {"n": 1}
    assert sorted(path for path, _ in root.walk()) == ["a", "g", "g/b", "g/empty"]
    for path in ("a", "g/b"):
        z = root[path]
        assert z.zarr_format == zarr_format
        assert (dict(z.attrs), z.dimension_names) == ({"units": "m"}, ("y", "x"))
        np.testing.assert_array_equal(z[...], VALUES)


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
        assert (copied.method, copied.units) == ("moved", 20)
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
        assert (report.arrays[0].method, report.arrays[0].units) == ("moved within shards", 20)
        report = zarrdask.copy(tmp_path / "b", tmp_path / "c", shards=(10, 3))
        assert (report.arrays[0].method, report.arrays[0].units) == ("moved within shards", 4)
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
            assert report.units == 1
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
        assert zarrdask.copy(z, {}, codecs=["gzip"]).units == 5

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
        assert report.units == found.nchunks_stored()
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
        assert zarrdask.copy(z, store).units == 20
        np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)


class TestHierarchies:
    @covering(strength=1, source=FORMATS, target=FORMATS[::-1])
    def test_from_each_format_to_each(self, tmp_path, source, target):
        hierarchy(tmp_path / "a", source)
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        check(zarrdask.open_group(tmp_path / "b"), target)
        assert (report.groups, len(report.arrays), report.units) == (3, 2, 40)

    @pytest.mark.parametrize("target", [2, 3])
    @pytest.mark.parametrize("source", [2, 3])
    def test_consolidated_metadata_go_with_it(self, tmp_path, source, target):
        zarrdask.consolidate_metadata(hierarchy(tmp_path / "a", source))
        zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        check(zarrdask.open_group(tmp_path / "b", consolidated=True), target)
        hierarchy(tmp_path / "c", source)
        zarrdask.copy(tmp_path / "c", tmp_path / "d", zarr_format=target)
        with pytest.raises(MetadataError, match="no consolidated"):
            zarrdask.open_group(tmp_path / "d", consolidated=True)

    def test_a_draft_has_no_consolidated_metadata_and_the_report_says_so(self, tmp_path):
        zarrdask.consolidate_metadata(hierarchy(tmp_path / "a"))
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format="v3-draft")
        assert report.notes == (
            "no consolidated metadata: the format has none, or the store can't be listed",
        )

    def test_groups_of_groups(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        zarrdask.copy(root["g"], tmp_path / "b", "x/y", zarr_format=2)
        found = zarrdask.open_group(tmp_path / "b")
        assert [path for path, _ in found.walk()] == ["x", "x/y", "x/y/b", "x/y/empty"]
        np.testing.assert_array_equal(found["x/y/b"][...], VALUES)

    def test_some_of_it(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        zarrdask.copy(root, tmp_path / "b", include="*/b")
        assert [p for p, _ in zarrdask.open_group(tmp_path / "b").walk()] == ["g", "g/b", "g/empty"]
        zarrdask.copy(root, tmp_path / "c", exclude=["g"])
        assert [p for p, _ in zarrdask.open_group(tmp_path / "c").walk()] == ["a"]
        with pytest.raises(MetadataError, match="include"):
            zarrdask.copy(root, tmp_path / "d", include=[3])

    @pytest.mark.parametrize("options", [{}, {"dry_run": True}, {"exclude": "*"}], ids=str)
    def test_patterns_that_match_no_array_are_an_error(self, tmp_path, options):
        root = hierarchy(tmp_path / "a", zarr_format=2)
        with pytest.raises(MetadataError, match=r"no array matches.*nothing"):
            zarrdask.copy(root, tmp_path / "b", include=["nothing", "g"], **options)
        assert not (tmp_path / "b").exists()
        with pytest.raises(MetadataError, match="no array matches"):
            zarrdask.upgrade(root, include="nothing")

    def test_what_the_format_lacks_is_found_before_anything_is_written(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        make(root, "odd", dtype="bfloat16")
        with pytest.raises(UnsupportedError, match=r"a/odd: .*bfloat16"):
            zarrdask.copy(root, tmp_path / "b", zarr_format=2)
        assert not os.path.exists(tmp_path / "b")
        report = zarrdask.copy(root, tmp_path / "b", zarr_format=2, on_unsupported="skip")
        assert [path for path, _ in report.skipped] == ["odd"]
        assert "skipped odd: " in str(report)
        check(zarrdask.open_group(tmp_path / "b"), 2)

    def test_what_can_not_be_read_is_skipped_on_request(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        (tmp_path / "a" / "g" / "zarr.json").write_text("{")
        with pytest.raises(MetadataError, match="a/g"):
            zarrdask.copy(root, tmp_path / "b")
        report = zarrdask.copy(root, tmp_path / "b", on_unsupported="skip")
        assert [path for path, _ in report.skipped] == ["g"]
        assert list(zarrdask.open_group(tmp_path / "b")) == ["a"]
        with pytest.raises(MetadataError, match="on_unsupported"):
            zarrdask.copy(root, tmp_path / "c", on_unsupported="ignore")

    @pytest.mark.parametrize("target", [2, 3])
    def test_names_of_v2_that_are_not_ascii(self, tmp_path, target):
        # As other software writes them.
        document = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C"}
        document |= {"compressor": None, "filters": None, "fill_value": 0}
        for name in ("", "größe", "größe/た"):
            folder = tmp_path / "a" / name
            folder.mkdir(parents=True)
            array = name.endswith("た")
            text = json.dumps(document) if array else '{"zarr_format": 2}'
            (folder / (".zarray" if array else ".zgroup")).write_text(text)
        (tmp_path / "a" / "größe" / "た" / "0").write_bytes(b"\1\2")
        zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        found = zarrdask.open_array(tmp_path / "b", "größe/た")
        assert found.zarr_format == target
        assert found[...].tolist() == [1, 2]
        zarrdask.copy(tmp_path / "a" / "größe", tmp_path / "c")
        assert zarrdask.open_array(tmp_path / "c", "た")[...].tolist() == [1, 2]

    def test_names_that_the_format_lacks(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "a")
        make(root, "größe")
        with pytest.raises(MetadataError, match="größe"):
            zarrdask.copy(root, tmp_path / "b", zarr_format="v3-draft")
        zarrdask.copy(root, tmp_path / "b")
        assert list(zarrdask.open_group(tmp_path / "b")) == ["größe"]


class TestPlaces:
    @covering(strength=1, before=FORMATS, after=FORMATS[::-1])
    def test_what_is_there_is_replaced_on_request_only(self, tmp_path, before, after):
        z = make(tmp_path / "z")
        hierarchy(tmp_path / "root", before)
        with pytest.raises(NodeExistsError):
            zarrdask.copy(z, tmp_path / "root", zarr_format=after)
        check(zarrdask.open_group(tmp_path / "root"), before)
        zarrdask.copy(z, tmp_path / "root", zarr_format=after, overwrite=True)
        found = zarrdask.open_array(tmp_path / "root")
        assert found.zarr_format == after
        np.testing.assert_array_equal(found[...], VALUES)
        assert not [f for f in (tmp_path / "root").rglob("*") if f.name.startswith("empty")]

    def test_a_member_of_a_group_is_replaced_alone(self, tmp_path):
        root = zarrdask.consolidate_metadata(hierarchy(tmp_path / "root"))
        z = zarrdask.create_array(tmp_path / "z", shape=3, dtype="i4")
        zarrdask.copy(z, root, "g/b", overwrite=True)
        found = zarrdask.open_group(tmp_path / "root")
        assert found["g/b"].shape == (3,)
        assert found["a"].shape == (10, 12)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_a_member_is_replaced_in_any_format(self, tmp_path, zarr_format):
        root, z = hierarchy(tmp_path / "root", zarr_format), make(tmp_path / "z")
        for name in ("g/b", "g"):
            with pytest.raises(NodeExistsError):
                zarrdask.copy(z, root, name)
            report = zarrdask.copy(z, root, name, overwrite=True, fill_value=3)
            assert report.units == 20
            found = zarrdask.open_group(tmp_path / "root")[name]
            assert (found.zarr_format, found.fill_value) == (zarr_format, 3)
            np.testing.assert_array_equal(found[...], VALUES)

    def test_what_can_not_be_read_is_replaced_too(self, tmp_path):
        z = make(tmp_path / "a")
        for name in ("b", "c/d"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "zarr.json").write_text("{")
            (tmp_path / name / "c").write_text("in the way")
            with pytest.raises(NodeExistsError):
                zarrdask.copy(z, tmp_path / name)
            zarrdask.copy(z, tmp_path / name, overwrite=True)
            np.testing.assert_array_equal(zarrdask.open_array(tmp_path / name)[...], VALUES)

    def test_leftovers_are_not_taken_for_chunks(self, tmp_path):
        z = zarrdask.create_array(tmp_path / "a", shape=4, chunks=2, dtype="u1")
        os.makedirs(tmp_path / "b" / "c")
        (tmp_path / "b" / "c" / "1").write_bytes(b"nonsense")
        zarrdask.copy(z, tmp_path / "b")
        assert zarrdask.open_array(tmp_path / "b")[...].tolist() == [0] * 4

    def test_not_into_itself_nor_over_what_holds_it(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        for place in (tmp_path / "a", tmp_path / "a" / "g", tmp_path / "a" / "new"):
            with pytest.raises(NodeExistsError, match="itself"):
                zarrdask.copy(root, place, overwrite=True)
        with pytest.raises(NodeExistsError, match="itself"):
            zarrdask.copy(root["g/b"], tmp_path / "a", overwrite=True)
        check(zarrdask.open_group(tmp_path / "a"), 3)
        zarrdask.copy(root["g"], root, "h")
        assert sorted(root) == ["a", "g", "h"]

    def test_nothing_to_copy_and_nowhere_to(self, tmp_path):
        with pytest.raises(NodeNotFoundError):
            zarrdask.copy(tmp_path / "none", tmp_path / "b")
        z = make(tmp_path / "a")
        with pytest.raises(MetadataError, match="target"):
            zarrdask.copy(z)


class TestReport:
    def test_it_prints(self, tmp_path):
        make(tmp_path / "a", shards=(4, 6))
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=2)
        lines = str(report).splitlines()
        assert lines[0] == f"{tmp_path / 'a'} -> {tmp_path / 'b'}: 1 array, 0 groups"
        assert lines[1].startswith("/: moved within shards, 20 chunks or shards, ")
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
                # Absent texts are 0 in v2, and empty in v3.
                assert [item or 0 for item in copied.tolist()] == values.tolist()
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


class TestFailures:
    @pytest.mark.parametrize("after", [0, 1, 7, 19])
    @pytest.mark.parametrize("changes", [{"zarr_format": 2}, {"codecs": ["zstd"]}], ids=str)
    def test_a_failing_copy_leaves_no_array(self, tmp_path, after, changes):
        z = make(tmp_path / "a")
        inner = zarrdask.storage.LocalStore(str(tmp_path / "b"))
        with pytest.raises(StoreError, match="full"):
            zarrdask.copy(z, FullStore(inner, after), scheduler="sync", **changes)
        assert len(list(inner.list())) == after
        with pytest.raises(NodeNotFoundError):
            zarrdask.open_array(inner)
        # What is left does no harm.
        zarrdask.copy(z, inner, **changes)
        np.testing.assert_array_equal(zarrdask.open_array(inner)[...], VALUES)

    def test_arrays_that_are_complete_stay(self, tmp_path, monkeypatch):
        monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
        root = hierarchy(tmp_path / "a")
        inner = zarrdask.storage.LocalStore(str(tmp_path / "b"))
        with pytest.raises(StoreError, match="full"):
            zarrdask.copy(root, FullStore(inner, 30), scheduler="sync")
        found = zarrdask.open_group(inner)
        assert [path for path, _ in found.walk()] == ["a", "g", "g/empty"]
        np.testing.assert_array_equal(found["a"][...], VALUES)

    def test_what_fails_for_a_moment_is_tried_again(self, tmp_path):
        z = make(tmp_path / "a", shards=(4, 6))
        failures = 0
        with dask.config.set({"zarrdask.retry-delay": 0.0, "zarrdask.retries": 20}):
            for at, changes in enumerate(({}, {"shards": False}, {"codecs": ["zstd"]})):
                inner = zarrdask.storage.LocalStore(str(tmp_path / f"b{at}"))
                store = FaultyStore(inner, Faults(lost=0.3, late=0.2, torn=0.2), at)
                zarrdask.copy(z, store, scheduler="sync", **changes)
                failures += store.failures
                np.testing.assert_array_equal(zarrdask.open_array(inner)[...], VALUES)
        assert failures

    def test_a_damaged_chunk_that_has_to_be_decoded(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "a")
        z = make(root, "z")
        make(root, "y")
        z.store.set("z/c/1/1", b"nonsense")
        with pytest.raises(CodecError, match="z/c/1/1"):
            zarrdask.copy(root, tmp_path / "b", codecs=["zstd"])
        assert "z" not in zarrdask.open_group(tmp_path / "b")


class TestSchedulers:
    @pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
    def test_any(self, tmp_path, scheduler):
        z = make(tmp_path / "a", shards=(4, 6))
        for options in ({}, {"shards": False}, {"codecs": ["zstd"]}):
            zarrdask.copy(z, tmp_path / "b", scheduler=scheduler, overwrite=True, **options)
            np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "b")[...], VALUES)

    def test_memory_of_one_process_is_not_that_of_others(self, tmp_path):
        z = make({})
        with pytest.raises(StoreError, match="memory of one process"):
            zarrdask.copy(z, tmp_path / "b", scheduler="processes")
        with pytest.raises(MetadataError, match="scheduler"):
            zarrdask.copy(z, tmp_path / "b", scheduler="nobody")

    def test_a_cluster_of_two_processes(self, tmp_path, cluster):
        root = hierarchy(tmp_path / "a")
        with Client(cluster) as client:
            zarrdask.copy(root, tmp_path / "b", zarr_format=2)
            check(zarrdask.open_group(tmp_path / "b"), 2)
            zarrdask.copy(root, tmp_path / "c", shards=(4, 6), scheduler=client)
            check(zarrdask.open_group(tmp_path / "c"), 3)
            zarrdask.copy(
                root, tmp_path / "d", codecs=["zstd"], scheduler=cluster.scheduler_address
            )
            check(zarrdask.open_group(tmp_path / "d"), 3)
            with pytest.raises(StoreError, match="memory of one process"):
                zarrdask.copy(root, {})


def test_a_copy_by_threads_needs_no_cluster_to_see_its_stores(cluster_address):
    source = zarrdask.create_array({}, shape=4, dtype="i4")
    source[...] = 3
    with Client(cluster_address):
        report = zarrdask.copy(source, {}, scheduler="threads")
    assert report.units == 1


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
        assert all(array.units is None for array in planned.arrays)
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


def test_requests_for_many_arrays_are_in_flight_together():
    store = LatencyStore(seconds=0.01)
    group = zarrdask.create_group(store.inner, "source")
    for number in range(16):
        group.create_array(f"a{number}", shape=6, dtype="i4", chunks=2)[...] = number + 1
    for target, changes in (("moved", {}), ("recoded", {"compressors": []})):
        store.clear()
        zarrdask.copy(zarrdask.open_group(store, "source"), store, target, **changes)
        assert store.most >= 16
        assert store.rounds < 24
        # Of source and target, with six for the chunks; and the record, once a second.
        assert len(store.keys) < 16 * 15
        for number in range(16):
            values = zarrdask.open_array(store, f"{target}/a{number}")[...]
            np.testing.assert_array_equal(values, number + 1)
