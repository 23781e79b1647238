"""Two processes that write one zip archive: nothing that either of them has stored is lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from weakref import WeakValueDictionary

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.storage.zip import shared
from zarrdask.storage.zip.archive_writer import ZipWriter

State = tuple[list[int], dict[str, int]]


class Verb:
    """A verb that changes an array, and what it does to the values and the attributes."""

    def __init__(self, run: Callable[[Any, int], Any], model: Callable[[State, int], State]):
        self.run, self.model = run, model


def _region(z: Any, n: int) -> None:
    place = (slice(2 * n - 1, 2 * n + 1),)
    zarrdask.to_zarr(da.full(2, n, chunks=2, dtype="i8"), z, region=place)


def _set(values: list[int], places: range, n: int) -> list[int]:
    return [n if at in places else value for at, value in enumerate(values)]


VERBS = {
    "append": Verb(lambda z, n: z.append([n, n]), lambda s, n: (s[0] + [n, n], s[1])),
    "dask append": Verb(
        lambda z, n: zarrdask.append(da.full(2, n, chunks=1, dtype="i8"), z),
        lambda s, n: (s[0] + [n, n], s[1]),
    ),
    "attribute": Verb(
        lambda z, n: z.attrs.update({f"a{n}": n}), lambda s, n: (s[0], {**s[1], f"a{n}": n})
    ),
    "part of a chunk": Verb(
        lambda z, n: z.__setitem__(slice(n, n + 1), n),
        lambda s, n: (_set(s[0], range(n, n + 1), n), s[1]),
    ),
    "region": Verb(_region, lambda s, n: (_set(s[0], range(2 * n - 1, 2 * n + 1), n), s[1])),
    "erase": Verb(
        lambda z, n: z.erase(slice(n, n + 1)),
        lambda s, n: (_set(s[0], range(n, n + 1), 0), s[1]),
    ),
}
_IN_CORE_SUITE = {
    ("append", "attribute"),
    ("attribute", "attribute"),
    ("part of a chunk", "append"),
}
PAIRS = [
    pytest.param(*pair, marks=[] if pair in _IN_CORE_SUITE else pytest.mark.slow)
    for pair in product(VERBS, VERBS)
]


@contextmanager
def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Any) -> Iterator[None]:
    """Run the block as another process, and on another machine, would: it shares files only."""
    with monkeypatch.context() as patch, dask.config.set({"zarrdask.lock-directory": str(folder)}):
        patch.setattr(shared, "ARCHIVES", WeakValueDictionary())
        yield


@pytest.fixture
def path(tmp_path):
    z = zarrdask.create_array(tmp_path / "a.zip", shape=6, dtype="i8", chunks=4, fill_value=0)
    z[...] = 9
    return tmp_path / "a.zip"


@pytest.fixture
def other(path, monkeypatch, tmp_path):
    """Run a verb as another process; it returns the error, if that is raised."""

    def run(name: str, n: int) -> StoreError | None:
        with elsewhere(monkeypatch, tmp_path / "locks"):
            try:
                VERBS[name].run(zarrdask.open_array(path, mode="r+"), n)
            except StoreError as error:
                return error
        return None

    return run


def stored(path: Any) -> State:
    z = zarrdask.open_array(path)
    return z[...].tolist(), dict(z.attrs)


def after(*verbs: tuple[str, int]) -> State:
    state: State = [9] * 6, {}
    for name, n in verbs:
        state = VERBS[name].model(state, n)
    return state


def run(z: Any, name: str, n: int) -> StoreError | None:
    try:
        VERBS[name].run(z, n)
    except StoreError as error:
        return error
    return None


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_a_handle_goes_on_after_another_process_has_written(ours, theirs, path, other):
    z = zarrdask.open_array(path, mode="r+")
    assert other(theirs, 1) is None
    before = zarrdask.open_array(path)[...].tolist()
    assert z[...].tolist() == before[:6]
    VERBS[ours].run(z, 2)
    assert stored(path) == after((theirs, 1), (ours, 2))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_another_process_writes_just_before_a_batch_begins(ours, theirs, path, other, monkeypatch):
    z, begin, waiting = zarrdask.open_array(path, mode="r+"), shared.SharedArchive._begin, [theirs]

    def delayed(archive: Any) -> None:
        if waiting:
            assert other(waiting.pop(), 1) is None
        begin(archive)

    monkeypatch.setattr(shared.SharedArchive, "_begin", delayed)
    error = run(z, ours, 2)
    assert not waiting
    if error is None:
        assert stored(path) in (after((theirs, 1), (ours, 2)), after((ours, 2), (theirs, 1)))
    else:
        assert stored(path) == after((theirs, 1))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_another_process_is_refused_during_a_batch(ours, theirs, path, other, monkeypatch):
    z, commit, errors = zarrdask.open_array(path, mode="r+"), ZipWriter.commit, []

    def delayed(writer: Any) -> None:
        if not errors:
            errors.append(None)
            errors[0] = other(theirs, 1)
        commit(writer)

    monkeypatch.setattr(ZipWriter, "commit", delayed)
    VERBS[ours].run(z, 2)
    assert "another process is writing" in str(errors[0])
    assert "write a directory, and zarrdask.copy" in str(errors[0])
    assert stored(path) == after((ours, 2))


def test_a_dask_array_reads_what_replaced_its_archive(path, other):
    x = zarrdask.from_zarr(path)
    assert x.compute().tolist() == [9] * 6
    assert other("part of a chunk", 1) is None
    np.testing.assert_array_equal(x.compute(), [9, 1, 9, 9, 9, 9])
