"""rechunk: what is rewritten, by which ways, in how many requests, and what is left of it."""

import uuid
from collections import Counter
from dataclasses import replace
from io import StringIO

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering, for_each
from tests.parallel.graph.cases import explained, same
from tests.parallel.rewrite.arrays import (
    SHAPE,
    VALUES,
    Breaking,
    Counted,
    broken,
    by,
    columns,
    data_of,
    keys,
    quietly,
    stored,
)
from tests.parallel.rewrite.layouts import LAYOUTS, each_way
from tests.parallel.rewrite.rewrites import rewrite
from tests.storage.faults import Faults, FaultyStore
from zarrdask.parallel.execution import executor
from zarrdask.parallel.execution.workspace import release
from zarrdask.parallel.rewrite import array_plan
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

WAYS = ("one pass", "two passes", "three passes")


def check(case, source, plan, scheduler):
    """Execute a plan, and check that the same is there in the end, and nothing else."""
    expected = source[...]
    array = quietly(plan, scheduler)
    assert array.dtype.newbyteorder("=") == source.dtype.newbyteorder("=")
    same(array[...], expected.astype(array.dtype))
    same(zarrdask.open_array(plan.target.node.store)[...], array[...])
    assert not [key for key in keys(plan.target.node.store) if "rewrite" in key], case


@for_each("seeds", [range(n, n + 4) for n in range(0, 16, 4)])
def test_any_array_becomes_any_other_by_each_way(seeds):
    for seed in seeds:
        case = rewrite(seed)
        with explained(case):
            source = case.stored(MemoryStore())
            for plan in case.plans(source, MemoryStore, scheduler="sync"):
                check(case, source, plan, "sync")


@pytest.mark.parametrize("seed", range(100, 102))
def test_threads_do_the_same(seed, tmp_path):
    case = rewrite(seed)
    with explained(case), dask.config.set(num_workers=3):
        source = case.stored(tmp_path / "source")
        places = (tmp_path / str(n) for n in range(1000))
        for plan in case.plans(source, lambda: next(places), scheduler="threads"):
            check(case, source, plan, "threads")


def test_processes_do_the_same(tmp_path):
    stored(tmp_path / "a")
    with dask.config.set(num_workers=2, scheduler="processes"):
        plan = columns(tmp_path / "a", tmp_path / "b", scheduler=None)
        assert (plan.costs.threads, plan.costs.processes) == (1, 2)
        same(quietly(plan, None)[...], VALUES)


#: Each layout becomes itself and three others.
CHANGES = [
    (before, (list(LAYOUTS) * 2)[at + step])
    for at, before in enumerate(LAYOUTS)
    for step in (0, 1, 2, 5)
]


@for_each(("before", "after"), CHANGES)
def test_layouts_become_others(before, after):
    source, after = stored(**LAYOUTS[before]), LAYOUTS[after]
    wanted = {key: value for key, value in after.items() if key != "order"}
    wanted = {"shards": False, "zarr_format": 3, "compressors": ()} | wanted
    plan = zarrdask.rechunk(source, MemoryStore(), scheduler="sync", **wanted)
    for scheme in plan.schemes:
        fresh = zarrdask.rechunk(source, MemoryStore(), scheduler="sync", **wanted)
        array = quietly(replace(fresh, schemes=(scheme,)))
        same(array[...], VALUES)
        expected = zarrdask.create_array({}, shape=SHAPE, dtype="i4", **after)
        assert (array.chunks, array.shards) == (expected.chunks, expected.shards)


@for_each(
    "values",
    [
        np.array(5, "f8"),
        np.zeros((0,), "i2"),
        np.zeros((4, 0, 3), "u1"),
        np.arange(24).reshape(2, 3, 4) % 2 == 0,
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
        np.arange(24, dtype="f2").reshape(2, 3, 4),
        np.arange(24).reshape(4, 6).astype("M8[s]"),
        np.array(["a", "bc", "", "é"] * 6).reshape(4, 6),
        np.array([b"a", b"bc", b"", b"d"] * 6).reshape(4, 6),
    ],
)
@for_each("formats", [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_data_types(values, formats):
    source = stored(values=values, chunks=1 if values.ndim else (), zarr_format=formats[0])
    options = {"chunks": (2,) * values.ndim, "zarr_format": formats[1], "scheduler": "sync"}
    for scheme in zarrdask.rechunk(source, {}, **options).schemes:
        plan = zarrdask.rechunk(source, MemoryStore(), **options)
        array = quietly(replace(plan, schemes=(scheme,)))
        np.testing.assert_array_equal(array[...], values)
        assert array.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")


def test_records_are_packed_too():
    values = np.zeros((6, 8), [("x", "i4"), ("y", "f8", (2,))])
    values["x"] = np.arange(48).reshape(6, 8)
    values["y"][..., 1] = values["x"] / 2
    source = stored(values=values, chunks=(1, 8), zarr_format=2)
    for way in WAYS:
        plan = zarrdask.rechunk(source, MemoryStore(), chunks=(6, 1), scheduler="sync")
        np.testing.assert_array_equal(quietly(by(way, plan, 800))[...], values)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_strings_of_any_length_are_not_packed(zarr_format):
    words = np.array([["a" * n + "é" * m for n in range(18)] for m in range(16)], "T")
    source = zarrdask.create_array({}, shape=words.shape, dtype="string", chunks=(1, 18))
    source[...] = words.astype(object)
    options = {"chunks": (16, 1), "zarr_format": zarr_format, "scheduler": "sync"}
    plan = zarrdask.rechunk(source, MemoryStore(), max_mem=600, **options)
    assert [scheme.name for scheme in plan.schemes] == ["one pass"]
    assert "can't be packed" in str(plan)
    assert quietly(plan)[...].tolist() == words.tolist()


@pytest.mark.parametrize("way", WAYS)
def test_another_data_type(way):
    source = stored(values=VALUES.astype("f8") / 2)
    plan = zarrdask.rechunk(source, {}, chunks=(24, 2), dtype="f4", scheduler="sync")
    array = quietly(by(way, plan, 3000))
    same(array[...], (VALUES / 2).astype("f4"))


@pytest.mark.parametrize("way", WAYS)
def test_chunks_that_are_missing_stay_away(way):
    values = VALUES.copy()
    values[:, 10:20] = -1
    source = stored(values=values, fill_value=-1)
    plan = columns(source, way=way)
    same(quietly(plan)[...], values)
    assert len(keys(plan.target.node.store)) == 1 + 10


@pytest.mark.parametrize("way", WAYS)
def test_what_was_never_written_is_the_fill_value(way):
    source = zarrdask.create_array({}, shape=SHAPE, dtype="i4", chunks=(3, 30), fill_value=7)
    source[3:6, 4] = 8
    array = quietly(columns(source, way=way))
    same(array[...], source[...])
    assert array.fill_value == 7
    assert array.nchunks_stored() == 1


def test_another_fill_value_changes_no_element():
    source = zarrdask.create_array({}, shape=SHAPE, dtype="i4", chunks=(3, 30), fill_value=7)
    source[3:6, 4] = 8
    array = quietly(zarrdask.rechunk(source, {}, chunks=(24, 2), fill_value=9))
    assert array.fill_value == 9
    same(array[...], source[...])


def test_attributes_and_names_go_along():
    source = stored(attributes={"units": "m"}, dimension_names=("y", "x"))
    array = quietly(columns(source))
    assert array.attrs == {"units": "m"}
    assert array.dimension_names == ("y", "x")
    array = quietly(columns(source, attributes={}, dimension_names=("a", None)))
    assert array.attrs == {}
    assert array.dimension_names == ("a", None)


@for_each("way", WAYS)
@for_each("case", ["regular", "rectilinear"])
def test_reads_and_writes_are_as_many_as_predicted(way, case):
    store, target = Counted(), Counted()
    source = stored(store, chunks={"regular": (3, 30), "rectilinear": ((1, 9, 14), (30,))}[case])
    plan = columns(source, target, way, memory={"regular": 1500, "rectilinear": 5040}[case])
    store.taken(), target.taken()
    quietly(plan)
    reads, _, _ = store.taken()
    packed, sets, ranges = target.taken()
    units = {key: 1 for key in keys(target) if key.startswith("c/")}
    assert data_of(sets) == units  # each has one writer
    assert len(units) == plan.objects
    assert set(sets.values()) == {1}
    if way == "one pass":
        assert sum(reads.values()) == plan.scheme.requests - plan.objects
        assert not ranges
    else:
        # Every source unit is read once, every packed piece is, too.
        assert set(reads.values()) == {1}
        assert len(reads) == source.nchunks
        assert set(ranges.values()) == {1}
        assert len(reads) + target.pieces + len(sets) == plan.scheme.requests
        assert sum(size for _, _, size in ranges) == sum(
            stage.bytes_read for stage in plan.scheme.stages[1:]
        )
    assert data_of(packed) == {}


def test_one_pass_reads_again_as_much_as_it_says():
    store = Counted()
    plan = columns(stored(store), way="one pass")
    store.taken()
    quietly(plan)
    reads, _, _ = store.taken()
    stage = plan.scheme.stages[0]
    times = stage.regions.size
    assert times > 1
    assert set(reads.values()) == {times}
    assert stage.bytes_read == times * VALUES.nbytes


def test_of_shards_the_inner_chunks_are_read_once_in_two_passes():
    store = Counted()
    source = stored(store, chunks=(3, 5), shards=(12, 15))
    plan = columns(source)
    store.taken()
    quietly(plan)
    reads, _, ranges = store.taken()
    assert not reads
    found = [(key, at, size) for key, at, size in ranges if at >= 0]
    assert sum(size for *_, size in found) == VALUES.nbytes
    assert {ranges[each] for each in found} == {1}


def test_pieces_are_read_in_parts_no_larger_than_a_thread_may_hold():
    target = Counted()
    plan = columns(stored(), target)
    quietly(plan)
    _, _, ranges = target.taken()
    assert max(size for *_, size in ranges) <= plan.scheme.stages[1].costs.slab


@for_each(
    ("before", "after"),
    [
        ({"chunks": (4, 5)}, {"chunks": (4, 5), "shards": (12, 10)}),
        ({"chunks": (4, 5), "shards": (12, 10)}, {"chunks": (4, 5), "shards": False}),
        ({"chunks": (4, 5), "shards": (8, 10)}, {"chunks": (4, 5), "shards": (12, 15)}),
        ({"chunks": (4, 5), "shards": ((8, 16), (10, 20))}, {"chunks": (4, 5), "shards": (12, 15)}),
        ({"chunks": (5, 7), "zarr_format": 2}, {"zarr_format": 3}),
        ({"chunks": (5, 7)}, {"zarr_format": 2}),
        ({"chunks": (5, 7)}, {"zarr_format": "v3-draft"}),
    ],
)
@for_each("far", [False, True])
@for_each("threads", [1, 8])
def test_encoded_bytes_are_moved_where_they_are_the_same(before, after, far, threads):
    store = FaultyStore(MemoryStore(), Faults()) if far else MemoryStore()
    source = stored(store, **{"compressors": "gzip"} | before)
    with dask.config.set(num_workers=threads):
        plan = zarrdask.rechunk(source, MemoryStore(), scheduler="threads", **after)
        assert plan.scheme.name == "bytes as they are"
        same(quietly(plan, "threads")[...], VALUES)


GROWING = {
    "regular": {"chunks": (24, 4)},
    "sharded": {"chunks": (8, 2), "shards": (16, 8)},
    "uneven end": {"chunks": (5, 7)},
    "v2": {"chunks": (5, 7), "zarr_format": 2},
}


@for_each("layout", GROWING.values())
@for_each("old", [(17, 30), (24, 17), (15, 30), (0, 30)])
def test_what_is_new_is_appended(layout, old):
    axis = 0 if old[1] == 30 else 1

    def make():
        target = MemoryStore()
        stored(target, values=VALUES[: old[0], : old[1]], **layout)
        return zarrdask.rechunk(source, target, append=axis - 2, scheduler="sync")

    source = stored()
    for array in each_way(make):
        same(array[...], VALUES)
        assert not [key for key in keys(array.store) if "rewrite" in key]


def test_missing_objects_become_what_the_target_can_store():
    options = {"dtype": object, "filters": [{"id": "vlen-utf8"}], "fill_value": 0}
    source = zarrdask.create_array({}, shape=4, chunks=2, zarr_format=2, **options)
    source[:2] = np.array(["a", "b"], object)
    plan = zarrdask.rechunk(source, {}, chunks=4, zarr_format=3)
    assert quietly(plan)[...].tolist() == ["a", "b", "", ""]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_group_is_rewritten_by_the_same_workers(tmp_path, scheduler, monkeypatch):
    root = zarrdask.create_group(tmp_path / "a")
    for name in "xyz":
        root.create_array(name, shape=4, chunks=2, dtype="i4")[...] = [1, 2, 3, 4]
    started = []
    real = executor.get_scheduler
    monkeypatch.setattr(executor, "get_scheduler", lambda **o: (started.append(o), real(**o))[1])
    plan = zarrdask.rechunk(root, tmp_path / "b", chunks=4, scheduler=scheduler)
    assert len(started) == 1
    found = plan.execute(scheduler, progress=False)
    assert len(started) == 2
    assert [found[name][...].tolist() for name in "xyz"] == [[1, 2, 3, 4]] * 3


def test_an_append_again_when_nothing_is_new_does_nothing():
    source, target = stored(), MemoryStore()
    stored(target, values=VALUES[:10], chunks=(4, 4), dimension_names=("y", "x"))
    same(quietly(zarrdask.rechunk(source, target, append="y"))[...], VALUES)
    before = {key: target.get(key) for key in keys(target)}
    plan = zarrdask.rechunk(source, target, append="y")
    assert plan.tasks == 0
    same(quietly(plan)[...], VALUES)
    assert {key: target.get(key) for key in keys(target)} == before


def test_a_region_is_appended():
    source, target = stored(), MemoryStore()
    stored(target, values=VALUES[:10], chunks=(4, 4))
    plan = zarrdask.rechunk(source, target, append=0, source_region=np.s_[2:5])
    same(quietly(plan)[...], np.concatenate([VALUES[:10], VALUES[2:5]]))


def test_an_append_beside_another_one_is_refused():
    source, target = stored(), MemoryStore()
    stored(target, values=VALUES[:10], chunks=(4, 4))
    plan, other = (zarrdask.rechunk(source, target, append=0) for _ in range(2))
    quietly(plan)
    with pytest.raises(zarrdask.ZarrdaskError, match=r"resized"):
        quietly(other)
    same(zarrdask.open_array(target)[...], VALUES)


def test_what_is_there_is_not_replaced_unless_one_asks():
    source, target = stored(), MemoryStore()
    stored(target, values=-VALUES, chunks=(2, 2))
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.rechunk(source, target, chunks=(24, 2))
    plan = zarrdask.rechunk(source, target, chunks=(24, 2), overwrite=True)
    same(zarrdask.open_array(target)[...], -VALUES)  # not before it is executed
    same(quietly(plan)[...], VALUES)
    assert len(keys(target)) == 1 + 15


def test_a_node_made_meanwhile_is_not_replaced():
    plan = columns(stored())
    stored(plan.target.node.store, values=-VALUES)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        quietly(plan)
    same(zarrdask.open_array(plan.target.node.store)[...], -VALUES)


def test_a_target_beside_the_source(tmp_path):
    root = zarrdask.create_group(tmp_path)
    stored(root.store, "a")
    stored(root.store, "ab", values=-VALUES)
    same(quietly(columns(root["a"], tmp_path / "abc"))[...], VALUES)
    assert sorted(zarrdask.open_group(tmp_path)) == ["a", "ab", "abc"]


@for_each("way", WAYS)
@for_each("zarr_format", [2, 3, "v3-draft", "v3-draft-protocol"])
def test_in_the_end_there_are_the_keys_of_a_plain_write(way, zarr_format):
    options = {"chunks": (24, 2), "compressors": "gzip", "zarr_format": zarr_format}
    plain, target = MemoryStore(), MemoryStore()
    stored(plain, **options, **({"separator": "/"} if zarr_format == 2 else {}))
    plan = zarrdask.rechunk(stored(), target, scheduler="sync", **options)
    same(quietly(by(way, plan, 1500))[...], VALUES)
    assert {key: target.get(key) for key in keys(target)} == {
        key: plain.get(key) for key in keys(plain)
    }


@pytest.mark.parametrize("way", WAYS[1:])
def test_passes_leave_what_the_next_one_reads_elsewhere_if_one_asks(way, tmp_path):
    temp, target = Counted(LocalStore(str(tmp_path))), Counted()
    plan = columns(stored(), target, way, temp=temp)
    same(quietly(plan)[...], VALUES)
    assert sum(temp.sets.values()) == sum(stage.tasks for stage in plan.scheme.stages[:-1])
    assert keys(temp) == []
    _, sets, _ = target.taken()
    assert len(sets) == 15


def test_blocks_of_a_dask_array_are_computed_once():
    computed = Counter()

    def value(block, block_info=None):
        computed[block_info[0]["chunk-location"]] += 1
        return block

    source = da.from_array(VALUES, chunks=(3, 30))
    x = source.map_blocks(value, dtype="i4", meta=np.empty((0, 0), "i4"))
    plan = zarrdask.rechunk(x, MemoryStore(), chunks=(24, 2), scheduler="sync")
    for way in WAYS:
        computed.clear()
        plan = zarrdask.rechunk(x, MemoryStore(), chunks=(24, 2), scheduler="sync")
        same(quietly(by(way, plan, 1500))[...], VALUES)
        assert len(computed) == 8
        assert set(computed.values()) == {1}


@for_each("way", WAYS)
@for_each("works", [0, 1, 3, 7, 12])
def test_what_failed_goes_on_with_the_same_call(way, works):
    source, target = broken(way, works)
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        zarrdask.open_array(target)
    plan = columns(source, target, way)
    same(quietly(plan)[...], VALUES)
    _, sets, _ = target.taken()
    # Only what was not done: at most the task that failed did something before.
    total = plan.objects + sum(stage.tasks for stage in plan.scheme.stages[:-1])
    a_task = max(np.prod(plan.scheme.stages[-1].regions.longest) // (24 * 2), 1)
    assert total - works <= sum(sets.values()) <= total - works + a_task
    assert len(keys(target)) == 1 + 15


def test_an_append_that_failed_goes_on():
    source, target = stored(), Breaking()
    stored(target, values=VALUES[:10], chunks=(4, 4))
    plan = zarrdask.rechunk(source, target, append=0, scheduler="sync")
    target.works = 5
    with pytest.raises(zarrdask.errors.StoreError, match="broken"):
        quietly(plan)
    same(zarrdask.open_array(target)[...], VALUES[:10])
    target.works = 1000
    same(quietly(zarrdask.rechunk(source, target, append=0, scheduler="sync"))[...], VALUES)


def test_what_was_begun_is_replaced_by_another_plan_only_if_one_asks():
    source, target = broken("two passes", 7)
    other = columns(source, target, "two passes", chunks=(24, 3), memory=2000)
    with pytest.raises(zarrdask.errors.StoreError, match="restart=True"):
        quietly(other)
    same(quietly(other, restart=True)[...], VALUES)
    # Nothing of the first one is left.
    assert len(keys(target)) == 1 + 10
    assert zarrdask.open_array(target).chunks == (24, 3)


def test_all_is_done_again_if_one_asks():
    source, target = broken("two passes", 7)
    plan = columns(source, target)
    same(quietly(plan, restart=True)[...], VALUES)
    _, sets, _ = target.taken()
    assert sum(sets.values()) == plan.objects + plan.scheme.stages[0].tasks


def test_another_source_is_another_plan():
    _, target = broken("two passes", 7)
    with pytest.raises(zarrdask.errors.StoreError, match="restart=True"):
        quietly(columns(stored(values=-VALUES), target))


@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_packed_pieces_that_are_gone_are_named(harm):
    source, target = broken("two passes", 12)
    key = next(key for key in keys(target) if "packed" in key)
    if harm == "lost":
        target.erase(key)
    else:
        target.inner.set(key, target.inner.get(key)[:-1])
    with pytest.raises(zarrdask.errors.StoreError, match=r"restart=True") as caught:
        quietly(columns(source, target))
    assert caught.value.key == key
    same(quietly(columns(source, target), restart=True)[...], VALUES)


def test_a_record_that_is_damaged_is_refused():
    source, target = broken("two passes", 12)
    target.set(".zarrdask-rewrite/plan.json", b"rubbish")
    with pytest.raises(zarrdask.errors.StoreError, match=r"plan\.json.*restart=True"):
        quietly(columns(source, target))
    same(quietly(columns(source, target), restart=True)[...], VALUES)


def test_a_chunk_that_is_damaged_is_named():
    source = stored(compressors="gzip")
    source.store.set("c/2/0", b"rubbish")
    for way in WAYS:
        plan = columns(source, way=way)
        with pytest.raises(zarrdask.errors.CodecError) as caught:
            quietly(plan)
        assert caught.value.key.startswith("c/2/0")
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open_array(plan.target.node.store)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("way", WAYS)
def test_stores_that_go_wrong_now_and_then(way, seed, setting):
    setting({"zarrdask.retries": 0})
    faults = Faults(lost=0.01, late=0.01)
    source, inner = stored(), MemoryStore()
    for n in range(100):
        place = FaultyStore(inner, faults, 100 * seed + n)
        try:
            # Where something is already, it is what was made a moment ago.
            array = quietly(columns(source, place, way, overwrite=n > 0))
            break
        except ConnectionResetError:
            continue
    assert array.chunks == (24, 2)
    same(zarrdask.open_array(inner)[...], VALUES)


@covering(strength=1, way=WAYS, places=["memory", "file", "mixed"])
def test_urls(way, places, tmp_path):
    memory = f"memory://{uuid.uuid4().hex}"
    a, b = {
        "memory": (f"{memory}/a", f"{memory}/b"),
        "file": (tmp_path / "a", tmp_path / "b"),
        "mixed": (tmp_path / "a", f"{memory}/b"),
    }[places]
    stored(a)
    plan = columns(str(a), str(b), way)
    same(quietly(plan, "threads")[...], VALUES)
    same(zarrdask.open_array(b)[...], VALUES)
    assert len(keys(plan.target.node.store)) == 1 + 15
    if isinstance(plan.target.node.store, LocalStore):
        assert sorted(file.name for file in (tmp_path / "b").iterdir()) == ["c", "zarr.json"]


def connection_is_lost():
    raise OSError


class TestCluster:
    @pytest.mark.parametrize("way", WAYS)
    def test_it_runs_on_its_workers(self, client, tmp_path, way):
        stored(tmp_path / "a")
        plan = columns(tmp_path / "a", tmp_path / "b", way, scheduler=client)
        assert plan.costs.processes == 2
        same(quietly(plan, client)[...], VALUES)
        assert sorted(file.name for file in (tmp_path / "b").iterdir()) == ["c", "zarr.json"]

    def test_a_worker_that_is_lost_when_its_memory_is_freed_is_no_error(self, client, tmp_path):
        stored(tmp_path / "a")
        client.run(setattr, array_plan, "release", connection_is_lost)
        try:
            plan = columns(tmp_path / "a", tmp_path / "b", "two passes", scheduler=client)
            same(quietly(plan, client)[...], VALUES)
        finally:
            client.run(setattr, array_plan, "release", release)

    def test_it_is_the_scheduler_that_is_current(self, client, tmp_path):
        stored(tmp_path / "a")
        with client.as_current():
            plan = columns(tmp_path / "a", tmp_path / "b", scheduler=None)
            assert plan.costs.processes == 2
            same(quietly(plan, None)[...], VALUES)

    def test_an_address_will_do(self, cluster_address, tmp_path):
        stored(tmp_path / "a")
        plan = columns(tmp_path / "a", tmp_path / "b", scheduler=cluster_address)
        same(quietly(plan, cluster_address)[...], VALUES)

    @pytest.mark.parametrize("where", ["source", "target", "temp"])
    def test_what_is_in_the_memory_of_this_process_is_refused(self, client, tmp_path, where):
        places = {"source": tmp_path / "a", "target": tmp_path / "b", "temp": tmp_path / "t"}
        places[where] = MemoryStore()
        stored(places["source"])
        plan = columns(
            zarrdask.open_array(places["source"]),
            places["target"],
            temp=places["temp"],
            scheduler=client,
        )
        with pytest.raises(zarrdask.errors.StoreError, match="other processes"):
            quietly(plan, client)
        # Before anything is written.
        assert not list(tmp_path.glob("[bt]/**/*"))

    def test_an_error_comes_back_with_its_key(self, client, tmp_path):
        stored(tmp_path / "a", compressors="gzip")
        (tmp_path / "a/c/2/0").write_bytes(b"rubbish")
        with pytest.raises(zarrdask.errors.CodecError) as caught:
            quietly(columns(tmp_path / "a", tmp_path / "b", scheduler=client), client)
        assert caught.value.key.startswith("c/2/0")


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_prints_and_draws_itself(way):
    plan = columns(stored(), way=way)
    assert way in str(plan)
    assert repr(plan).startswith(f"<zarrdask.RechunkPlan (24, 30), {way}, ")
    assert plan._repr_html_().count("<svg") == len(plan.scheme.stages)
    for stage in range(len(plan.scheme.stages)):
        assert f"pass {stage + 1} of {len(plan.scheme.stages)}" in plan.svg(stage)


def test_progress_is_told_where_one_wants_it(capsys):
    out = StringIO()
    plan = columns(stored())
    plan.execute("sync", progress=out)
    last = out.getvalue().split("\r")[-1]
    assert last.startswith("rechunk: 100%")
    columns(stored()).execute("sync")
    assert "100%" in capsys.readouterr().err
    quietly(columns(stored()))
    assert capsys.readouterr() == ("", "")


def test_the_new_node_may_lie_in_the_target():
    target = MemoryStore()
    found = quietly(zarrdask.rechunk(stored(), target, component="new/a", chunks=(24, 2)))
    assert found.path == "new/a"
    same(zarrdask.open_array(target, "new/a")[...], VALUES)


def test_options_of_a_source_that_is_open_are_refused():
    x = zarrdask.from_zarr(stored())
    with pytest.raises(zarrdask.errors.MetadataError, match=r"source_options.*anon"):
        zarrdask.rechunk(x, MemoryStore(), chunks=(24, 2), source_options={"anon": True})
