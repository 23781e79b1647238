"""Classes of stores whose methods count requests."""

from dataclasses import dataclass

import cloudpickle

import zarrdask
from zarrdask.storage import Store


def store_of_a_script():
    """Return a store whose class a script defines, so that it is pickled by value."""
    # A class that can be imported would be pickled by its name.
    names = {"__name__": "__main__", "Store": Store, "dataclass": dataclass}
    exec(
        "@dataclass(frozen=True)\n"
        "class Constant(Store):\n"
        "    value: bytes\n"
        "    url = 'constant://'\n"
        "    def get(self, key):\n"
        "        return self.value\n"
        "    def get_many(self, keys, scratch=None):\n"
        "        for key in keys:\n"
        "            yield self.value\n",
        names,
    )
    return names["Constant"](b"7")


def test_a_store_of_a_script_is_pickled_by_value_and_counts():
    store = cloudpickle.loads(cloudpickle.dumps(store_of_a_script()))
    with zarrdask.measured() as m:
        assert store.get("a") == b"7"
        assert [*store.get_many(["a", "b"])] == [b"7", b"7"]
    assert m.requests["GET"] == 3
