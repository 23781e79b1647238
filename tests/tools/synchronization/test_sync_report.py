"""The report of a synchronization."""

from zarrdask.tools.synchronization.sync_report import SyncReport

REPORT = SyncReport("a", "b", added=("c/0",), changed=("c/1", "c/2"), removed=(), bytes=2048)


def test_one_line_says_what_was_done():
    assert REPORT.summary() == "a -> b: 1 added, 2 changed, 0 removed, 2 KiB"
    assert str(REPORT) == REPORT.summary()


def test_nodes_are_equal_after_it_unless_something_stays():
    assert REPORT.is_equal
    assert not SyncReport("a", "b", (), (), (), kept=("x",)).is_equal
    assert REPORT.to_dict()["is_equal"] is True


def test_a_dry_run_says_whether_they_are_equal_now():
    assert SyncReport("a", "b", (), (), (), dry_run=True).is_equal
    dry = SyncReport("a", "b", ("x",), (), (), dry_run=True)
    assert not dry.is_equal
    assert dry.summary().endswith("(dry run)")


def test_the_text_says_what_else_happened():
    report = SyncReport(
        "a", "b", (), (), (), kept=("x",), replaced=("", "t"), changed_meanwhile=("c/0", "c/1")
    )
    _, *lines = str(report).splitlines()
    assert lines == [
        "replaced /",
        "replaced t",
        "kept 1 object that only the target has; delete=True removes them",
        "compared again, as 2 objects changed during the run",
    ]
