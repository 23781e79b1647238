"""The report of a check: which problems make it fail."""

from tests.covering import for_each
from zarrdask.tools.verification.check import Problem
from zarrdask.tools.verification.verification_report import (
    FAILING_KINDS,
    STRICT_FAILING_KINDS,
    ArrayReport,
    VerifyReport,
)

ARRAY = ArrayReport("t", (8,), "i4", 4, 3, 1, 0, 3, 2048)


def report(*kinds, strict=False, **others):
    problems = tuple(
        Problem(kind, "t", f"t/c/{number}", "a message", (number,))
        for number, kind in enumerate(kinds)
    )
    return VerifyReport("a.zarr", 1, (ARRAY,), problems, strict=strict, **others)


@for_each("kind", FAILING_KINDS)
def test_damage_makes_a_check_fail(kind):
    assert not report(kind).ok
    assert not report(kind, strict=True).ok


@for_each("kind", STRICT_FAILING_KINDS)
def test_notes_make_a_strict_check_fail(kind):
    assert report(kind).ok
    assert not report(kind, strict=True).ok


@for_each("kind", ["extra", "partial", "missing", "fill-only"])
def test_remarks_make_no_check_fail(kind):
    assert report(kind, strict=True).ok


def test_bad_chunks_are_counted_once():
    found = report("corrupt", "extra", "truncated")
    twice = VerifyReport("a", 0, (), found.problems + found.problems)
    assert twice.bad == {"t": ((0,), (2,))}
    assert (twice.count("corrupt"), twice.count("unreadable")) == (2, 0)
    assert report("invalid").bad == {}


def test_the_summary_names_the_first_failure():
    assert "t/c/1" in report("extra", "corrupt").summary()
    assert report("corrupt").to_dict()["ok"] is False


def test_an_array_has_the_numbers_of_its_chunks():
    assert str(ARRAY) == "t (8,) i4: 3 of 4 chunks or shards stored, 2 KiB"
    sharded = ArrayReport("", (8,), "i4", 4, 3, 1, 2, 6, 0)
    assert str(sharded).startswith("/ (8,)")
    assert str(sharded).endswith(", 6 chunks in them, 2 of fill values only")
