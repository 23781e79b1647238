"""The methods of the class of a store say what it supports, in the order of its bases."""

import pytest

from zarrdask.storage.capabilities import LOCAL_COSTS, REMOTE_COSTS, Capabilities
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


def test_requests_that_are_slow_cost_more_and_blocks_are_larger():
    near, far = LOCAL_COSTS, REMOTE_COSTS
    assert far > near
    assert far.block_factor > near.block_factor
    assert far.in_flight > near.in_flight


@pytest.mark.parametrize(
    ("capabilities", "is_fast"),
    [
        (Capabilities(costs=LOCAL_COSTS, directories=True), True),
        (Capabilities(costs=LOCAL_COSTS, shared=False), True),
        # A mapping of a user may be slow.
        (Capabilities(costs=LOCAL_COSTS), False),
        (Capabilities(directories=True), False),
    ],
)
def test_keys_are_looked_up_fast_on_a_disk_and_in_a_dict(capabilities, is_fast):
    assert capabilities.is_listed_fast is is_fast
