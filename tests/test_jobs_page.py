"""The job array of docs/jobs.md, with processes instead of machines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrdask

PAGE = Path(__file__).parents[1] / "docs" / "jobs.md"
FILES = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_files_of_the_page_are_programs():
    assert len(FILES) == 4
    for text in FILES:
        compile(text, "jobs.md", "exec")


@pytest.mark.slow
def test_a_job_array_writes_all_regions_and_resumes_after_a_kill(tmp_path):
    job, url, done = tmp_path / "job.py", tmp_path / "result.zarr", tmp_path / "done"
    job.write_text(FILES[0])
    environment = {**os.environ, "OUTPUT": str(url), "DONE": str(done)}

    def start(*arguments):
        return subprocess.Popen([sys.executable, job, *arguments], env=environment)

    assert start("create").wait() == 0
    killed = start("0", "2")
    while killed.poll() is None and not (done.is_dir() and len([*done.iterdir()]) >= 2):
        pass
    killed.kill()
    killed.wait()
    before = {path.name for path in done.iterdir()}
    stored = {path.name: path.stat().st_mtime_ns for path in done.iterdir()}
    assert [process.wait() for process in [start("0", "2"), start("1", "2")]] == [0, 0]
    assert len(before) >= 2
    assert all((done / name).stat().st_mtime_ns == stored[name] for name in before)
    expected = np.arange(4000.0)[:, None] * np.ones(100)
    np.testing.assert_array_equal(zarrdask.open_array(url)[...], expected)
