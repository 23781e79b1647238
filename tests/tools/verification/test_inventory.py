"""`zarrdask.inventory`: what is stored, and what is missing of what is expected."""

import json

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.latency import FarStore
from tests.storage.unlisted import UnlistedStore
from zarrdask.errors import SelectionError, UnsupportedError


def with_holes(store, *, shards=None, **options):
    """Return an array of which rows 10 to 14 are missing, and of rows 14 to 20 the last columns."""
    options = {"shape": (20, 8), "dtype": "i4", "dimension_names": ("time", "x")} | options
    z = zarrdask.create_array(store, chunks=(2, 4), shards=shards, **options)
    z[:10] = 1
    z[14:, :4] = 2
    return z


def test_chunks_are_counted_along_the_append_dimension():
    z = with_holes({})
    [array] = zarrdask.inventory(z).arrays
    assert (array.objects, array.stored, array.nchunks_stored) == (20, 13, 13)
    assert array.size == z.nbytes_stored()
    assert [(s.start, s.stop, s.objects, s.stored) for s in array.along] == [
        (0, 10, 10, 10),
        (10, 14, 4, 0),
        (14, 20, 6, 3),
    ]
    assert sum(span.size for span in array.along) == array.size
    assert array.strip == "██████████····▒▒▒▒▒▒"


@for_each("axis", [1, "x", -1])
def test_the_append_dimension_may_be_another_one(axis):
    [array] = zarrdask.inventory(with_holes({}), axis=axis).arrays
    assert array.dimension == "x"
    assert [(s.start, s.stop, s.stored) for s in array.along] == [(0, 4, 8), (4, 8, 5)]


def test_chunks_in_shards_are_counted_by_the_indexes_of_the_shards():
    z = with_holes({}, shards=(4, 8))
    [array] = zarrdask.inventory(z).arrays
    assert (array.objects, array.stored, array.nchunks, array.nchunks_stored) == (5, 5, 20, 13)
    assert [(s.start, s.stop, s.nchunks_stored) for s in array.along] == [
        (0, 8, 8),
        (8, 12, 2),
        (12, 16, 1),
        (16, 20, 2),
    ]


def test_shards_alone_are_counted_without_their_indexes():
    far = FarStore(seconds=0)
    z = with_holes(far, shards=(4, 8))
    z.erase(slice(12, 16))
    far.clear()
    [array] = zarrdask.inventory(z, per="shard", expect=...).arrays
    assert (array.stored, array.nchunks_stored, array.missing) == (4, None, 1)
    assert array.holes == ((slice(12, 16, 1), slice(0, 8, 1)),)
    assert "get_range" not in far.calls


@for_each(
    "expect, missing, holes",
    [
        (None, 0, []),
        (slice(0, 10), 0, []),
        ({"time": slice(8, 12)}, 2, [(slice(10, 12, 1), slice(0, 8, 1))]),
        ((slice(13, 15), slice(7, 8)), 2, [(slice(12, 16, 1), slice(4, 8, 1))]),
        ([slice(10, 12), {"x": slice(0, 1)}], 3, None),
        (..., 7, [(slice(10, 14, 1), slice(0, 8, 1)), (slice(14, 20, 1), slice(4, 8, 1))]),
    ],
)
def test_chunks_that_are_expected_and_not_stored_are_missing(expect, missing, holes):
    for shards in (None, (4, 8)):
        report = zarrdask.inventory(with_holes({}, shards=shards), expect=expect)
        assert (report.ok, report.missing) == (missing == 0, missing)
        assert holes is None or list(report.arrays[0].holes) == holes


def test_random_holes_are_found(tmp_path):
    rng = np.random.default_rng(1)
    for number in range(20):
        shape = tuple(rng.integers(1, 9, rng.integers(1, 4)).tolist())
        z = zarrdask.create_array(tmp_path / f"{number}.zarr", shape=shape, dtype="i1", chunks=2)
        is_stored = rng.random(z.metadata.grid.counts) < 0.6
        for index in zip(*np.nonzero(is_stored), strict=True):
            z.blocks[index] = 1
        [array] = zarrdask.inventory(z, expect=...).arrays
        assert array.missing == np.count_nonzero(~is_stored)
        values, holes = z[...], np.zeros(shape, int)
        for hole in array.holes:
            holes[hole] += 1
        assert np.array_equal(holes, values == 0)


def test_a_group_is_counted_with_the_arrays_that_have_the_dimension(tmp_path):
    root = zarrdask.create_group(tmp_path / "data.zarr")
    with_holes(root.store, component="a/t")
    root.create_array("x", shape=8, dtype="f4", chunks=8, dimension_names=("x",))
    root.create_array("scalar", shape=(), dtype="f4")[...] = 1
    report = zarrdask.inventory(root, expect={"time": slice(0, 10)})
    assert report.ok
    assert [(array.path, array.stored, array.expected) for array in report.arrays] == [
        ("a/t", 13, 10),
        ("scalar", 1, 0),
        ("x", 0, 0),
    ]
    assert zarrdask.inventory(root, expect="*/t").missing == 7
    assert zarrdask.inventory(root, expect=...).missing == 8


@for_each("expect", [{"tme": slice(0, 2)}, "b/*", slice(0, 2)])
def test_an_expectation_that_concerns_no_array_is_an_error(expect):
    root = zarrdask.create_group({})
    root.create_array("x", shape=8, dtype="f4", dimension_names=("x",))
    with pytest.raises(SelectionError, match="no array or dimension"):
        zarrdask.inventory(root, expect=expect)


@for_each("axis", ["tme", 2, -3, True, None, 1.5])
def test_an_axis_that_no_array_has_is_an_error(axis):
    with pytest.raises(SelectionError, match=r"^axis: no array has such an axis.*'time', 'x'"):
        zarrdask.inventory(with_holes({}), axis=axis)
    root = zarrdask.create_group({})
    root.create_array("y", shape=8, dtype="f4", dimension_names=("y",))
    root.create_array("x", shape=8, dtype="f4", dimension_names=("x",))
    with pytest.raises(SelectionError, match=r"^axis: no array has such an axis.*'x', 'y'"):
        zarrdask.inventory(root, axis=axis)


def test_arrays_without_the_append_dimension_are_counted_along_the_first_axis():
    root = zarrdask.create_group({})
    root.create_array("t", shape=(4, 8), dtype="f4", dimension_names=("x", "time"))
    root.create_array("x", shape=8, dtype="f4", dimension_names=("x",))
    root.create_array("scalar", shape=(), dtype="f4")
    arrays = zarrdask.inventory(root, axis="time").arrays
    assert {each.path: each.dimension for each in arrays} == {"t": "time", "x": "x", "scalar": None}


@for_each("expect", [3, (slice(0, 2),) * 3, {"tme": slice(0, 2)}, slice(0, 9, 2), "auto"])
def test_errors_of_what_is_expected_name_the_argument(expect):
    with pytest.raises(SelectionError, match=r"^expect: "):
        zarrdask.inventory(with_holes({}), expect=expect)


def test_an_expected_region_beyond_the_array_is_an_error():
    with pytest.raises(SelectionError, match=r"^expect: .*extends beyond"):
        zarrdask.inventory(with_holes({}), expect={"time": slice(0, 99)})


def test_chunks_of_fill_values_only_are_counted_on_request():
    with dask.config.set({"zarrdask.write-empty-chunks": True}):
        z = with_holes({})
        z[10:12] = 0
    assert zarrdask.inventory(z).arrays[0].fill_only is None
    assert zarrdask.inventory(z, fill_only=True).arrays[0].fill_only >= 2


def test_a_chunk_that_does_not_decode_is_a_problem_where_chunks_are_decoded():
    z = with_holes({})
    z.store.set("c/0/0", b"damaged")
    assert zarrdask.inventory(z).ok
    report = zarrdask.inventory(z, fill_only=True)
    assert [problem.key for problem in report.problems] == ["c/0/0"]
    assert not report.ok


def test_metadata_that_are_not_valid_are_a_problem(tmp_path):
    root = zarrdask.create_group(tmp_path / "data.zarr")
    with_holes(root.store, component="good")
    (tmp_path / "data.zarr/bad").mkdir()
    (tmp_path / "data.zarr/bad/zarr.json").write_text("{")
    report = zarrdask.inventory(root)
    assert ([a.path for a in report.arrays], report.ok) == (["good"], False)


def test_the_report_prints_and_is_json():
    report = zarrdask.inventory(with_holes({}), expect=...)
    assert "  missing: time=10:14, x=0:8" in str(report)
    assert str(report).splitlines()[-1].startswith("NOT OK: 7 of 20 expected chunks missing")
    assert "\n" not in repr(report)
    values = json.loads(json.dumps(report.to_dict()))
    assert values["arrays"][0]["holes"] == [[[10, 14], [0, 8]], [[14, 20], [4, 8]]]
    assert "<svg" in report._repr_html_()


def test_a_store_that_can_not_be_listed_is_an_error():
    z = with_holes(UnlistedStore())
    with pytest.raises(UnsupportedError):
        zarrdask.inventory(z)


@for_each("fill_only", [False, True])
def test_a_torn_shard_counts_as_damaged(fill_only):
    store = {}
    z = zarrdask.create_array(store, "a", shape=(8, 8), dtype="i4", chunks=2, shards=4)
    z[...] = 1
    zarrdask.create_array(store, "b", shape=4, dtype="i4", chunks=2)[...] = 1
    store["a/c/0/1"] = b""
    store["a/c/1/1"] = bytes(store["a/c/1/1"])[:-1] + b"\0"
    report = zarrdask.inventory(store, expect="a", fill_only=fill_only)
    array = report.arrays[0]
    assert (array.stored, array.nchunks_stored, array.missing) == (4, 8, 8)
    assert report.arrays[1].stored == 2
    assert not report.ok
    kinds = {(problem.kind, problem.key) for problem in report.problems}
    assert kinds == {("truncated", "a/c/0/1"), ("corrupt", "a/c/1/1")}
    assert zarrdask.inventory(store, per="shard").ok
