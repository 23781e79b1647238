"""A store in memory that replaces values on a condition."""

from dataclasses import replace

from zarrdask.storage.memory import MemoryStore


class Swapping(MemoryStore):
    """A store in memory whose values are their own tags."""

    capabilities = replace(MemoryStore.capabilities, compare_and_swap=True)
    others = None

    def get_tagged(self, key):
        value = self.get(key)
        return value, value

    def swap(self, key, value, tag):
        others, self.others = self.others, None
        if others is not None:
            others()
        if self.get(key) != tag:
            return False
        self.set(key, value)
        return True
