"""The job array of docs/jobs.md, with processes instead of machines."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

import zarrdask
from tests.processes import Program

PAGE = Path(__file__).parents[1] / "docs" / "jobs.md"
FILES = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_files_of_the_page_are_programs():
    assert len(FILES) == 4
    for text in FILES:
        compile(text, "jobs.md", "exec")


@pytest.mark.slow
def test_a_job_array_writes_all_regions_and_resumes_after_a_kill(tmp_path):
    url, done = tmp_path / "result.zarr", tmp_path / "done"
    environment = {"OUTPUT": str(url), "DONE": str(done)}

    def start(*arguments):
        return Program(FILES[0], *arguments, environment=environment)

    assert start("create").finish().code == 0
    killed = start("0", "2")
    while killed.is_alive() and not (done.is_dir() and len([*done.iterdir()]) >= 2):
        time.sleep(0.001)
    killed.kill()
    killed.finish()
    before = {path.name for path in done.iterdir()}
    stored = {path.name: path.stat().st_mtime_ns for path in done.iterdir()}
    assert [process.finish().code for process in [start("0", "2"), start("1", "2")]] == [0, 0]
    assert len(before) >= 2
    assert all((done / name).stat().st_mtime_ns == stored[name] for name in before)
    expected = np.arange(4000.0)[:, None] * np.ones(100)
    np.testing.assert_array_equal(zarrdask.open_array(url)[...], expected)
