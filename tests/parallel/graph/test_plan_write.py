"""`plan_write`: what a write would do, without doing it."""

import tracemalloc
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from zarrdask.errors import MetadataError, NodeTypeError, SelectionError


@pytest.fixture
def stored():
    """An array of chunks of 64."""
    return zarrdask.create_array({}, shape=(150, 4), chunks=(64, 4), dtype="f8")


def test_the_target_can_be_named_in_many_ways(stored, tmp_path):
    x = da.ones((150, 4), chunks=(50, 4))
    zarrdask.create_array(tmp_path / "a", shape=(150, 4), chunks=(64, 4), dtype="f8")
    zarrdask.create_group(tmp_path / "g").create_array(
        "a", shape=(150, 4), chunks=(64, 4), dtype="f8"
    )
    there = [
        zarrdask.plan_write(x, stored),
        zarrdask.plan_write(x, stored.metadata),
        zarrdask.plan_write(x, tmp_path / "a"),
        zarrdask.plan_write(x, str(tmp_path / "g"), component="a"),
    ]
    new = [
        zarrdask.plan_write(x, chunks=(64, 4)),
        zarrdask.plan_write(x, tmp_path / "a", chunks=(64, 4)),
        zarrdask.plan_write(x, tmp_path / "new", chunks=(64, 4)),
    ]
    assert {plan.blocks for plan in [*there, *new]} == {((64, 64, 22), (4,))}
    assert len({str(plan) for plan in there}) == len({str(plan) for plan in new}) == 1
    # What the last unit holds beyond an array that is there is kept.
    assert {(plan.whole, plan.merged, plan.read_modify_write) for plan in there} == {(0, 2, 1)}
    assert {(plan.whole, plan.merged, plan.read_modify_write) for plan in new} == {(1, 2, 0)}
    assert there[0].unit((2, 0)).why == (
        "it is written in part: 128:150 of 128:150 (extends beyond the array) along axis 0"
    )


def test_a_new_array_follows_the_blocks_as_to_zarr_makes_it(tmp_path):
    x = da.ones((150, 4), chunks=(50, 4))
    for plan in (zarrdask.plan_write(x), zarrdask.plan_write(x, tmp_path / "new")):
        assert plan.blocks == x.chunks
        assert (plan.whole, plan.objects) == (3, 3)
    assert not (tmp_path / "new").exists()


def test_nothing_is_written(stored, tmp_path):
    zarrdask.plan_write(da.ones((150, 4)), stored)
    assert stored.nchunks_stored() == 0


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ({"chunks": (8, 4), "shards": (32, 4)}, (32, 4)),
        ({"chunks": (8, 4), "shards": (32, 4), "zarr_format": "v3-draft-protocol"}, (32, 4)),
        ({"chunks": ((100, 50), 4)}, None),
    ],
)
def test_units_are_what_one_object_holds(options, unit):
    x = da.ones((150, 4), chunks=(50, 4))
    plan = zarrdask.plan_write(x, **options)
    if unit is None:
        assert plan.blocks == ((100, 50), (4,))
    else:
        assert plan.objects == -(-150 // unit[0])
        assert all(n % unit[0] == 0 for n in plan.blocks[0][:-1])


def test_irregular_blocks_are_units_of_a_rectilinear_grid():
    x = da.ones((90, 4), chunks=((31, 28, 31), 4))
    plan = zarrdask.plan_write(x, grid="rectilinear")
    assert (plan.blocks, plan.objects, plan.whole) == (x.chunks, 3, 3)
    assert zarrdask.plan_write(x).blocks == ((31, 31, 28), (4,))


def test_regions_are_those_of_to_zarr(stored):
    x = da.ones((60, 4), chunks=(30, 4))
    plan = zarrdask.plan_write(x, stored, region=slice(40, 100))
    assert plan.region == (slice(40, 100, 1), slice(0, 4, 1))
    assert (plan.blocks, plan.read_modify_write) == (((24, 36), (4,)), 2)
    named = zarrdask.create_array(
        {}, shape=(150, 4), chunks=(64, 4), dtype="f8", dimension_names=("t", "x")
    )
    assert str(zarrdask.plan_write(x, named, region={"t": slice(40, 100)})).count("\nt ") == 1
    with pytest.raises(SelectionError):
        zarrdask.plan_write(x, stored)
    with pytest.raises(SelectionError):
        zarrdask.plan_write(x, stored, region=slice(0, 120, 2))


def test_all_that_has_chunks_can_be_planned(stored):
    same = zarrdask.plan_write(stored, chunks=(32, 4))
    assert same.source == ((64, 64, 22), (4,))
    other = SimpleNamespace(shape=(150, 4), dtype="f8", chunks=50)
    assert zarrdask.plan_write(other, stored).source == ((50, 50, 50), (4,))
    lists = SimpleNamespace(shape=(150, 4), dtype=np.dtype("f8"), chunks=((100, 50), np.array([4])))
    assert zarrdask.plan_write(lists, stored).source == ((100, 50), (4,))


def test_sizes_must_be_known(stored):
    x = da.ones(10, chunks=5)
    with pytest.raises(MetadataError, match="compute_chunk_sizes"):
        zarrdask.plan_write(x[x > 0])


def test_a_group_is_no_target(tmp_path):
    zarrdask.create_group(tmp_path)
    with pytest.raises(NodeTypeError, match="group"):
        zarrdask.plan_write(da.ones(3), tmp_path)


@covering(
    strength=1,
    start=[0, 100],
    options=[
        {"compressors": []},
        {"compressors": "zstd"},
        {"compressors": "blosc", "order": "F"},
        {"codecs": ["bytes", "zstd", "crc32c"]},
        {"shards": (512, 512), "chunks": (64, 64)},
        {"zarr_format": 2, "filters": [{"id": "shuffle", "elementsize": 4}]},
    ],
)
def test_a_task_holds_no_more_than_the_plan_says(tmp_path, start, options):
    region = (slice(start, start + 1024),) * 2
    options = {"chunks": (512, 512), "dtype": "f4"} | options
    z = zarrdask.create_array(tmp_path, shape=(1500, 1500), **options)
    rng = np.random.default_rng(0)
    z[...] = rng.random(z.shape, np.float32)
    values = rng.random((1024, 1024), np.float32)
    plan = zarrdask.plan_write(da.from_array(values, chunks=1024), z, region=region)
    assert plan.tasks == 1
    with dask.config.set({"zarrdask.threads": 1}):
        z[region] = values  # what a thread makes for good is no matter
        # Nor is what other threads of this process take now and then.
        peak = min(peak_of(lambda: z.__setitem__(region, values)) for _ in range(3))
    assert values.nbytes + peak <= plan.peak


def peak_of(action):
    """Return the most memory that there was at a time, in bytes, of what an action made."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
