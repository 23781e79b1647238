"""What the command line prints."""

import json
import re
import sys
from io import BytesIO, TextIOWrapper

import pytest

import zarrdask
from tests.tools.cli.commands import call, lines
from zarrdask.errors import NodeNotFoundError
from zarrdask.tools.cli.app import run

HOSTILE = "\x1b]0;title\x07\x9b31m\u202e\x7f\r\u2028"


def is_printable(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def hostile(tmp_path):
    """A hierarchy whose names, dimensions and attributes have escape sequences."""
    root = zarrdask.create_group(tmp_path / "data.zarr", attributes={HOSTILE: {HOSTILE: HOSTILE}})
    options = {"attributes": {HOSTILE: HOSTILE}, "dimension_names": [HOSTILE], "shards": 4}
    z = root.create_array(HOSTILE, shape=4, dtype="i4", chunks=2, **options)
    z[...] = 1
    root.create_group("invalid").create_array(f"{HOSTILE}y", shape=4, dtype="i4")
    for path in (tmp_path / "data.zarr/invalid").glob("*/zarr.json"):
        path.write_text(json.dumps({"zarr_format": 3, "node_type": HOSTILE}))
    (tmp_path / f"data.zarr/{HOSTILE}/c/0").write_bytes(b"damaged")
    (tmp_path / f"data.zarr/{HOSTILE}/c/{HOSTILE}").write_bytes(b"foreign")
    return tmp_path / "data.zarr"


@pytest.mark.parametrize("terminal", [False, True])
def test_names_do_not_control_the_terminal(capsys, hostile, monkeypatch, terminal):
    if terminal:
        monkeypatch.setattr("zarrdask.tools.cli.output.is_coloured", lambda: True)
        monkeypatch.setenv("TERM", "dumb")
    array, other = hostile / HOSTILE, hostile.with_name("other.zarr")
    for arguments in (
        *(
            ["info", array],
            ["info", hostile],
            ["info", array, "--stored"],
            ["info", array, "--json"],
        ),
        *(["tree", hostile], ["tree", array], ["ls", hostile], ["ls", "--long", hostile]),
        *(["ls", "--long", hostile / "invalid"], ["tree", hostile / "invalid"]),
        *(["attrs", hostile], ["attrs", "get", hostile, HOSTILE], ["attrs", "get", hostile, "?"]),
        *(["verify", hostile], ["diff", hostile, array], ["stats", array], ["info", array / "x"]),
        *(["copy", hostile, other], ["rechunk", array, other, "--chunks", "4", "--dry-run"]),
        *(["verify", "--json", hostile], ["info", hostile / f"{HOSTILE}z"]),
    ):
        done = call(capsys, *arguments)
        shown = re.sub(r"\x1b\[[\d;]*m", "", done.out) if terminal else done.out
        assert done.out or done.err, arguments
        assert is_printable(shown), arguments
        assert is_printable(done.err), arguments


def test_texts_do_not_control_the_terminal(hostile):
    group = zarrdask.open_group(hostile)
    z, report = group[HOSTILE], zarrdask.verify(hostile)
    plans = zarrdask.plan_read(zarrdask.from_zarr(z)), zarrdask.compare(hostile, hostile)
    with pytest.raises(NodeNotFoundError) as error:
        group[f"{HOSTILE}z"]
    for value in (group, z, group.info, z.info, group.tree(), report, error.value, z.attrs, *plans):
        for text in (str(value), repr(value), getattr(value, "_repr_html_", str)()):
            assert is_printable(text), value
    assert all(is_printable(str(problem)) for problem in report.problems)


def test_text_is_shown_as_string(capsys, tmp_path):
    for zarr_format in (2, 3):
        root = zarrdask.create_group(tmp_path / str(zarr_format), zarr_format=zarr_format)
        root.create_array("s", shape=4, dtype="string", chunks=2)
        assert "s (4,) string, 2 chunks (2,)" in call(capsys, "tree", root.node_path.store.url).out
        assert (
            lines(call(capsys, "info", root.node_path.store.url, "--component", "s"))["dtype"]
            == "string"
        )


def test_a_terminal_that_can_not_show_a_name_gets_another_one(stored, monkeypatch):
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), encoding="latin-1"))
    assert run(["tree", str(stored)]) == 0
    assert rb"\u2514\u2500\u2500 g" in sys.stdout.buffer.getvalue()


class TestTerminal:
    """On a terminal rich draws, but not if colours are off, nor into a pipe."""

    @pytest.fixture
    def call_there(self, monkeypatch, capsys):
        """Call a command on a terminal with colours."""

        def call_there(*arguments):
            with monkeypatch.context() as patch:
                patch.setattr(sys.stdout, "isatty", lambda: True)
                return call(capsys, *arguments)

        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "200")
        return call_there

    @pytest.mark.parametrize(
        "arguments", [["tree"], ["info"], ["ls", "--long"], ["verify"]], ids=str
    )
    def test_escapes_are_for_terminals(self, capsys, stored, call_there, monkeypatch, arguments):
        command, *options = arguments
        assert "\x1b[" not in call_there(command, stored, *options, "--json").out
        drawn = call_there(command, stored, *options)
        assert "\x1b[" in drawn.out
        plain = call(capsys, command, stored, *options)
        assert "\x1b" not in plain.out
        words = set(re.sub(r"\x1b\[[0-9;]*m", "", drawn.out).split())
        assert set(plain.out.split()) <= words
        monkeypatch.setenv("NO_COLOR", "1")
        assert call_there(command, stored, *options) == plain

    def test_names_are_no_markup(self, stored, call_there):
        zarrdask.create_group(stored, "[red]x")
        assert "[red]x" in call_there("tree", stored).out

    def test_without_rich_lines_are_plain(self, stored, call_there, monkeypatch):
        monkeypatch.setattr("zarrdask.tools.cli.output.find_spec", lambda name: None)
        assert "\x1b" not in call_there("tree", stored).out
