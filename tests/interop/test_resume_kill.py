"""Writes with ``resume=True`` whose process is killed, on an object store."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.object_server import serving
from tests.parallel.graph.resumed import VERBS, kill_until_done

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(0.005) as url:
        yield url


@pytest.mark.parametrize("seed", range(14))  # each verb by each package
def test_a_write_that_is_killed_anywhere_is_resumed(
    endpoint: str, tmp_path: Path, seed: int
) -> None:
    kill(endpoint, tmp_path, seed, "threads")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [3, 6])
def test_a_write_whose_workers_are_killed_is_resumed(
    endpoint: str, tmp_path: Path, seed: int
) -> None:
    kill(endpoint, tmp_path, seed, "cluster")


def kill(endpoint: str, folder: Path, seed: int, on: str) -> None:
    """Kill a write, or its workers, again and again until it is complete."""
    verb, remote = VERBS[seed % len(VERBS)], ("fsspec", "auto")[seed % 2]
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    place = f"s3://resume-{uuid4().hex}"
    kill_until_done(folder, verb, place, options, {"zarrdask.remote": remote}, seed, on)
