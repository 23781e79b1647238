"""Workers and clients on several machines, which vanish while they write."""

import subprocess
from pathlib import Path

import pytest

from tests.interop.machines import ROOT, command

pytestmark = [pytest.mark.stress, pytest.mark.timeout(400)]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("two_clients", "s3"),
        ("lost_client", "shared"),
        ("resume", "shared"),
        ("resume", "s3"),
        ("icechunk", "shared"),
    ],
)
def test_machines_vanish(tmp_path: Path, kind: str, place: str) -> None:
    # Where namespaces are not permitted, this fails; CI says then that it leaves these tests out.
    trial = subprocess.run(
        command(kind, place, 0, tmp_path),
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=380,
    )
    assert trial.returncode == 0, trial.stderr[-3000:]
