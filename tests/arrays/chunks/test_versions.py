"""Versions of the chunks and shards of an array."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import zarrdask
from zarrdask.arrays.chunks import versions
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.nodes.array import chunks_of


def array(store, shape=(20, 6), **options):
    z = zarrdask.create_array(store, shape=shape, dtype="u1", chunks=(2,) * len(shape), **options)
    z[...] = 1
    return z


def versions_of(z, like=None):
    found = UnitVersions.of(chunks_of(z), like)
    return UnitVersions.from_json(json.loads(json.dumps(found.to_json())))


@pytest.mark.parametrize("limit", [2**14, 7])
@pytest.mark.parametrize("kind", ["listed", "checksums"])
def test_groups_of_units_that_have_changed_are_found(tmp_path, monkeypatch, kind, limit):
    monkeypatch.setattr(versions, "MAX_GROUPS", limit)
    z = array(tmp_path / "a" if kind == "listed" else {})
    before = versions_of(z)
    assert bool(before.location) == (kind == "listed")
    assert before.digests.size <= limit
    z[8, 3] = 5
    now = versions_of(z, before)
    group = tuple(i // n for i, n in zip((4, 1), now.lengths, strict=True))
    assert np.argwhere(before.changed(now)).tolist() == [list(group)]
    assert not now.changed(now).any()


def test_versions_before_an_append_are_those_of_larger_groups(tmp_path, monkeypatch):
    z = array(tmp_path / "a")
    before = versions_of(z)
    z.append(np.ones((20, 6), "u1"))
    monkeypatch.setattr(versions, "MAX_GROUPS", 12)
    now = versions_of(z)
    assert now.lengths != before.lengths
    rows = before.changed(now).any(axis=1).nonzero()[0] * now.lengths[0] * 2
    assert rows.min() == 20 // (2 * now.lengths[0]) * 2 * now.lengths[0]
    assert rows.max() + 2 * now.lengths[0] >= 40


def test_an_array_without_axes_has_versions(tmp_path):
    z = array(tmp_path / "a", shape=())
    before = versions_of(z)
    assert not before.changed(versions_of(z))
    z[...] = 2
    assert before.changed(versions_of(z)).shape == ()
    assert before.changed(versions_of(z))


def test_versions_say_nothing_of_a_copy(tmp_path):
    before = versions_of(array(tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert before.changed(versions_of(zarrdask.open_array(tmp_path / "b"))) is None
    assert before.changed(versions_of(array({}))) is None
    (tmp_path / "a").rename(tmp_path / "c")
    moved = zarrdask.open_array(tmp_path / "c", mode="r+")
    moved[0, 0] = 9
    assert before.changed(versions_of(moved)).sum() == 1


def test_what_is_stored_of_an_empty_array_has_changed():
    z = zarrdask.create_array({}, shape=(20, 6), dtype="u1", chunks=2)
    listed = replace(
        versions_of(z), location="a hash"
    )  # as of a store whose listings have no ETags
    z[8, 3] = 5
    assert np.argwhere(listed.changed(versions_of(z, listed))).tolist() == [[4, 1]]


@pytest.mark.parametrize(
    "value",
    [3, {}, {"group": [3], "counts": [1], "digests": "", "place": ""}],
)
def test_damaged_versions_are_an_error(value):
    with pytest.raises((ValueError, TypeError, KeyError)):
        UnitVersions.from_json(value)
