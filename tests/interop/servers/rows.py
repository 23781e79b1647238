"""Fixtures of the servers, by the packages that open their URLs."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import NamedTuple

import dask
import pytest

from tests.interop.servers.cloud import Cloud
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import resolve

#: The servers and the packages that open their URLs. The emulator of Google has the JSON interface
#: only, which obstore does not use.
ROWS = (
    *(("ceph", "obstore"), ("ceph", "fsspec")),
    *(("azurite", "obstore"), ("azurite", "fsspec")),
    ("google", "fsspec"),
)
#: Those of them by which conditional writes are sent.
CONDITIONAL = ROWS[:3]
#: Those that check signatures and list in pages, which the emulator of Google does not.
COMPLETE = ROWS[:4]


class Place(NamedTuple):
    """A new bucket of a server, whose URL a package opens.

    Attributes
    ----------
    server, package : str
        The row.
    url : str
        The URL of the bucket.
    options : dict
        The `storage_options`.
    """

    server: str
    package: str
    url: str
    options: dict[str, object]

    def store(self, path: str = "") -> Store:
        """Return the store at a path in the bucket."""
        return resolve(f"{self.url}/{path}".rstrip("/"), self.options)


class Servers:
    """The servers that were started."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._started = stack, dict[str, Cloud]()

    def __getitem__(self, name: str) -> Cloud:
        if name not in self._started:
            serving = import_module(f"tests.interop.servers.{name}").serving
            self._started[name] = self._stack.enter_context(serving())
        return self._started[name]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers, each of which is started when it is first used, and ended at the end."""
    with ExitStack() as stack:
        yield Servers(stack)


def new_place(row: tuple[str, str], servers: Servers) -> Iterator[Place]:
    server, package = row
    with dask.config.set({"zarrdask.remote": package}):
        cloud = servers[server]
        yield Place(server, package, cloud.new_url(), cloud.options)


@pytest.fixture(params=ROWS, ids="-".join)
def place(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Place]:
    """A new bucket of each server, by each package."""
    yield from new_place(request.param, servers)


@pytest.fixture(params=CONDITIONAL, ids="-".join)
def conditional(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Place]:
    """A new bucket of each server, by each package that sends conditional writes."""
    yield from new_place(request.param, servers)
