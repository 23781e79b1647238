"""What zarrdask promises of object stores, at servers that are not ours."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.interop.servers.rows import COMPLETE, CONDITIONAL, Place, conditional, place, servers
from tests.processes import Program
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.locks.unchanged import change_if_unchanged
from zarrdask.storage.remote.retry import retrying

__all__ = ["conditional", "place", "servers"]

pytestmark = pytest.mark.filterwarnings(
    # adlfs leaves its client open at the end.
    "ignore:Unclosed:ResourceWarning",
    "ignore:unclosed:ResourceWarning",
    # Without conditional writes. `test_parts_of_chunks_are_warned_of` is about it.
    "ignore:.*can't detect another machine:UserWarning",
)

VALUES = np.arange(13 * 20, dtype="f4").reshape(13, 20)
#: By format: the members of a group have the same.
LAYOUTS = {3: ({"chunks": (5, 8)}, {"chunks": (2, 4), "shards": (6, 8)}), 2: ({},)}
#: The rows of tests of many requests: the emulator of Google answers one after another, and the
#: listing of a thousand keys by fsspec takes as long, which other work beside them makes minutes.
MANY_REQUESTS = (*COMPLETE, pytest.param(("google", "fsspec"), marks=pytest.mark.stress))
MANY_KEYS = [
    pytest.param(row, marks=pytest.mark.stress) if row[1] == "fsspec" else row for row in COMPLETE
]
WRITER = """
import json, sys
import dask, dask.array as da, numpy as np, zarrdask
url, options, remote, locks, first = sys.argv[1:]
options = json.loads(options)
with dask.config.set({"zarrdask.remote": remote, "zarrdask.lock-directory": locks}):
    group = zarrdask.open_group(url, mode="r+", storage_options=options)
    z, chunk = group["x"], group["chunk"]
    for number in range(3):
        rows = np.full((2, 3), 2 * number + int(first))
        z.append(rows) if number % 2 else zarrdask.append(da.from_array(rows), z)
        z.attrs[f"{first}-{number}"] = group.attrs[f"{first}-{number}"] = number
        chunk[2 * number + int(first)] = number + 1
"""


def codecs_for(place: Place) -> dict[str, tuple[()]]:
    """Return no compressor for the emulator of Google, which takes a CR off the end of a value."""
    return {"compressors": ()} if place.server == "google" else {}


def test_what_is_promised_is_what_is_sent(place):
    has = place.store().capabilities
    is_conditional = (place.server, place.package) in CONDITIONAL
    assert (has.create_exclusive, has.compare_and_swap) == (is_conditional, is_conditional)


def test_parts_of_chunks_are_warned_of_without_conditional_writes(place):
    options = {"storage_options": place.options}
    z = zarrdask.create_array(place.url, "a", shape=4, chunks=4, dtype="i4", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        z[1] = 1
    warned = [each for each in caught if "can't detect another machine" in str(each.message)]
    assert bool(warned) == ((place.server, place.package) not in CONDITIONAL)


@pytest.mark.parametrize("place", MANY_REQUESTS, ids="-".join, indirect=True)
def test_arrays_are_written_and_read(place):
    options, codecs = {"storage_options": place.options}, codecs_for(place)
    cases = [(form, layout) for form, layouts in LAYOUTS.items() for layout in layouts]
    for number, (zarr_format, layout) in enumerate(cases):
        root, path = f"{place.url}/{zarr_format}", f"a/{number}"
        x = da.from_array(VALUES, chunks=(7, 6))
        zarrdask.to_zarr(x, root, path, **options, zarr_format=zarr_format, **layout, **codecs)
        stored = zarrdask.from_zarr(root, path, chunks="stored", **options)
        np.testing.assert_array_equal(stored.compute(scheduler="threads"), VALUES)
        zarrdask.open_array(root, path, mode="r+", **options)[3:9, 5] = -1
        z = zarrdask.open_array(f"{root}/{path}", **options)
        np.testing.assert_array_equal(z[3:9, 5], np.full(6, -1, "f4"))
    assert sorted(zarrdask.open_group(f"{place.url}/3", "a", **options)) == ["0", "1"]


@pytest.mark.parametrize("place", MANY_REQUESTS, ids="-".join, indirect=True)
def test_arrays_are_appended_to(place):
    options = {"storage_options": place.options}
    for zarr_format in (2, 3):
        root, name = f"{place.url}/{zarr_format}", "x"
        z = zarrdask.create_array(
            *(root, name), shape=(0, 20), chunks=(4, 20), dtype="f4", zarr_format=zarr_format,
            **options, **codecs_for(place),
        )  # fmt: skip
        z.append(VALUES[:5])
        zarrdask.append(da.from_array(VALUES[5:11], chunks=(3, 20)), root, name, **options)
        z = zarrdask.open_array(root, name, mode="r+", **options)
        z.append(VALUES[11:])
        np.testing.assert_array_equal(z[...], VALUES)
    assert not [key for key in place.store().list() if "rewrite" in key]


def created_by_two(place: Place, path: str, shapes: tuple[int, int]) -> list[bool]:
    """Return which of two creators at the same moment succeeded."""
    barrier = Barrier(2)

    def create(shape: int) -> bool:
        barrier.wait(60)
        options = {"storage_options": place.options}
        try:
            zarrdask.create_array(place.url, path, shape=(shape,), dtype="i4", **options)
        except NodeExistsError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(create, shapes))


def test_one_of_two_creators_succeeds(conditional):
    for turn in range(5):
        created = created_by_two(conditional, f"a{turn}", (3, 4))
        z = zarrdask.open_array(conditional.url, f"a{turn}", storage_options=conditional.options)
        assert (sum(created), z.shape) == (1, (3 + created.index(True),))


def test_one_of_two_creators_of_the_same_succeeds(conditional):
    store = retrying(conditional.store())
    assert [store.create("k", b"same"), store.create("k", b"same")] == [True, False]
    for turn in range(5):
        assert sum(created_by_two(conditional, f"a{turn}", (3, 3))) == 1


def test_one_of_several_writers_replaces_a_value(conditional):
    store = retrying(conditional.store())  # Ceph answers 500 to some that are too late
    store.set("k", b"0")
    for turn in range(5):
        _, tag = store.get_tagged("k")
        barrier = Barrier(4)

        def swap(number: int, barrier: Barrier = barrier, turn: int = turn) -> bool:
            barrier.wait(60)
            return store.swap("k", b"%d %d" % (turn, number), tag)  # noqa: B023

        with ThreadPoolExecutor(4) as pool:
            stored = list(pool.map(swap, range(4)))
        assert sorted(stored) == [False, False, False, True]
        assert store.get("k") == b"%d %d" % (turn, stored.index(True))


def test_changes_of_a_value_are_not_lost(conditional):
    store = retrying(conditional.store())
    store.set("k", b"begin")

    def add(number: int) -> None:
        for turn in range(3):
            # Of two that store the same, one may take the other's value for its own.
            name = b" %d.%d" % (number, turn)
            change_if_unchanged(store, lambda view, name=name: view.set("k", view.get("k") + name))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, range(3)))
    names = {b"%d.%d" % (number, turn) for number in range(3) for turn in range(3)}
    assert sorted(store.get("k").split()) == sorted({b"begin", *names})


def test_a_lease_excludes_another_writer(conditional):
    store, held = retrying(conditional.store()), []

    def hold(number: int) -> None:
        with Lease.hold(store, "lease") as taken:
            assert taken is not None
            held.append(number)
            taken.check(store)
            assert bytes(store.get("lease")).startswith(taken.name)
            held.append(number)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(hold, range(3)))
    assert held[::2] == held[1::2]
    assert sorted(held[::2]) == [0, 1, 2]
    assert store.get("lease") is None


@pytest.mark.stress
def test_two_machines_append_and_change_parts_and_attributes(conditional, tmp_path):
    options = {"storage_options": conditional.options}
    root = zarrdask.create_group(conditional.url, **options)
    root.create_array("x", shape=(0, 3), dtype="i4", chunks=(4, 3))
    root.create_array("chunk", shape=6, dtype="i4", chunks=6)
    given = json.dumps(conditional.options)
    place = conditional.url, given, conditional.package
    writers = [Program(WRITER, *place, tmp_path / first, first) for first in "01"]
    assert [writer.finish().code for writer in writers] == [0, 0]
    root = zarrdask.open_group(conditional.url, **options)
    attributes = {f"{first}-{number}": number for first in "01" for number in range(3)}
    assert dict(root["x"].attrs) == dict(root.attrs) == attributes
    assert sorted(root["x"][:, 0]) == sorted([*range(6)] * 2)
    np.testing.assert_array_equal(root["chunk"][...], [1, 1, 2, 2, 3, 3])
    assert not [key for key in root.store.list() if "lease" in key]


@pytest.mark.parametrize("place", MANY_KEYS, ids="-".join, indirect=True)
def test_listings_of_several_pages(place):
    store = retrying(place.store("a"))
    keys = [f"{number:04d}" for number in range(1_050)]
    names = [f"c/{key}" for key in keys]
    store.set_many((name, b"1") for name in names)
    store.set("d/other", b"")
    assert [*store.list_prefix("c/")] == names
    assert store.list_dir("c/") == (keys, [])
    part = [*store.entries("c/", "c/0099", "c/0101")]
    assert sorted((entry.key, entry.size) for entry in part) == [("c/0100", 1), ("c/0101", 1)]
    entries = {entry.key: entry for entry in store.entries("c/", "c/0099", "c/0100", objects=True)}
    assert {key: entry.size for key, entry in entries.items()} == {"c/0100": 1}
    store.erase_prefix("d/")
    assert [*store.list_prefix("")] == names


class TestRefusedAnswers:
    def test_a_bucket_that_is_not_there(self, place):
        url = place.url + "-other"
        options = {"storage_options": place.options}
        with pytest.raises(StoreError):
            zarrdask.create_array(url, "a", shape=3, dtype="i4", **options)

    @pytest.mark.parametrize("place", COMPLETE, ids="-".join, indirect=True)
    def test_credentials_that_are_wrong(self, place):
        name = {"ceph": "secret", "azurite": "account_key"}[place.server]
        options = {"storage_options": place.options | {name: "d3Jvbmc="}}
        with pytest.raises(StoreError, match="403"):
            zarrdask.open_array(place.url, "a", **options)
        with pytest.raises(StoreError, match="403"):
            zarrdask.create_array(place.url, "a", shape=3, dtype="i4", **options)
        assert not [*place.store().list()]
