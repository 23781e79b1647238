"""The command `repair`."""

import os

import pytest

from tests.tools.cli.commands import call


def test_repair(capsys, pair):
    a, b = pair
    os.truncate(a / "x/c/1", 3)
    (a / "x/c/2").unlink()
    done = call(capsys, "repair", a, b)
    assert done.code == 1
    assert "NOT OK: 1 truncated" in done.out
    assert (
        f"x/c/2: stored only in {b}/x; to copy it, repair with missing=True (--missing)" in done.out
    )
    assert done.out.splitlines()[-1] == "NOT OK: 1 absent"
    assert call(capsys, "diff", a, b).code == 1
    done = call(capsys, "repair", a, b, "--missing", "--dry-run")
    assert (done.code, done.out.splitlines()[-1]) == (1, "NOT OK: 1 absent")
    done = call(capsys, "repair", a, b, "--missing")
    assert (done.code, done.out.splitlines()[-1]) == (0, "ok")
    assert call(capsys, "diff", a, b).code == 0


def test_what_is_to_be_repaired_from_must_be_there(capsys, pair, monkeypatch):
    monkeypatch.setattr(
        "zarrdask.tools.cli.checks.repair.verify", lambda *_, **__: pytest.fail("work began")
    )
    done = call(capsys, "repair", pair[0], pair[0].parent / "gone")
    assert (done.code, done.out) == (2, "")
    assert "gone: there is no array or group here" in done.err


def test_a_dry_run_of_a_repair_only_checks(capsys, pair):
    os.truncate(pair[0] / "x/c/1", 3)
    done = call(capsys, "repair", pair[0], pair[1], "--dry-run")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "NOT OK: 1 truncated"
    assert (pair[0] / "x/c/1").stat().st_size == 3


def test_a_repair_of_what_is_intact_says_so(capsys, pair):
    a, b = pair
    assert call(capsys, "repair", b, a).out.endswith("ok\nnothing to repair\n")
