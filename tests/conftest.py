"""What all tests share: settings of hypothesis, and stores to run on."""

import gc
import multiprocessing
import multiprocessing.forkserver
import re
import shutil
import signal
import uuid
from functools import cache
from itertools import count
from zlib import crc32

import dask.config
import pytest
from hypothesis import HealthCheck, settings

from zarrdask import config
from zarrdask.formats.codecs.registry import CODECS
from zarrdask.formats.dtypes.registry import DATA_TYPES
from zarrdask.formats.grids.chunk_grid import GRIDS
from zarrdask.formats.grids.keys import KEY_ENCODINGS
from zarrdask.formats.metadata.extensions import EXTENSIONS
from zarrdask.formats.metadata.storage_transformers import TRANSFORMERS
from zarrdask.storage.remote import retry
from zarrdask.storage.remote.rates import RequestRate
from zarrdask.storage.resolve import resolve
from zarrdask.storage.schemes import ADAPTERS, STORES

REGISTRIES = (ADAPTERS, CODECS, DATA_TYPES, EXTENSIONS, GRIDS, KEY_ENCODINGS, STORES, TRANSFORMERS)

#: Of the directories of tests.
NUMBERS = count()
HAS_FAILED = pytest.StashKey[bool]()

pytest_plugins = [
    "tests.cost",
    "tests.rotation",
    "tests.reports",
    "tests.suites",
    "tests.docstrings",
]
pytest.register_assert_rewrite("tests.contracts.codec")

settings.register_profile(
    "zarrdask",
    deadline=None,
    max_examples=16,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# CI, with the oldest dependencies, where our own logic is the same: --hypothesis-profile=few
settings.register_profile("few", settings.get_profile("zarrdask"), max_examples=8)
# By hand, for a longer search: --hypothesis-profile=deep
settings.register_profile("deep", settings.get_profile("zarrdask"), max_examples=1500)
settings.load_profile("zarrdask")

# A process that is forked from one that has everything imported is there at once. Dask's own way
# is "spawn", which the tests of schedulers ask for.
dask.config.set(
    {
        "multiprocessing.context": "forkserver",
        "distributed.worker.multiprocessing-method": "forkserver",
        # Clusters stay until the end: they look at themselves now and then only.
        "distributed.admin.system-monitor.interval": "1m",
        "distributed.admin.tick.interval": "1s",
        "distributed.worker.memory.monitor-interval": "10s",
        "distributed.worker.profile.enabled": False,
    }
)


def pytest_addoption(parser):
    parser.addoption(
        "--every-pause", action="store_true", help="let two writers pause before each operation"
    )


def pytest_configure():
    # A shell lets jobs in the background, and all processes that they start, ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage meanwhile: what is imported and found stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session):
    """Make ready for thousands of tests."""
    from tests.cost import uses_workers  # a plugin, which pytest has to import

    # They stay until the end: no collection of garbage goes through them, now or later.
    gc.freeze()
    # Only now: distributed, which tests import, says what it needs itself.
    preloaded = [
        "zarrdask",
        "zarrdask.parallel.graph.to_zarr",
        "dask.array",
        "distributed",
        "fsspec",
    ]
    multiprocessing.set_forkserver_preload(preloaded)
    is_one_of_several = hasattr(session.config, "workerinput")  # of pytest-xdist: many tests
    if is_one_of_several and any(map(uses_workers, session.items)):
        multiprocessing.forkserver.ensure_running()  # it imports while the first tests run


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Limit the rate of requests by what a test has been refused, not by what others were."""
    # A hook costs less than a fixture that each test has.
    retry.request_rate = cache(RequestRate)


def _failed_if_skipped(report):
    # A skip goes unnoticed, and nothing justifies one: all that tests need is in the project or in
    # its extra `test`.
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = str(report.longrepr[2])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed:
        item.stash[HAS_FAILED] = True
    # xarray's own tests, which are run with our engine, choose themselves what does not apply.
    bases = getattr(getattr(item, "cls", None), "__mro__", ())
    is_of_xarray = any(base.__module__.startswith("xarray.") for base in bases)
    return report if is_of_xarray else _failed_if_skipped(report)


@pytest.fixture
def setting():
    """Set values of Dask's configuration for one test: ``setting({"zarrdask.threads": 1})``."""
    config.get("block-size")  # the defaults must be there before they are overridden
    entered = []

    def set_(values):
        change = dask.config.set(values)
        change.__enter__()
        entered.append(change)

    yield set_
    for change in reversed(entered):
        change.__exit__(None, None, None)


@pytest.fixture
def own_registries(monkeypatch):
    """Forget after the test what it registers."""
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "registered", dict(registry.registered))


@pytest.fixture(scope="session")
def cluster():
    """A cluster of two processes; who wants a client makes one."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster_address(cluster):
    """The address of the cluster of two processes."""
    return cluster.scheduler_address


@pytest.fixture(scope="module")
def client(cluster_address):
    """A client of it that is not the default one."""
    from distributed import Client

    with Client(cluster_address, set_as_default=False) as client:
        yield client


@pytest.fixture(params=["sync", "threads", "processes", "cluster"])
def scheduler(request):
    """Each of Dask's schedulers, as its setting takes them."""
    return request.getfixturevalue("client") if request.param == "cluster" else request.param


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """An empty directory, as pytest's own fixture of this name, which takes three times as long."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    path.mkdir(mode=0o700)
    yield path
    if HAS_FAILED in request.node.stash:
        return
    try:
        path.rmdir()  # most are empty
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(request):
    """Somewhere to store nodes: a dict, a directory or a URL, by the name of the test.

    `StoreContract` holds all stores to the same; a test of nodes needs one of them.
    """
    match crc32(request.node.nodeid.encode()) % 3:
        case 0:
            return {}
        case 1:
            return request.getfixturevalue("tmp_path") / "store"
        case _:
            return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def store(place):
    """The store of `place`."""
    return resolve(place)
