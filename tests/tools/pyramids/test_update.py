"""``update_pyramid``: levels follow a region write or an append to level 0."""

import json
import shutil

import numpy as np
import pytest

import zarrdask
from tests.tools.pyramids.reference import reference
from zarrdask.errors import MetadataError, SelectionError, StoreError
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.wrapper import WrappedStore


class WrittenKeys(WrappedStore):
    """A store that counts the keys that are written."""

    def __init__(self, inner):
        super().__init__(inner)
        self.keys = []

    def set(self, key, value):
        self.keys.append(key)
        self.inner.set(key, value)


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype("u1")


def built(store, values, **options):
    image = zarrdask.create_array({}, shape=values.shape, dtype="u1", chunks=8)
    image[...] = values
    plan = zarrdask.pyramid(image, store, factors=(2,) * values.ndim, levels=3, **options)
    return plan.execute("sync", progress=False)


def check(group, values, borders="trim"):
    for number, level in enumerate(reference(values, [(2,) * values.ndim] * 2, "mean", borders)):
        np.testing.assert_array_equal(group[str(number)][...], level, str(number))


def test_only_chunks_that_the_change_reaches_are_written():
    values, store = numbers((64, 64)), WrittenKeys(MemoryStore())
    group = built(store, values)
    values[3:18, 40:42] = 200
    group["0"][3:18, 40:42] = values[3:18, 40:42]
    store.keys.clear()
    zarrdask.update_pyramid(group, region=(slice(3, 18), slice(40, 42))).execute(
        "sync", progress=False
    )
    chunks = {key for key in store.keys if "/c/" in key and not key.startswith(".")}
    assert chunks == {"1/c/0/2", "1/c/1/2", "2/c/0/1"}
    check(group, values)


@pytest.mark.parametrize("borders", ["trim", "pad", "partial"])
def test_levels_grow_with_level_0(borders):
    values, store = numbers((21, 13)), MemoryStore()
    group = built(store, values, borders=borders)
    more = numbers((9, 13), 1)
    group["0"].append(more)
    group = zarrdask.update_pyramid(store).execute("sync", progress=False)
    check(group, np.concatenate([values, more]), borders)
    group["0"].resize((11, 13))
    check(zarrdask.update_pyramid(store).execute(progress=False), values[:11], borders)


def test_levels_shrink_with_level_0_and_leave_nothing():
    values, store = numbers((32, 32)), {}
    group = built(store, values)
    group["0"].resize((12, 32))
    check(zarrdask.update_pyramid(group).execute("sync", progress=False), values[:12])
    assert not zarrdask.verify(store).problems


def test_levels_of_an_array_that_is_or_becomes_empty_get_its_shape():
    values, store = numbers((32, 32)), {}
    group = built(store, values)
    for shape in (0, 32), (0, 48), (16, 48):
        group["0"].resize(shape)
        zarrdask.update_pyramid(store).execute("sync", progress=False)
        assert not zarrdask.verify(store).problems
        check(zarrdask.open_group(store), np.zeros(shape, "u1"))


def test_an_update_checks_what_is_recorded_and_the_region():
    group = built(MemoryStore(), numbers((16, 16)))
    with pytest.raises(SelectionError, match="region"):
        zarrdask.update_pyramid(group, region=(slice(0, 4),) * 3).execute(progress=False)
    with pytest.raises(MetadataError, match="there is no record"):
        zarrdask.update_pyramid(zarrdask.create_group({})).execute(progress=False)
    omitted = built(MemoryStore(), numbers((16, 16)), level_0="omit")
    with pytest.raises(MetadataError, match="level 0"):
        zarrdask.update_pyramid(omitted).execute(progress=False)


@pytest.mark.parametrize("place", ["memory", "local", "zip"])
def test_values_that_were_overwritten_are_noticed_and_only_they_are_updated(place, tmp_path):
    values, inner = numbers((64, 64)), MemoryStore()
    if place != "memory":
        inner = tmp_path / {"local": "a.zarr", "zip": "a.zip"}[place]
    built(inner, values)
    assert zarrdask.verify(inner).ok
    values[3:18, 40:42] = 200
    zarrdask.open_array(inner, "0", mode="r+")[3:18, 40:42] = values[3:18, 40:42]
    [problem] = zarrdask.verify(inner).failures
    assert problem.kind == "stale"
    assert "1, 2; changes in 3 of 64 chunks or shards of 0" in problem.message
    store = WrittenKeys(inner) if place == "memory" else inner
    zarrdask.update_pyramid(store).execute("sync", progress=False)
    if place == "memory":
        chunks = {key for key in store.keys if "/c/" in key and not key.startswith(".")}
        assert chunks == {"1/c/0/2", "1/c/1/2", "2/c/0/1"}
    assert zarrdask.verify(inner).ok
    check(zarrdask.open_group(inner), values)


def test_an_update_is_planned_before_anything_is_written():
    values = numbers((64, 64))
    group = built({}, values)
    plan = zarrdask.update_pyramid(group)
    assert (plan.is_needed, plan.plan, "up to date" in str(plan)) == (False, None, True)
    group["0"][8:10, 5] = values[8:10, 5] = 3
    plan = zarrdask.update_pyramid(group)
    assert plan.region == (slice(8, 16, 1), slice(0, 8, 1))
    assert ("y=8:16, x=0:8 of level 0" in str(plan), plan.to_dict()["plan"]["target"]) == (
        True,
        group.node_path.location,
    )
    assert not zarrdask.verify(group).ok
    check(plan.execute("sync", progress=False), values)
    group["0"].resize((32, 64))
    plan = zarrdask.update_pyramid(group)
    assert plan.is_needed
    zarrdask.update_pyramid(group).execute("sync", progress=False)
    with pytest.raises(StoreError, match="plan it again"):
        plan.execute("sync", progress=False)


def test_regions_that_an_update_does_not_name_stay_stale():
    values = numbers((64, 64))
    group = built({}, values)
    values[:4], values[60:] = 1, 2
    group["0"][...] = values
    zarrdask.update_pyramid(group, region=(slice(0, 4), slice(0, 64))).execute(progress=False)
    assert not zarrdask.verify(group).ok
    check(zarrdask.update_pyramid(group).execute(progress=False), values)
    assert zarrdask.verify(group).ok


def test_verify_reports_levels_that_are_missing_or_have_another_shape():
    store = {}
    group = built(store, numbers((16, 16)))
    group["2"].resize((2, 2))
    assert "2 had shape" in zarrdask.verify(store).failures[0].message
    zarrdask.update_pyramid(group).execute(progress=False)
    assert zarrdask.verify(store).ok
    del group["2"]
    assert "missing levels: 2" in zarrdask.verify(store).failures[0].message


def test_verify_reports_levels_that_do_not_fit_the_shape_of_level_0():
    store = MemoryStore()
    group = built(store, numbers((16, 16)))
    assert zarrdask.verify(store).ok
    assert not zarrdask.verify(store).problems
    group["0"].append(numbers((4, 16)))
    [problem] = zarrdask.verify(store).problems
    assert problem.kind == "stale"
    zarrdask.update_pyramid(store).execute(progress=False)
    assert not zarrdask.verify(store).problems


@pytest.mark.parametrize("is_file", [True, False])
def test_verify_reports_chunks_of_level_0_that_can_not_be_read(tmp_path, is_file):
    built(tmp_path, numbers((16, 16)))
    chunk = tmp_path / "0/c/1/1"
    if is_file:
        shutil.rmtree(chunk.parent)
        chunk.parent.write_bytes(b"")
    else:
        chunk.unlink()
        chunk.mkdir()
    [problem] = zarrdask.verify(tmp_path).failures
    assert problem.kind == "unreadable"


def test_a_pyramid_of_one_level_is_never_stale():
    image = zarrdask.create_array({}, shape=(4, 4), dtype="u1", chunks=2)
    group = zarrdask.pyramid(image, {}, levels=1).execute(progress=False)
    group["0"][...] = 1
    assert zarrdask.verify(group).ok


def test_attributes_of_maps_follow_an_append():
    image = zarrdask.create_array(
        {}, shape=(8, 8), dtype="u1", chunks=4, dimension_names=("y", "x")
    )
    group = zarrdask.pyramid(
        image,
        {},
        levels=2,
        convention="geozarr",
        crs=zarrdask.conventions.Crs(code="EPSG:32633"),
        transform=np.array([10.0, 0, 0, 0, -10, 0]),
    ).execute("sync", progress=False)
    group["0"].append(np.ones((4, 8), "u1"))
    updated = zarrdask.update_pyramid(group).execute("sync", progress=False)
    assert updated.attrs["spatial:bbox"] == [0.0, -120.0, 80.0, 0.0]
    assert updated.attrs["proj:code"] == "EPSG:32633"


def test_a_pyramid_of_one_level_has_nothing_to_update():
    values, store = numbers((8, 8)), {}
    image = zarrdask.create_array({}, shape=values.shape, dtype="u1", chunks=8)
    group = zarrdask.pyramid(image, store, levels=1).execute("sync", progress=False)
    group["0"].append(values)
    zarrdask.update_pyramid(group).execute("sync", progress=False)
    assert zarrdask.verify(store).ok


@pytest.mark.parametrize(
    "members",
    [
        {"method": "best"},
        {"borders": 3},
        {"levels": []},
        {"levels": [["0", 3, 4]]},
        {"levels": [["0", [8, 8], [1, 1]], ["1", [4, 4], [0, 2]]]},
        {"levels": [["0", [8, 8], [1, 1]], ["1", [4], [2]]]},
        {"levels": [["0", [8, 8], [1, 1]], ["1", [4.0, 4.0], [2, 2]]]},
        {"levels": [[0, [8, 8], [1, 1]], ["1", [4, 4], [2, 2]]]},
        {"levels": [["0", [8, 8], [2, 2]], ["1", [4, 4], [3, 3]]]},
        {"levels": {"0": 1}},
        {"missing": [1]},
        {"missing": {"values": ["x"], "has_nan": True, "result": None}},
        {"has_level_0": "no"},
        {"convention": ["ome"]},
        {"details": 7},
        {"versions": [1]},
    ],
)
def test_a_damaged_record_is_an_error(members):
    store = {}
    built(store, numbers((16, 16)))
    record = json.loads(store[".zarrdask/pyramid.json"])
    store[".zarrdask/pyramid.json"] = json.dumps({**record, **members}).encode()
    with pytest.raises(MetadataError, match="record of a pyramid is damaged"):
        zarrdask.update_pyramid(store).execute(progress=False)
    zarrdask.verify(store)
