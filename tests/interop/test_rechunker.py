"""rechunker's own tests, of zarrdask.compat.rechunker."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

import zarrdask
from tests.interop.peers.environments import ALONE, python_of

PEERS = Path(__file__).parent / "peers"


@pytest.fixture
def tests(tmp_path):
    """The directory of the tests, which are in the source distribution only."""
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    download += ["--no-binary", "rechunker", "--dest", tmp_path, ALONE["rechunker"][0]]
    subprocess.run([python_of("rechunker"), *download], check=True)
    [archive] = tmp_path.glob("rechunker-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    return tmp_path / archive.name.removesuffix(".tar.gz") / "tests"


@pytest.mark.timeout(900)
def test_its_tests_pass(tests):
    folders = [str(Path(zarrdask.__file__).parents[1]), str(PEERS)]
    run = subprocess.run(  # noqa: PLW1510 - the output says more than a status
        [
            *(python_of("rechunker"), "-m", "pytest", "-q", "-W", "ignore", "--tb=short"),
            *("-p", "as_rechunker", "-p", "no:cacheprovider", "test_rechunk.py"),
        ],
        cwd=tests,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:]
    assert " passed" in run.stdout
