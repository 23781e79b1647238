"""What all commands have in common: help, errors, exit codes, and what they cost to start."""

import re
import sys
from io import BytesIO, TextIOWrapper

import click
import pytest

import zarrdask
from tests.cli.commands import call, fork, spawn, start
from zarrdask.cli import main, options
from zarrdask.cli.app import COMMANDS, run


@pytest.fixture
def stored(tmp_path):
    """A hierarchy of two arrays."""
    root = zarrdask.create_group(tmp_path / "data.zarr", attributes={"title": "é"})
    root.create_array("a", shape=(10, 4), dtype="i4", chunks=(2, 4))[...] = 1
    root.create_array("g/s", shape=(8, 8), dtype="f4", chunks=(2, 2), shards=(4, 4))
    return tmp_path / "data.zarr"


def test_the_commands_are_listed_and_each_has_help_with_examples(capsys):
    listed = call(capsys, "--help")
    assert listed.code == 0
    for name, text in COMMANDS.items():
        assert f"  {name} " in listed.out
        assert text.endswith(".")
        done = call(capsys, name, "--help")
        assert done.code == 0
        assert f"zarrdask {name} " in done.out.split("Examples:")[1]
        assert not done.err


def test_the_version(capsys):
    assert call(capsys, "--version").out == f"zarrdask {zarrdask.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["nonsense"],
        ["info", "a", "b"],
        ["tree", "a", "--depth", "x"],
        ["verify", "--what"],
    ],
    ids=str,
)
def test_wrong_usage_exits_with_2(capsys, arguments):
    done = call(capsys, *arguments)
    assert done.code == 2
    assert "Error: " in done.err
    assert not done.out


@pytest.mark.parametrize("command", ["info", "tree", "verify", "consolidate"])
def test_an_error_is_one_line_and_exits_with_1(capsys, tmp_path, command):
    done = call(capsys, command, tmp_path / "nothing")
    assert done.code == 1
    assert not done.out
    assert done.err.startswith(f"zarrdask: {tmp_path}/nothing: there is no array or group here")
    assert done.err.count("\n") == 1


def test_a_mistyped_command_is_recognized(capsys):
    done = call(capsys, "veryfy", "a")
    assert done.code == 2
    assert "did you mean 'verify'?" in done.err


def test_a_warning_is_one_line(capsys, stored):
    (stored / ".zgroup").write_text('{"zarr_format": 2}')
    done = call(capsys, "info", stored)
    assert done.code == 0
    assert done.err.startswith("zarrdask: warning: ")
    assert done.err.count("\n") == 1


def test_without_click_it_says_what_is_missing(stored):
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'click' else find(name, *a)\n"
        "from zarrdask.cli import main; main()"
    )
    done = spawn("info", stored, code=code)
    assert done == (1, "", "zarrdask: the command line needs click: pip install zarrdask[cli]\n")


def test_to_look_into_a_store_imports_no_dask_array(stored):
    commands = ["--help", "ls -l", "info", "info --stored", "tree", "tree --json"]
    code = (
        "import sys\nfrom zarrdask.cli.app import run\n"
        "names = 'dask', 'dask.array', 'distributed', 'fsspec', 'numcodecs', 'importlib.metadata'\n"
        f"for command in {commands}:\n"
        "    place = [] if command == '--help' else sys.argv[1:]\n"
        "    assert run([*command.split(), *place]) == 0, command\n"
        "    loaded = [name for name in names if name in sys.modules]\n"
        "    assert not loaded, (command, loaded)"
    )
    done = spawn(stored, code=code)
    assert done.code == 0, done.err


def test_a_reader_who_goes_away_is_no_error(stored):
    process = start("tree", stored)
    process.stdout.close()
    assert process.wait(60) in (0, 1)
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


def test_a_terminal_that_can_not_show_a_name_gets_another_one(stored, monkeypatch):
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), encoding="latin-1"))
    assert run(["tree", str(stored)]) == 0
    assert rb"\u2514\u2500\u2500 g" in sys.stdout.buffer.getvalue()


def test_work_goes_on_when_nobody_can_be_told_how_far_it_has_come(stored):
    process = start("copy", stored, stored.parent / "b", "--progress")
    process.stderr.close()
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == 0
    assert "2 arrays" in out
    assert zarrdask.compare(stored, stored.parent / "b").ok


def test_an_interrupt_exits_with_130(stored):
    code = (
        "import os, signal, zarrdask.hierarchy.lookup as h\n"
        "h.Lookup.find = lambda *a, **b: os.kill(os.getpid(), signal.SIGINT)\n"
        "from zarrdask.cli import main; main()"
    )
    done = fork("info", stored, code=code)
    assert done.code == 130
    assert done.err.strip() == "zarrdask: interrupted"


def test_an_interrupt_of_work_in_other_processes_is_one_line_too(stored):
    # As on a terminal it comes to all processes of the group: one works, another waits for work.
    zarrdask.open_array(stored, "g/s", mode="r+")[...] = 1
    code = (
        "import os, signal, time, dask, zarrdask.verification.verify as v\n"
        "look = v.verify_chunks\n"
        "def check(work):\n"
        "    if work.path == 'a':\n"
        "        time.sleep(1); os.killpg(0, signal.SIGINT); time.sleep(30)\n"
        "    return look(work)\n"
        "v.verify_chunks = check\n"
        "dask.config.set({'num_workers': 2, 'multiprocessing.context': 'fork'})\n"
        "from zarrdask.cli import main; main()"
    )
    done = fork("verify", stored, "--scheduler", "processes", code=code)
    assert done.code == 130
    assert done.err.split() == ["zarrdask:", "interrupted"]


def test_values_of_storage_options(capsys, tmp_path):
    assert call(capsys, "info", tmp_path, "--storage-option", "anon").code == 2
    done = call(capsys, "info", tmp_path, "--storage-option", "anon=true")
    assert done.code == 1
    assert "takes no storage_options" in done.err
    assert "anon" in done.err


@pytest.mark.parametrize("command", ["copy", "rechunk", "diff"])
def test_storage_options_are_for_those_places_that_take_them(capsys, stored, command):
    place, option = f"memory://{stored.parent}", ["--storage-option", "use_listings_cache=false"]
    if command == "diff":
        call(capsys, "copy", stored / "a", place)
    assert call(capsys, command, stored / "a", place, *option).code == 0
    done = call(capsys, command, stored / "a", stored / "c", *option)
    assert done.code == 1
    assert "takes no storage_options" in done.err


def test_an_option_is_told_by_its_name_here(capsys, stored):
    done = call(capsys, "copy", stored / "a", stored / "g/s")
    assert done.err.endswith("already; --overwrite replaces it\n")


@pytest.mark.parametrize("command", [*(c for c in COMMANDS if c != "completion"), "attrs set"])
def test_an_empty_argument_is_no_place(capsys, stored, monkeypatch, command):
    monkeypatch.chdir(stored)
    arguments = {
        "copy": [stored / "a", "", "--overwrite"],
        "rechunk": [stored / "a", "", "--overwrite"],
        "convert": [stored / "a", "", "--overwrite"],
        "diff": [stored / "a", ""],
        "repair": ["", stored / "a"],
        "attrs": ["get", ""],
        "attrs set": ["", "k=1"],
    }.get(command, [""])
    done = call(capsys, *command.split(), *arguments)
    assert (done.code, done.out) == (1, "")
    assert "the path is empty" in done.err
    assert (stored / "zarr.json").exists()


def test_an_error_of_a_store_names_the_place(capsys, stored):
    (stored / "file.txt").write_text("no store")
    for command in ("copy", "rechunk"):
        done = call(capsys, command, stored / "a", stored / "file.txt")
        assert done.code == 1
        assert f"{stored}/file.txt/" in done.err
    assert "this is a file" in call(capsys, "info", stored / "file.txt").err


def test_storage_options_reach_the_store(capsys):
    done = call(capsys, "info", "memory://a", "--storage-option", "nonsense=1")
    assert done.code == 1
    assert "memory://" in done.err


def test_lengths():
    assert options.lengths("256,64") == options.lengths("(256, 64)") == (256, 64)
    assert options.lengths("(4,)") == 4
    for text in ("", " ", "4,,4", "none", "1 what"):
        with pytest.raises(click.BadParameter, match="neither lengths, like 256,64,64"):
            options.lengths(text)
    assert options.lengths("-1") == -1
    assert options.lengths("auto") == "auto"
    assert options.lengths("1 MiB") == "1 MiB"


def test_changes_as_they_are_given():
    found = {"compressors": ("zstd", '{"name": "crc32c"}'), "fill_value": "NaN", "dtype": None}
    assert options.passed(found | {"fill_value": "1.5"}) == {
        "compressors": ["zstd", {"name": "crc32c"}],
        "fill_value": 1.5,
    }
    assert options.passed({"compressors": ("none",)}) == {"compressors": []}
    assert options.passed({"compressors": ()}) == {}


def test_a_fill_value_of_null_leaves_it_open():
    assert options.passed({"fill_value": "null"}) == {"fill_value": zarrdask.NO_FILL_VALUE}


class TestNearestNames:
    """A node that does not exist: the error suggests the member with the nearest name."""

    @pytest.mark.parametrize("command", ["info", "tree", "ls", "verify", "consolidate"])
    def test_in_a_path(self, capsys, stored, command):
        zarrdask.create_group(stored, "temperature")
        done = call(capsys, command, stored / "temprature")
        assert (done.code, done.out) == (1, "")
        assert done.err.count("\n") == 1
        assert "the nearest name is 'temperature'" in done.err

    def test_in_a_component(self, capsys, stored):
        zarrdask.create_array(stored, "g/salinity", shape=2, dtype="i4")
        done = call(capsys, "info", stored, "--component", "g/salinty")
        assert "the nearest name is 'salinity'" in done.err

    @pytest.mark.parametrize("command", ["copy", "rechunk", "diff"])
    def test_of_a_source(self, capsys, stored, command):
        zarrdask.create_array(stored, "g/salinity", shape=2, dtype="i4")
        done = call(capsys, command, stored / "g/salinty", stored / "a")
        assert done.code == 1
        assert "the nearest name" in done.err

    def test_in_a_remote_store(self, capsys, stored):
        place = f"memory://{stored.parent}"
        zarrdask.copy(stored, place)
        zarrdask.create_array(place, "salinity", shape=2, dtype="i4")
        done = call(capsys, "info", f"{place}/salinty")
        assert done.err.endswith(f"the nearest name is '{place}/salinity'\n")

    def test_nothing_near(self, capsys, stored):
        assert "nearest" not in call(capsys, "info", stored / "nonsense").err
        assert "nearest" not in call(capsys, "info", stored.parent / "nonsense").err


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
        monkeypatch.setattr("zarrdask.cli.output.find_spec", lambda name: None)
        assert "\x1b" not in call_there("tree", stored).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(capsys, shell):
    done = call(capsys, "completion", shell)
    assert done.code == 0
    assert "_ZARRDASK_COMPLETE" in done.out
    if shell == "zsh":  # compdef does not exist where the user's files do not call compinit
        first, second, *_ = done.out.splitlines()
        assert first == "#compdef zarrdask"
        assert "compinit" in second
    if shell == "fish":  # descriptions have commas
        assert 'string split ","' not in done.out


def test_what_the_script_of_completion_asks_for(stored, capsys, monkeypatch):
    monkeypatch.setenv("_ZARRDASK_COMPLETE", "bash_complete")
    for number, words in enumerate(["zarrdask cons", "zarrdask info da"], 1):
        monkeypatch.setenv("COMP_CWORD", str(number))
        monkeypatch.setenv("COMP_WORDS", words)
        with pytest.raises(SystemExit):
            main()
    assert capsys.readouterr().out == "plain,consolidate\nfile,da\n"
