"""Options of fsspec for the verbs that have several places."""

import numpy as np
import pytest

import zarrdask
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.tools.cli.app import run

SOURCE, TARGET, TEMP = "far://source", "far://target", "far://temp"
BOTH, OWN = {"key": "both"}, {"key": "own"}


@pytest.fixture
def opened(monkeypatch):
    """The options with which each URL was opened; there is an array of two formats at each."""
    values, options = {}, {}

    def from_url(url, storage_options=None):
        options[url] = storage_options
        return MemoryStore(values.setdefault(url, {}))

    monkeypatch.setattr(FsspecStore, "from_url", from_url)
    z = zarrdask.create_array(SOURCE, shape=4, dtype="i4", chunks=2, zarr_format=2)
    z[...] = np.arange(4)
    options.clear()
    return options


def compare(source, target, **options):
    zarrdask.copy(source, target, **options)
    return zarrdask.compare(source, target, scheduler="sync", **options)


def rechunk(source, target, **options):
    plan = zarrdask.rechunk(source, target, chunks=4, scheduler="sync", **options)
    plan.execute("sync", progress=False)


VERBS = pytest.mark.parametrize("verb", [zarrdask.copy, rechunk, compare])


@VERBS
def test_storage_options_are_for_both_ends(opened, verb):
    verb(SOURCE, TARGET, storage_options=BOTH)
    assert opened == {SOURCE: BOTH, TARGET: BOTH}


@VERBS
@pytest.mark.parametrize("end", ["source", "target"])
def test_one_end_may_have_options_of_its_own(opened, verb, end):
    verb(SOURCE, TARGET, storage_options=BOTH, **{f"{end}_options": OWN})
    expected = {SOURCE: BOTH, TARGET: BOTH} | {f"far://{end}": OWN}
    assert opened == expected
    opened.clear()


@VERBS
def test_an_end_without_options(opened, verb):
    verb(SOURCE, TARGET, target_options=OWN)
    assert opened == {SOURCE: None, TARGET: OWN}


@VERBS
def test_a_local_end_takes_none(opened, verb, tmp_path):
    verb(SOURCE, tmp_path / "a", storage_options=BOTH)
    assert opened == {SOURCE: BOTH}


@VERBS
def test_local_ends_say_that_they_take_none(verb, tmp_path):
    zarrdask.create_array(tmp_path / "a", shape=4, dtype="i4")
    with pytest.raises(zarrdask.errors.StoreError, match="a local path takes no storage_options"):
        verb(tmp_path / "a", tmp_path / "b", storage_options=BOTH)


def test_the_place_between_passes(opened):
    zarrdask.rechunk(SOURCE, TARGET, chunks=4, temp=TEMP, storage_options=BOTH)
    assert opened == {SOURCE: BOTH, TARGET: BOTH, TEMP: BOTH}
    zarrdask.rechunk(SOURCE, TARGET, chunks=4, temp=TEMP, storage_options=BOTH, temp_options=OWN)
    assert opened == {SOURCE: BOTH, TARGET: BOTH, TEMP: OWN}


@pytest.mark.parametrize("verb", [zarrdask.verify, zarrdask.upgrade], ids=["verify", "upgrade"])
def test_of_one_place(opened, verb):
    assert verb(SOURCE, storage_options=BOTH).arrays
    assert opened == {SOURCE: BOTH}


@pytest.mark.parametrize(
    "command",
    [
        ["copy", SOURCE, TARGET],
        ["rechunk", SOURCE, TARGET, "--chunks", "4"],
        ["diff", SOURCE, SOURCE.replace("source", "other"), "--scheduler", "sync"],
        ["repair", SOURCE, "far://other", "--scheduler", "sync"],
    ],
    ids=["copy", "rechunk", "compare", "repair"],
)
def test_on_the_command_line(opened, command, capsys):
    zarrdask.copy(SOURCE, "far://other")
    opened.clear()
    assert run([*command, "--storage-option", "key=both"]) == 0
    assert set(map(str, opened.values())) == {str(BOTH)}
    assert len(opened) == 2
    opened.clear()
    more = [] if command[0] in ("diff", "repair") else ["--overwrite"]
    own = ["--source-option", "key=own", "--target-option", "key=both"]
    assert run([*command, *more, *own]) == 0
    first, second = opened.pop(SOURCE), *opened.values()
    assert (first, second) == (OWN, BOTH)
    capsys.readouterr()
