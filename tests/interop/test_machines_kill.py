"""Workers and clients on several machines, which vanish while they write."""

from pathlib import Path

import pytest

from tests.processes import Program

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
    code = "import sys; from tests.interop.machines import main; main(*sys.argv[1:])"
    trial = Program(code, kind, place, 0, tmp_path).finish(380)
    assert trial.code == 0, trial.err[-3000:]
