"""Two deaths in a row, and directories that are taken away: the next writer succeeds."""

import shutil
from contextlib import suppress

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.crashes.stores import Killed
from tests.schedules.stores import KINDS, Pause
from tests.schedules.verbs import CREATIONS, OPTIONS, seen
from zarrdask.errors import ZarrdaskError


def longer(store):
    """Store an array that is longer than the one that replaces it."""
    zarrdask.create_array(store, "g/a", shape=9, dtype="i8", **OPTIONS)[...] = 1


def overwrites():
    """Return verbs that replace the array by one of four elements."""
    values = np.full(4, 9)
    small = zarrdask.create_array({}, shape=4, dtype="i8", **OPTIONS)
    small[...] = values
    blocks = da.from_array(values, chunks=2, name="small")

    def to_zarr(**options):
        return lambda store: zarrdask.to_zarr(
            blocks, store, "g/a", overwrite=True, **OPTIONS, **options
        )

    def create(store):
        zarrdask.create_array(store, "g/a", shape=4, dtype="i8", overwrite=True, **OPTIONS)[...] = (
            values
        )

    def rechunk(store):
        plan = zarrdask.rechunk(small, store, "g/a", chunks=(2,), max_mem="1 MB", overwrite=True)
        plan.execute("sync", progress=False)

    return {
        "create_array": create,
        "to_zarr": to_zarr(),
        'to_zarr(commit="last")': to_zarr(commit="last"),
        "to_zarr(resume=True)": to_zarr(resume=True),
        "copy": lambda store: zarrdask.copy(small, store, "g/a", overwrite=True, scheduler="sync"),
        "rechunk": rechunk,
    }


def attempt(store, act, number):
    """Run an act in a process that dies before an operation; return whether it died."""
    pause = Pause(number)
    pause.then = pause.die
    with store.writer(pause, 1) as handle, suppress(Killed, ZarrdaskError):
        act(handle)
    return pause.is_dead


def check_deaths(act, kind, folder, step):
    """Let an overwrite die at each operation, and once more a few later; then it is done."""
    number, is_dead = 0, True
    while is_dead:
        store = KINDS[kind](folder / str(number))
        with store.reader() as handle:
            longer(handle)
        is_dead = attempt(store, act, number)
        attempt(store, act, (number * 7 + 3) % 40)
        with store.reader() as handle:
            act(handle)
            array = zarrdask.open_array(handle, "g/a", mode="r+")
            assert array[...].tolist() == [9] * 4
            array.resize(9)
            found = array[...].tolist()
            assert found == [9] * 4 + [0] * 5, f"{found} after a death at operation {number}"
            assert not [key for key in handle.list_prefix("") if ".zarrdask" in key]
        number += step


@pytest.mark.parametrize("verb", overwrites())
def test_an_overwrite_that_died_twice_leaves_nothing_of_the_longer_array(verb, tmp_path):
    check_deaths(overwrites()[verb], "memory", tmp_path, 9)


@pytest.mark.stress
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", overwrites())
def test_an_overwrite_that_died_twice_anywhere(verb, kind, tmp_path):
    check_deaths(overwrites()[verb], kind, tmp_path, 1)


@pytest.mark.parametrize(
    "verb", ["copy of an array", 'to_zarr(commit="last")', "to_zarr(resume=True)", "dataset"]
)
def test_a_writer_whose_directory_is_taken_away_gets_an_error(verb, tmp_path):
    store, pause = KINDS["local disk"](tmp_path), Pause()
    with store.writer(pause, 1) as handle:
        CREATIONS[verb].run(handle, 0)
    chunks = [n for n, (name, key) in enumerate(pause.log) if name == "set" and "a/c/" in key]
    store.restore({})
    again = Pause(chunks[-1], lambda: shutil.rmtree(store.root / "g"))
    with store.writer(again, 1) as handle, pytest.raises(ZarrdaskError):
        CREATIONS[verb].run(handle, 0)
    with store.reader() as handle:
        found = seen(handle)
        assert found is None or "a" not in found[0]
    with store.writer(Pause(), 1) as handle, suppress(ZarrdaskError):
        # A group may be there, as the writer made it before its arrays.
        CREATIONS[verb].run(handle, 0)
        assert seen(handle)[0]["a"][0] == [7] * 5
