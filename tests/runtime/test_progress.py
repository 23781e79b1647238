"""The progress bar, and how tasks of other threads and processes move it."""

import io
import re
import sys
from contextlib import ExitStack, suppress
from types import ModuleType
from unittest.mock import Mock

import dask
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.runtime import progress as progress_module
from zarrdask.runtime.progress import Progress, progress
from zarrdask.storage.remote.rates import RequestRate


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Gone(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError


@pytest.fixture
def slow(monkeypatch):
    """Bars that are written with each step."""
    monkeypatch.setattr(progress_module, "TERMINAL_INTERVAL", 0)
    monkeypatch.setattr(progress_module, "LOG_INTERVAL", 0)


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_the_bar_ends_with_all_that_is_done(kind):
    out = kind()
    with progress(4, "copy", out) as shown:
        for _ in range(4):
            shown.advance()
    last = re.split("[\r\n]", out.getvalue())[-2]
    assert last.startswith("copy: 100%")
    assert "4/4" in last
    assert out.getvalue().endswith("\n")


def test_bytes_are_shown_with_their_unit():
    out = io.StringIO()
    with progress(3_000_000, "rechunk", out, unit="byte") as shown:
        shown.advance(3_000_000)
    assert "3.00M/3.00M" in out.getvalue()


def test_requests_that_are_refused_meanwhile_are_counted():
    rate, before, out = RequestRate("s3://bucket", "read"), io.StringIO(), io.StringIO()
    rate.accept()
    rate.refuse(rate.wait())
    with progress(1, "read", before) as shown:
        shown.advance()
    with progress(1, "read", out) as shown:
        for _ in range(3):
            rate.refuse(0)
        shown.advance()
    assert "refused" not in before.getvalue()
    assert "chunks/s, refused requests: 3]" in out.getvalue()


def test_what_has_to_be_done_again_is_taken_back(slow):
    out = io.StringIO()
    with progress(4, "rechunk", out) as shown:
        shown.advance(3)
        shown.advance(-3)
        assert " 0/4" in out.getvalue().splitlines()[-1]
        shown.advance(1)
        assert " 1/4" in out.getvalue().splitlines()[-1]
        shown.advance(3)
    assert shown.done == 4
    assert "4/4" in out.getvalue().splitlines()[-1]


def test_a_log_is_written_seldom():
    out = io.StringIO()
    with progress(1000, "copy", out) as shown:
        for _ in range(1000):
            shown.advance()
    assert len(out.getvalue().splitlines()) == 1
    assert "\r" not in out.getvalue()


def test_it_is_silent_unless_asked_for(capsys):
    with progress(1, "copy") as shown:
        shown.advance()
    assert shown.done == 1
    assert not shown.is_shown
    assert capsys.readouterr() == ("", "")


def test_the_rate_in_bytes_is_shown_beside_that_of_chunks():
    out = io.StringIO()
    with progress(4, "copy", out, nbytes=2**22) as shown:
        shown.advance(4)
    assert re.search(r"4/4 .* chunks/s, [\d.]+[kMGT]B/s", out.getvalue())


def test_a_function_is_called_with_the_work_and_its_bytes(slow):
    calls = []
    with progress(4, "copy", lambda *state: calls.append(state), nbytes=400) as shown:
        shown.advance(1)
        shown.advance(3)
    assert calls == [(1, 4, 100), (4, 4, 400)]
    with progress(8, "rechunk", lambda *state: calls.append(state), unit="byte") as shown:
        shown.advance(8)
    assert calls[-1] == (8, 8, 8)


def test_of_two_bars_on_one_terminal_one_is_shown(slow):
    out = Terminal()
    with progress(2, "copy", out) as first:
        first.advance()
        with progress(1, "write", out) as second, progress(1, "read", out, leave=False) as third:
            second.advance()
            third.advance()
            assert "write" not in out.getvalue()
        first.advance()
    lines = [line.rpartition("\r")[2] for line in out.getvalue().split("\n")]
    assert [line.partition("%")[0] for line in lines] == ["write: 100", "copy: 100", ""]
    assert "read" not in out.getvalue()


def test_a_bar_that_waited_takes_the_place_of_one_that_ended(slow):
    out = Terminal()
    with ExitStack() as first, progress(2, "write", out) as second:
        first.enter_context(progress(1, "copy", out)).advance()
        second.advance()
        first.close()
        second.advance()
        assert "\rwrite: 100%" in out.getvalue()


def test_a_bar_that_was_interrupted_at_its_end_does_not_keep_others_from_the_terminal(slow):
    out = Terminal()
    with suppress(KeyboardInterrupt), progress(1, "copy", out):
        out.write = Mock(side_effect=KeyboardInterrupt)
    del out.write
    with progress(1, "write", out) as second:
        second.advance()
        assert "write: 100%" in out.getvalue()


def test_a_terminal_without_unicode_gets_plain_characters():
    class Old(Terminal):
        encoding = "ascii"

    out = Old()
    with progress(2, "copy", out) as shown:
        shown.advance(2)
    assert out.getvalue().isascii()


def test_a_notebook_gets_one_bar_that_is_updated(slow, monkeypatch):
    shown = []

    class ZMQInteractiveShell:
        pass

    notebook = ModuleType("IPython")
    notebook.get_ipython = ZMQInteractiveShell
    notebook.display = ModuleType("IPython.display")
    notebook.display.display = lambda content, **options: shown.append((content, options))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    with progress(2, "copy", True) as work:
        work.advance(2)
    assert [options["update"] for _, options in shown] == [False, True]
    assert len({options["display_id"] for _, options in shown}) == 1
    assert '<progress value="2" max="2"' in shown[-1][0]["text/html"]
    assert "copy: 100% 2/2" in shown[-1][0]["text/plain"]


def test_work_goes_on_when_nobody_reads_the_bar(slow):
    with progress(2, "copy", Gone()) as shown:
        shown.advance(2)
    assert shown.done == 2


@pytest.mark.parametrize(
    ("size", "is_terminal", "is_shown"),
    [(2**20, True, True), (2**20, False, False), (2**22, True, False), (None, True, False)],
)
def test_a_large_eager_access_is_shown_on_a_terminal(monkeypatch, size, is_terminal, is_shown):
    out = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    z = zarrdask.create_array({}, shape=(64, 2**15), dtype="u1", chunks=(1, 2**15))
    with dask.config.set({"zarrdask.progress-size": size}):
        z[...] = 3
        values = z[...]
        small = z[:4]
    assert (values == 3).all()
    assert (small == 3).all()
    lines = [line for line in out.getvalue().split("\r") if line.strip()]
    assert [any(line.startswith(verb) for line in lines) for verb in ("write", "read")] == [
        is_shown
    ] * 2
    # The bar goes when it is done.
    assert out.getvalue().rpartition("\r")[2] == ""


@for_each(
    "unit, nbytes, done, rate",
    [
        ("chunk", 10**6, 30, "15.0 chunks/s, 150kB/s"),
        ("region", 0, 1, "2.0 s/region"),
        ("block", 0, 100, "50.0 blocks/s"),
        ("byte", 100, 100, "50.0B/s"),
    ],
)
def test_the_rate_of_a_line(monkeypatch, unit, nbytes, done, rate):
    times = iter([0.0, 2.0, 2.0])
    monkeypatch.setattr(progress_module, "monotonic", lambda: next(times))
    work = Progress(100, "copy", unit, nbytes)
    work.done = done
    line = work.line(ncols=100)
    assert line.endswith(f", {rate}]")
    assert "  " not in line.partition("|")[2].rpartition("|")[2]


def test_work_that_was_done_before_does_not_count_for_the_rate(monkeypatch):
    monkeypatch.setattr(progress_module, "monotonic", lambda: 1.0)
    work = Progress(100, "copy", "chunk", 0)
    work.resume(50)
    work.advance(20)
    monkeypatch.setattr(progress_module, "monotonic", lambda: 3.0)
    assert "70/100" in work.line()
    assert work.line().endswith("[00:02<00:03, 10.0 chunks/s]")
