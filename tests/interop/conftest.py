"""Fixtures of the interop tests."""

import asyncio
import inspect
import multiprocessing
import multiprocessing.forkserver
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from toolz import groupby

from tests.covering import sample
from tests.interop.peers.client import Peer
from tests.interop.shared import Ours

# What runs in the peers' own Pythons can't be imported here.
collect_ignore_glob = ["peers/*.py"]


#: What processes of these tests need besides Dask, imported once by the server that forks them.
PRELOADED = ("zarrdask.xarray", "numcodecs", "s3fs", "obstore", "tests.parallel.graph.resumed")
#: The marks of xarray's own tests, which `test_xarray_suite` runs.
XARRAY_MARKS = ("asyncio", "flaky", "network", "skip_if_param", "skip_with_dask_array", "slow")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks of xarray's tests known."""
    for name in XARRAY_MARKS:
        config.addinivalue_line("markers", f"{name}: a mark of xarray's own tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that a module expects to fail, by name, with the reason that it gives.

    Those that pass though xarray's own marks expect them to fail lose these marks. Of the
    products of parameters of xarray's tests, a sample is run in which any two values meet.
    """
    kept = {item for cases in groupby(_test_of, items).values() for item in _pairs(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if item.originalname in getattr(item.module, "PASSES", ()):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "xfail"]
        reasons = getattr(item.module, "EXPECTED_FAILURES", {})
        kind = item.cls.__name__ if item.cls else ""
        names = (item.name, item.originalname, f"{kind}.{item.originalname}")
        reason = next(filter(None, map(reasons.get, names)), None)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _pairs(cases: list[Any]) -> list[Any]:
    """Return the cases of a test of xarray's that are run; of other tests all."""
    if "_suite.py::" not in cases[0].nodeid or len(cases) == 1:
        return cases
    by_values = {tuple(map(repr, case.callspec.params.values())): case for case in cases}
    if len(by_values) < len(cases):
        return cases
    return [by_values[values] for values in sample(by_values, min(2, len(next(iter(by_values)))))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the server that forks processes, before all tests do so with fewer packages."""
    if hasattr(session.config, "workerinput"):
        multiprocessing.set_forkserver_preload(["zarrdask.parallel.graph.to_zarr", *PRELOADED])
        multiprocessing.forkserver.ensure_running()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines: some of xarray's are."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def ours(request: pytest.FixtureRequest) -> Ours:
    """zarrdask, eagerly or through Dask: each test uses one of both, which its name decides."""
    return Ours("dask" if crc32(request.node.nodeid.encode()) % 2 else "eager")


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
def pyramids() -> Iterator[Peer]:
    """ome-zarr-models, ome-zarr, ngff-zarr and zarr-cm."""
    yield from peer("pyramids")


@pytest.fixture(scope="session")
def gdal() -> Iterator[Peer]:
    """GDAL 3.6, of Debian."""
    yield from peer("gdal")
