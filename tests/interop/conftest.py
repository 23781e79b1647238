"""Fixtures of the interop tests."""

from collections.abc import Iterator

import pytest

from tests.interop.peers.client import Peer
from tests.interop.shared import Ours

# What runs in the peers' own Pythons can't be imported here.
collect_ignore_glob = ["peers/*.py"]


@pytest.fixture(params=["eager", "dask"])
def ours(request: pytest.FixtureRequest) -> Ours:
    """zarrdask, eagerly and through Dask."""
    return Ours(request.param)


def peer(name: str) -> Iterator[Peer]:
    found = Peer(name)
    yield found
    found.close()


@pytest.fixture(scope="session")
def zarr2() -> Iterator[Peer]:
    """zarr-python 2.18, in an environment of its own."""
    yield from peer("zarr2")


@pytest.fixture(scope="session")
def newest() -> Iterator[Peer]:
    """The newest zarr-python, on Python 3.12 or newer."""
    yield from peer("newest")


@pytest.fixture(scope="session")
def gdal() -> Iterator[Peer]:
    """GDAL 3.6, of Debian."""
    yield from peer("gdal")
