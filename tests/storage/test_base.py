"""The interface of stores, and stores of users."""

import pytest

import zarrdask
from zarrdask.storage import MemoryStore, Store, set_partial_values, value_sizes


def test_a_store_of_a_user_needs_three_methods():
    values = {}

    class Plain(Store):
        url = "plain:"
        get = staticmethod(values.get)
        set = staticmethod(lambda key, value: values.__setitem__(key, bytes(value)))
        erase = staticmethod(lambda key: values.pop(key, None))
        size = 5  # attributes of its own mean nothing to the package
        token = uri = stamp = None

    store = Plain()
    z = zarrdask.create_array(store, shape=4, dtype="i4", chunks=2)
    z[...] = [1, 2, 3, 4]
    z.append(z[2:])
    assert zarrdask.open_array(store)[...].tolist() == [1, 2, 3, 4, 3, 4]
    assert store.identity.uri == store.identity.token == "plain:"
    assert [*value_sizes(store, ["c/0", "absent"])] == [len(values["c/0"]), None]


def test_a_store_that_stores_parts_itself_is_called_for_it():
    parts = []

    class OwnParts(Store):
        url = "own:"

        def set_partial_values(self, key_start_values):
            parts.extend(key_start_values)

    set_partial_values(OwnParts(), [("a", 0, b"1")])
    assert parts == [("a", 0, b"1")]


def test_an_error_within_a_property_of_a_store_is_raised_as_it_is():
    class Mistaken(MemoryStore):
        @property
        def url(self):
            return self.pth

    with pytest.raises(AttributeError, match="no attribute 'pth'"):
        _ = Mistaken().url
