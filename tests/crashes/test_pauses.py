"""An append that stands still at each of its store operations, while another writer appends."""

from threading import Lock

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.crashes.stores import RemoteStore, ScriptedStore
from zarrdask.arrays.hierarchy.changes import append as append_module
from zarrdask.errors import ZarrdaskError
from zarrdask.storage.locks import leases
from zarrdask.xarray import open_zarr, to_zarr

OPTIONS = {"chunks": 2, "compressors": ()}
#: The values of the array, of the writer that stands still, and of the other one.
OLD, OURS, THEIRS = [1, 1, 1], [7, 7, 7, 7, 7], [8, 8, 8, 8, 8, 8]
APPENDS = {
    "append": lambda store: zarrdask.append(da.from_array(np.array(OURS), chunks=2), store, "a"),
    "Array.append": lambda store: zarrdask.open_array(store, "a", mode="r+").append(OURS),
}


class Pausing(ScriptedStore):
    """A store of a writer that stands still before an operation, while another one appends."""

    at = -1
    #: Appends the values of the other writer.
    other = staticmethod(lambda store: zarrdask.append(np.array(THEIRS), store, "a"))

    def __init__(self):
        super().__init__()
        #: Held during an operation: all threads of a process stand still together.
        self.turn = Lock()

    def run(self, name, key, operation, *arguments):
        with self.turn:
            if len(self.script.log) == self.at:
                self.at = -1
                leases.time.sleep(2 * leases.Lease.EXPIRY)
                self.other(elsewhere(self))
            return super().run(name, key, operation, *arguments)


class PausingRemoteStore(Pausing, RemoteStore):
    """The same with leases and conditional writes."""


def elsewhere(store):
    """Return the same values as another machine reaches them, which knows no locks of this one."""

    class Elsewhere(type(store)):
        url = "elsewhere"

    other = Elsewhere()
    other.values = store.values
    return other


def new_array(kind):
    store = kind()
    zarrdask.create_array(store, "a", shape=3, dtype="i8", **OPTIONS)[...] = OLD
    return store


def elements(store):
    return zarrdask.open_array(store, "a")[...].tolist()


def days(values):
    """Return a dataset, one variable of which has Dask blocks."""
    values = np.array(values)
    variables = {"t": xr.DataArray(values, dims="day").chunk(2), "n": ("day", values)}
    return xr.Dataset(variables, {"day": values})


def append_days(store, values):
    with dask.config.set({"zarrdask.append-checks": "off"}):  # the days are in no order
        to_zarr(days(values), store, append_dim="day")


class PausingDataset(PausingRemoteStore):
    """The same, where the other writer appends to a dataset."""

    other = staticmethod(lambda store: append_days(store, THEIRS))


def new_dataset(kind):
    store = kind()
    encoding = {name: {"chunks": 2, "compressors": ()} for name in ("t", "n", "day")}
    to_zarr(days(OLD), store, encoding=encoding)
    return store


def variables(store):
    """Return the values of all variables, which must be the same."""
    dataset = open_zarr(store, chunks=None).load()
    found = {tuple(variable.values.tolist()) for variable in dataset.variables.values()}
    assert len(found) == 1, found
    return list(*found)


@pytest.fixture(autouse=True)
def own_clock(monkeypatch):
    for module in (append_module, leases):
        monkeypatch.setattr(module, "clock", leases.time.monotonic)


def check_pauses(append, new, read, kind):
    """Check an append with a pause before each of its operations."""
    store = new(kind)
    store.script.log.clear()
    append(store)
    log = list(store.script.log)
    for number, (name, key) in enumerate(log):
        if kind is Pausing and name != "create":
            continue  # without conditional writes, only what is new can be protected

        store = new(kind)
        store.script.log.clear()
        store.at = number
        try:
            append(store)
        except ZarrdaskError:
            # The append of a dataset may be complete when its writer finds the lease gone.
            expected = [OLD + THEIRS, *[OLD + OURS + THEIRS] * (kind is PausingDataset)]
        else:
            expected = [OLD + OURS + THEIRS, OLD + THEIRS + OURS]
        assert store.at == -1
        found = read(elsewhere(store))
        assert found in expected, f"{found} after a pause before {name} {key}, number {number}"
        assert not [key for key in store.values if "lease" in key]


@pytest.mark.parametrize("kind", [Pausing, PausingRemoteStore])
@pytest.mark.parametrize("append", ["append", "Array.append"])
def test_one_that_stands_still_overwrites_nothing(append, kind):
    check_pauses(APPENDS[append], new_array, elements, kind)


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:.*was interrupted")
def test_an_append_to_a_dataset_that_stands_still_overwrites_nothing():
    check_pauses(lambda store: append_days(store, OURS), new_dataset, variables, PausingDataset)
