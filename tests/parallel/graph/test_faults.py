"""Stores that fail while an array is written, by seeded schedules: nothing is lost.

A job that succeeds did exactly what it should. One that fails says which key, and leaves each
stored unit as it was or as it was to be, under metadata that are valid.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.storage.faults import Faults, FaultyStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.retry import RetryingStore

pytestmark = pytest.mark.stress

SHAPE = (23, 17)
FILL = -1.0
OLD = np.arange(1.0, 1 + 23 * 17).reshape(SHAPE)
NEW = OLD * 1000
LAYOUTS = (
    {"chunks": (5, 6)},
    {"chunks": (5, 3), "shards": (10, 6), "compressors": ()},
    {"chunks": ((4, 11, 8), (9, 8)), "compressors": "gzip"},
    {"chunks": (5, 6), "zarr_format": 2, "separator": "/"},
)
PASSING = Faults(lost=0.1, late=0.05, torn=0.05)
LASTING = Faults(lost=0.02, late=0.02, denied=0.03)


@pytest.fixture(autouse=True)
def quick():
    options = {"zarrdask.retry-delay": 0, "scheduler": "threads", "num_workers": 4}
    with dask.config.set(options):
        yield


def layout(seed):
    """Return how the array of a schedule is stored."""
    return {"dtype": "f8", "fill_value": FILL} | LAYOUTS[seed % len(LAYOUTS)]


def stored(seed, values=OLD):
    """Return a store with an array."""
    inner = MemoryStore()
    zarrdask.create_array(inner, shape=values.shape, **layout(seed))[...] = values
    return inner


def failing(inner, faults, seed):
    """Return a store that fails, behind one that tries again."""
    return RetryingStore(FaultyStore(inner, faults, seed))


def outcome(run, store):
    """Do a job, and return what went wrong, if anything did."""
    try:
        run(store)
    except zarrdask.ZarrdaskError as error:
        return error
    return None


# ---- jobs


@dataclass(frozen=True)
class Job:
    """Something that is done to a store, and what is there before and afterwards."""

    run: Callable[[Any], Any]
    before: np.ndarray | None
    after: np.ndarray
    #: What may lie in a unit meanwhile, besides its old and its new values.
    between: tuple[np.ndarray, ...] = ()
    #: Whether there may be no array at all meanwhile.
    absent: bool = False

    def prepare(self, seed):
        return MemoryStore() if self.before is None else stored(seed, self.before)

    def check_done(self, inner):
        """Check that the job was done."""
        np.testing.assert_array_equal(zarrdask.open_array(inner)[...], self.after)

    def check_between(self, inner):
        """Check that each unit is as before or as afterwards."""
        try:
            array = zarrdask.open_array(inner)
        except zarrdask.errors.NodeNotFoundError:
            assert self.absent
            return
        states = [
            state
            for state in (self.before, self.after, *self.between)
            if state is not None and state.shape == array.shape
        ]
        assert states, f"a shape from nowhere: {array.shape}"
        for part in units(array):
            found = array[part]
            assert any(np.array_equal(found, state[part]) for state in states), part


def units(array):
    """Yield where each stored unit lies."""
    lengths = array.shards or array.chunks
    axes = []
    for size, axis in zip(array.shape, lengths, strict=True):
        axis = axis if isinstance(axis, tuple) else (axis,) * -(-size // axis)
        ends = itertools.accumulate(axis, initial=0)
        axes.append([slice(a, min(b, size)) for a, b in itertools.pairwise(ends)])
    return itertools.product(*axes)


def blocks(values):
    return da.from_array(values, chunks=(7, 5))


def job(kind, seed):
    """Return the job of a kind for the layout of a seed."""
    options = layout(seed)
    other = options | ({"chunks": (6, 6)} if isinstance(options["chunks"][0], tuple) else {})
    values, nothing = NEW[:20, :], np.full((20, 17), FILL)
    region = np.s_[3:20, 4:16]
    match kind:
        case "create":
            return Job(write(values, options), None, values, (nothing,), absent=True)
        case "create at last":
            return Job(write(values, other, commit="last"), None, values, absent=True)
        case "overwrite":
            return Job(write(values, other), OLD, values, (nothing,), absent=True)
        case "overwrite at last":
            return Job(write(values, other, commit="last"), OLD, values, absent=True)
        case "region":
            after = OLD.copy()
            after[region] = NEW[region]
            return Job(
                lambda store: zarrdask.to_zarr(blocks(NEW[region]), store, region=region),
                OLD,
                after,
            )
        case "append":
            return Job(append, OLD[:13], OLD)
        case "shrink":
            return Job(lambda store: opened(store).resize((12, 7)), OLD, OLD[:12, :7], (cut_off(),))
    grown = np.full((31, 26), FILL)
    grown[:23, :17] = OLD
    return Job(lambda store: opened(store).resize((31, 26)), OLD, grown)


def cut_off():
    """Return the old values without what is cut off."""
    found = np.full(SHAPE, FILL)
    found[:12, :7] = OLD[:12, :7]
    return found


def opened(store):
    return zarrdask.open_array(store, mode="r+")


def write(values, options, **more):
    """Return what writes a new array."""
    return lambda store: zarrdask.to_zarr(blocks(values), store, overwrite=True, **options, **more)


def append(store):
    # Again, if that was done in part.
    array = opened(store)
    if array.shape == (13, 17):
        zarrdask.append(blocks(OLD[13:]), array)


KINDS = (
    "create",
    "create at last",
    "overwrite",
    "overwrite at last",
    "region",
    "append",
    "shrink",
    "grow",
)
kinds = pytest.mark.parametrize("kind", KINDS)


# ---- schedules


@kinds
def test_failures_that_pass_are_not_seen(kind):
    failures = 0
    for seed in range(18):
        each = job(kind, seed)
        inner = each.prepare(seed)
        faulty = FaultyStore(inner, PASSING, seed)
        with dask.config.set({"zarrdask.retries": 30}):
            each.run(RetryingStore(faulty))
        failures += faulty.failures
        each.check_done(inner)
    assert failures > 18


# Where nothing can be erased after a failure, the array stays marked as unfinished.
@pytest.mark.filterwarnings("ignore:.*an unfinished write is here:UserWarning")
@kinds
def test_failures_that_last_leave_the_old_or_the_new(kind):
    failed = 0
    for seed in range(36):
        each = job(kind, seed)
        inner = each.prepare(seed)
        with dask.config.set({"zarrdask.retries": seed % 2}):
            error = outcome(each.run, failing(inner, LASTING, seed))
        if error is None:
            each.check_done(inner)
        else:
            failed += 1
            assert isinstance(error, zarrdask.errors.StoreError)
            assert error.key is not None
        each.check_between(inner)
        # It can be done again, and then it is done.
        each.run(inner)
        each.check_done(inner)
    assert failed > 5


@pytest.mark.parametrize("kind", ["region", "append", "shrink", "grow"])
def test_what_is_read_in_part_is_noticed(kind):
    faults = Faults(short=0.1)
    noticed = 0
    for seed in range(18):
        each = job(kind, seed)
        inner = each.prepare(seed)
        if outcome(each.run, failing(inner, faults, seed)):
            noticed += 1
        else:
            each.check_done(inner)
        each.check_between(inner)
    assert noticed


def test_what_was_cut_off_in_spite_of_failures_never_comes_back():
    for seed in range(40):
        inner = stored(seed)
        for attempt in range(50):
            try:
                with dask.config.set({"zarrdask.retries": 0}):
                    opened(failing(inner, LASTING, 100 * seed + attempt)).resize((12, 7))
            except zarrdask.errors.StoreError:
                continue
            break
        opened(inner).resize(SHAPE)
        np.testing.assert_array_equal(zarrdask.open_array(inner)[...], cut_off(), f"seed {seed}")


def test_failures_are_retried_by_default():
    inner = MemoryStore()
    store = failing(inner, Faults(lost=0.05, late=0.05), 0)
    zarrdask.to_zarr(blocks(NEW), store, chunks=(5, 6))
    np.testing.assert_array_equal(zarrdask.open_array(inner)[...], NEW)


def test_a_lasting_failure_comes_at_once_and_names_the_key():
    faulty = FaultyStore(stored(0), Faults(), 0)
    x = blocks(NEW)
    task = zarrdask.to_zarr(x, RetryingStore(faulty), region=np.s_[:, :], compute=False)
    faulty.faults = Faults(denied=1)
    asked = []

    def before(key):
        if key != "zarr.json":  # It is read first, as the task may run much later.
            asked.append(key)
            FaultyStore.before(faulty, key)

    faulty.before = before
    with pytest.raises(PermissionError, match=r"c/\d/\d: denied"):
        task.compute(scheduler="sync")
    # Some were in flight together by then, but none was tried again.
    assert len(asked) == len(set(asked)) == faulty.failures


# ---- every moment


class Watched(MemoryStore):
    """Calls `look` before and after each change."""

    look = staticmethod(lambda: None)

    def _change(self, change):
        self.look()
        change()
        self.look()

    def set(self, key, value):
        self._change(lambda: super(Watched, self).set(key, value))

    def erase(self, key):
        self._change(lambda: super(Watched, self).erase(key))

    def erase_values(self, keys):
        for key in list(keys):
            self.erase(key)

    def erase_prefix(self, prefix):
        self.erase_values(self.list_prefix(prefix))


class Dying(Watched):
    """Is cut off after a number of changes: nothing can be done any more."""

    left = 0

    def _change(self, change):
        if not self.left:
            raise zarrdask.errors.StoreError("dead")
        self.left -= 1
        change()


@pytest.mark.parametrize("seed", range(len(LAYOUTS)))
def test_what_an_overwrite_left_that_was_cut_off_is_not_read_later(seed):
    for changes in itertools.count():
        store = Dying()
        store.values.update(stored(seed).values)
        store.left = changes
        over = outcome(lambda store: replace(store, seed), store) is None
        left = MemoryStore(store.values)
        replace(left, seed)
        np.testing.assert_array_equal(
            zarrdask.open_array(left)[...], np.full(SHAPE, FILL), f"after {changes} changes"
        )
        if over:
            return


def replace(store, seed):
    zarrdask.create_array(store, shape=SHAPE, overwrite=True, **layout(seed))


@kinds
@pytest.mark.parametrize("seed", range(len(LAYOUTS)))
def test_who_opens_an_array_meanwhile_sees_the_old_or_the_new(kind, seed):
    each = job(kind, seed)
    store = Watched()
    store.values.update(each.prepare(seed).values)
    looks = itertools.count()

    def look():
        each.check_between(MemoryStore(dict(store.values)))
        next(looks)

    store.look = look
    with dask.config.set(scheduler="sync"):
        each.run(store)
    each.check_done(store)
    assert next(looks) > 1
