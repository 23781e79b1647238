"""An append that stands still at each of its store operations, while another writer appends."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.crashes.stores import RemoteStore, ScriptedStore
from zarrdask.errors import StoreError
from zarrdask.hierarchy import append as append_module
from zarrdask.storage import unchanged

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

    def _run(self, name, key, operation, *arguments):
        if len(self.script.log) == self.at:
            self.at = -1
            unchanged.time.sleep(2 * unchanged._EXPIRY)
            zarrdask.append(np.array(THEIRS), elsewhere(self), "a")
        return super()._run(name, key, operation, *arguments)


class PausingRemoteStore(Pausing, RemoteStore):
    """The same with leases and conditional writes."""


def elsewhere(store):
    """Return the same values as another machine reaches them, which knows no locks of this one."""

    class Elsewhere(type(store)):
        url = "elsewhere"

    other = Elsewhere()
    other.values = store.values
    return other


def before(kind):
    store = kind()
    zarrdask.create_array(store, "a", shape=3, dtype="i8", **OPTIONS)[...] = OLD
    store.script.log.clear()
    return store


def appended(kind, append):
    """Return the operations of an append without a pause."""
    store = before(kind)
    append(store)
    return list(store.script.log)


@pytest.mark.parametrize("kind", [Pausing, PausingRemoteStore])
@pytest.mark.parametrize("append", ["append", "Array.append"])
def test_one_that_stands_still_overwrites_nothing(append, kind, monkeypatch):
    for module in (append_module, unchanged):
        monkeypatch.setattr(module, "clock", unchanged.time.monotonic)
    append = APPENDS[append]
    log = appended(kind, append)
    for number, (name, key) in enumerate(log):
        if kind is Pausing and name != "create":
            continue  # without conditional writes, only what is new can be protected

        store = before(kind)
        store.at = number
        try:
            append(store)
        except StoreError:
            expected = [OLD + THEIRS]
        else:
            expected = [OLD + OURS + THEIRS, OLD + THEIRS + OURS]
        assert store.at == -1
        found = zarrdask.open_array(elsewhere(store), "a")[...].tolist()
        assert found in expected, f"{found} after a pause before {name} {key}, number {number}"
        assert not [key for key in store.values if "lease" in key]
