"""What a rechunk is planned to do, and what it refuses."""

import uuid

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.cases import same
from tests.parallel.rewrite.arrays import (
    VALUES,
    columns,
    keys,
    quietly,
    stored,
)
from tests.parallel.rewrite.layouts import LAYOUTS, each_way
from zarrdask.formats.grids.axis import Even, axis_of
from zarrdask.storage.memory import MemoryStore


@for_each("region", [np.s_[3:17, 4:29], np.s_[6:12], np.s_[5:5], np.s_[:, 29:]])
@for_each("layout", ["regular", "sharded", "rectilinear", "rectilinear shards"])
def test_a_part_of_the_source(region, layout):
    source = stored(**LAYOUTS[layout])
    options = {"chunks": (7, 2), "source_region": region, "scheduler": "sync", "shards": False}
    for array in each_way(lambda: zarrdask.rechunk(source, MemoryStore(), **options)):
        same(array[...], VALUES[region])


def test_a_part_by_the_names_of_its_axes():
    source = stored(dimension_names=("y", "x"))
    plan = zarrdask.rechunk(source, {}, chunks=(5, 5), source_region={"x": slice(3, 9)})
    same(quietly(plan)[...], VALUES[:, 3:9])


def test_the_chunks_of_a_part_begin_where_it_begins():
    for start, expected in {3: Even(6, 3), 1: axis_of(8, (2, 3, 3))}.items():
        region = np.s_[start:9]
        plan = zarrdask.rechunk(stored(chunks=(3, 30)), {}, chunks=(5, 5), source_region=region)
        assert plan.grids.source[0] == expected


@pytest.mark.parametrize("region", [np.s_[::2], np.s_[3], np.s_[0:3, 0:3, 0:3]])
def test_a_part_that_does_not_fit_is_refused(region):
    with pytest.raises(zarrdask.errors.SelectionError, match=r"^source_region: "):
        zarrdask.rechunk(stored(), {}, chunks=(5, 5), source_region=region)


@for_each(
    ("options", "match"),
    [
        ({"append": 2}, "append"),
        ({"append": "z"}, "append"),
        ({"append": 0, "chunks": (2, 2)}, "append.*chunks"),
        ({"append": 0, "dtype": "f4"}, "append.*dtype"),
        ({"append": 0, "source_region": np.s_[:, :4]}, "append"),
    ],
)
def test_what_can_not_be_appended_is_refused(options, match):
    target = MemoryStore()
    stored(target, values=VALUES[:10], chunks=(4, 4))
    with pytest.raises(zarrdask.ZarrdaskError, match=match):
        zarrdask.rechunk(stored(), target, **options)


@pytest.mark.parametrize(
    ("source", "target"), [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("", "a"), ("a", "")]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_target_in_the_source_or_around_it_is_refused(tmp_path, source, target, overwrite):
    stored(tmp_path / source)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.rechunk(tmp_path / source, tmp_path / target, chunks=(2, 2), overwrite=overwrite)
    same(zarrdask.open_array(tmp_path / source)[...], VALUES)


BLOCKS = {
    "aligned": (24, 2),
    "rows": (3, 30),
    "uneven": ((1, 20, 3), (30,)),
    "one": (24, 30),
}


@for_each("blocks", BLOCKS.values())
@for_each("scheduler", ["sync", "threads"])
def test_a_dask_array_is_stored_with_other_chunks(blocks, scheduler):
    x = da.from_array(VALUES, chunks=blocks)
    target = MemoryStore()
    plan = zarrdask.rechunk(x, target, chunks=(24, 2), scheduler=scheduler)
    array = quietly(plan, scheduler)
    same(array[...], VALUES)
    assert array.chunks == (24, 2)
    assert len(keys(target)) == 1 + 15
    direct = blocks in (BLOCKS["aligned"], BLOCKS["one"])
    assert (plan.scheme.name == "blocks as they are") == direct


def test_far_away_requests_cost_more_and_values_are_in_memory_twice():
    url = f"memory://{uuid.uuid4().hex}"
    stored(f"{url}/a")
    plan = columns(f"{url}/a", f"{url}/b")
    assert plan.target.node.store.capabilities.costs.overlaps
    near = columns(stored())
    assert plan.costs.request > near.costs.request
    assert (plan.costs.copies, near.costs.copies) == (2, 1)
    same(quietly(plan)[...], VALUES)


@for_each("max_mem", ["many", None, "3 apples", [1]])
def test_memory_that_is_no_size_is_refused(max_mem):
    with pytest.raises(zarrdask.errors.MetadataError, match="max_mem"):
        zarrdask.rechunk(stored(), {}, max_mem=max_mem)


def test_too_little_memory_is_refused_before_anything_is_written():
    target = MemoryStore()
    with pytest.raises(zarrdask.errors.MetadataError, match=r"max_mem.*at least 912 bytes"):
        zarrdask.rechunk(stored(), target, chunks=(24, 2), max_mem=911)
    assert keys(target) == []
    plan = zarrdask.rechunk(stored(), target, chunks=(24, 2), max_mem=912)
    assert keys(target) == []
    same(quietly(plan)[...], VALUES)


def test_a_dask_array_that_reads_the_target_is_refused(tmp_path):
    array = zarrdask.create_array(tmp_path / "a", shape=(6, 6), dtype="i4", chunks=2)
    array[...] = 7
    x = zarrdask.from_zarr(tmp_path / "a") + 1
    with pytest.raises(zarrdask.errors.NodeExistsError, match="reads the array that would be"):
        zarrdask.rechunk(x, tmp_path / "a", chunks=(3, 3), overwrite=True)
    assert (zarrdask.open_array(tmp_path / "a")[...] == 7).all()
