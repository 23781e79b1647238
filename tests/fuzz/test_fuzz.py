"""Nothing that is damaged gives another exception, wrong values, a crash, a hang, or takes memory.

500 cases; as many as the variable ``ZARRDASK_FUZZ`` says (of a night: 20000 and more), from the
seed in ``ZARRDASK_FUZZ_SEED``.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.fuzz import cases, corpus

pytestmark = pytest.mark.stress

COUNT = int(os.environ.get("ZARRDASK_FUZZ", "500"))
FIRST = int(os.environ.get("ZARRDASK_FUZZ_SEED", "0"))
PARTS = 4


def child(first: int, count: int) -> tuple[list[dict[str, Any]], dict[str, int], int]:
    """Run cases in a process of their own; return failures, how all ended, and the last seed."""
    command = [sys.executable, "-m", "tests.fuzz", "--from", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failures = [line for line in lines if "failure" in line]
    last = max((line["seed"] for line in lines if "seed" in line), default=first)
    ends = next((line["ends"] for line in lines if "ends" in line), None)
    if ends is None:
        died = f"the process ended with {done.returncode}\n{done.stderr[-3000:]}"
        failures.append({"case": f"seed {last}", "failure": died})
    return failures, ends or {}, last


def signature(failure: str) -> str:
    """Return what failures of one cause have in common."""
    frames = re.findall(r'File "[^"]*/([^/"]+)", line (\d+)', failure)
    return f"{frames[-1:]} {failure.strip().splitlines()[-1][:100]}"


@pytest.mark.timeout(120 + COUNT)
@pytest.mark.parametrize("part", range(PARTS))
def test_damage_is_seen_or_harmless(part):
    size = -(-COUNT // PARTS)
    first, end = FIRST + part * size, FIRST + (part + 1) * size
    failures: list[dict[str, Any]] = []
    while first < end:
        found, _, last = child(first, end - first)
        failures += found
        first = last + 1
    kinds: dict[str, list[dict[str, Any]]] = {}
    for found in failures:
        kinds.setdefault(signature(found["failure"]), []).append(found)
    report = "\n\n".join(
        f"{len(k)} like this:\n{k[0]['case']}\n{k[0]['failure']}" for k in kinds.values()
    )
    assert not failures, f"{report}\n\nAgain: python -m tests.fuzz SEED"


def test_the_undamaged_can_be_read():
    """What zarrdask wrote itself, at least: else damage to chunks would prove nothing."""
    made = [member for member in corpus.members() if member.store.startswith("made-")]
    assert len(made) > 60
    assert all(cases.undamaged(member) is not None for member in made)


def test_most_cases_are_noticed_and_some_do_no_harm():
    _, ends, _ = child(10**6, 100)
    total = sum(ends.values())
    errors = sum(count for end, count in ends.items() if end.endswith("Error"))
    assert total == 100
    assert 30 < errors < 97
    assert sum(count for end, count in ends.items() if end.endswith(": ok")) > 3
