"""Archives to test, and processes."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from zarrdask.storage.zip.store import ZipStore


@pytest.fixture
def store(tmp_path):
    return ZipStore(tmp_path / "a.zip")


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool
