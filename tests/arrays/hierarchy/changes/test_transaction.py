"""Changes that begin, are committed, or are aborted together."""

import pytest

from zarrdask.arrays.hierarchy.changes.transaction import Change, transaction
from zarrdask.errors import StoreError


class Recorded(Change):
    """A change that records its steps, and fails in one of them."""

    def __init__(self, name, log, fails=None):
        self.name, self.log, self.fails = name, log, fails

    @property
    def location(self):
        return self.name

    def _step(self, step):
        self.log.append(f"{step} {self.name}")
        if self.fails == step:
            raise StoreError(f"{step} failed")

    def begin(self):
        self._step("begin")

    def commit(self):
        self._step("commit")

    def abort(self):
        self._step("abort")
        return f"{self.name} is as it was"


def test_changes_begin_and_are_committed_in_their_order():
    log = []
    with transaction([Recorded("a", log), Recorded("b", log)]):
        log.append("write")
    assert log == ["begin a", "begin b", "write", "commit a", "commit b"]


def test_a_failed_write_aborts_all_changes():
    log = []
    with pytest.raises(KeyboardInterrupt) as caught, transaction([Recorded(n, log) for n in "ab"]):
        raise KeyboardInterrupt
    assert log == ["begin a", "begin b", "abort a", "abort b"]
    assert caught.value.__notes__ == ["a: a is as it was", "b: b is as it was"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("begin", ["begin a", "begin b", "abort a", "abort b"]),
        ("commit", ["begin a", "begin b", "begin c", "commit a", "commit b", "abort b", "abort c"]),
    ],
)
def test_a_failed_step_aborts_the_changes_that_have_begun_and_are_not_committed(step, expected):
    log = []
    changes = [Recorded("a", log), Recorded("b", log, fails=step), Recorded("c", log)]
    with pytest.raises(StoreError, match=f"{step} failed"), transaction(changes):
        pass
    assert log == expected


def test_the_first_error_is_raised_if_cleaning_up_fails():
    log = []
    changes = [Recorded("a", log, fails="abort"), Recorded("b", log)]
    with pytest.raises(ValueError, match="of the user") as caught, transaction(changes):
        raise ValueError("of the user")
    assert "a: cleaning up failed, too: abort failed" in caught.value.__notes__[0]
    assert caught.value.__notes__[1] == "b: b is as it was"


def test_changes_that_are_committed_later_have_only_begun():
    log = []
    with transaction([Recorded("a", log)], commits=False):
        log.append("write")
    assert log == ["begin a", "write"]


def test_a_change_without_a_commit_says_so():
    class Region(Change):
        location = "a"

        def abort(self):
            return ""

    assert not Region().has_commit
    assert Recorded("a", []).has_commit
