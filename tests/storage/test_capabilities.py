"""The methods of the class of a store say what it supports, in the order of its bases."""

import pytest

from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MemoryStore


class Bucket(MemoryStore):
    capabilities = Capabilities(compare_and_swap=True)

    def swap(self, key, value, tag):
        return True


class Noted(MemoryStore):
    """Overrides nothing that has to agree with `swap`."""

    noted = True


class Encrypted(MemoryStore):
    def set(self, key, value):
        super().set(key, value[::-1])


@pytest.mark.parametrize(
    ("bases", "can_swap"),
    [
        ((Bucket,), True),
        ((Encrypted,), False),
        ((Noted, Bucket), True),
        ((Encrypted, Bucket), False),
        ((Bucket, Encrypted), True),
    ],
)
def test_a_class_loses_what_its_methods_bypass(bases, can_swap):
    assert type("Both", bases, {}).capabilities.compare_and_swap is can_swap
