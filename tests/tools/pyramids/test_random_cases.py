"""Random pyramids equal those that brute force computes."""

import os

import pytest

from tests.covering import for_each
from tests.tools.pyramids.random_cases import random_case

#: How many cases there are in the stress suite; by hand, more.
CASES = int(os.environ.get("ZARRDASK_PYRAMIDS", "60"))


@for_each("seed", range(24))
def test_levels_equal_brute_force(seed):
    random_case(seed).run()


@pytest.mark.stress
@for_each("seed", range(24, 24 + CASES))
def test_more_levels_equal_brute_force(seed):
    random_case(seed).run("threads" if seed % 2 else "sync")
