"""Fixtures of the interop tests."""

import pytest

from tests.interop.shared import Ours


@pytest.fixture(params=["eager", "dask"])
def ours(request: pytest.FixtureRequest) -> Ours:
    """zarrdask, eagerly and through Dask."""
    return Ours(request.param)
