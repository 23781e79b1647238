"""Writes with ``resume=True`` whose process is killed, on an object store."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.object_server import serving
from tests.graph.resumed import VERBS, kill_until_done

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(0.005) as url:
        yield url


@pytest.mark.parametrize("seed", range(10))  # each verb by each package
def test_a_write_that_is_killed_anywhere_is_resumed(
    endpoint: str, tmp_path: Path, seed: int
) -> None:
    verb, remote = VERBS[seed % len(VERBS)], ("fsspec", "auto")[seed % 2]
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    place = f"s3://resume-{uuid4().hex}"
    kill_until_done(tmp_path, verb, place, options, {"zarrdask.remote": remote}, seed)
