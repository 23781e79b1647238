"""A store with no more than what each store has: reading, writing and erasing one value."""

from zarrdask.storage.base import Store


class UnlistedStore(Store):
    """A store that can't tell what is in it.

    Attributes
    ----------
    values : dict of str to bytes
        What is in it.
    """

    url = "unlisted"

    def __init__(self, values=None):
        self.values = {} if values is None else values

    def get(self, key):
        return self.values.get(key)

    def set(self, key, value):
        self.values[key] = bytes(value)

    def erase(self, key):
        self.values.pop(key, None)
