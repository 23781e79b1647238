"""Common jobs where the system lacks what Windows or macOS lacks: simulated, on Linux."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("other_platforms.py")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the simulation takes calls of Linux away")
@pytest.mark.parametrize("platform", ["windows", "macos"])
def test_common_jobs(platform, tmp_path):
    command = [sys.executable, str(PROGRAM), platform, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Temporary files are left by none of the jobs.
    assert not [path.name for path in tmp_path.rglob("*.partial")]
