"""What all commands have in common: help, errors, exit codes, and what they cost to start."""

import runpy

import pytest

import zarrdask
from tests.tools.cli.commands import call, fork, spawn, start
from zarrdask.tools.cli.app import COMMANDS


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


def test_the_package_runs_as_a_module(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["zarrdask", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("zarrdask", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"zarrdask {zarrdask.__version__}\n")


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
def test_an_error_is_one_line_and_exits_with_2(capsys, tmp_path, command):
    done = call(capsys, command, tmp_path / "nothing")
    assert done.code == 2
    assert not done.out
    assert done.err.startswith(f"zarrdask: {tmp_path}/nothing: there is no array or group here")
    assert done.err.count("\n") == 1


def test_an_unexpected_error_does_not_exit_as_if_a_check_had_failed(capsys, stored, monkeypatch):
    monkeypatch.setattr("zarrdask.tools.cli.checks.verify.verify", lambda *_, **__: 1 / 0)
    done = call(capsys, "verify", stored)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("ZeroDivisionError: division by zero\n")


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
        "from zarrdask.tools.cli import main; main()"
    )
    done = spawn("info", stored, code=code)
    assert done == (2, "", "zarrdask: the command line needs click: pip install zarrdask[cli]\n")


def test_a_reader_who_goes_away_is_no_error(stored):
    process = start("tree", stored)
    process.stdout.close()
    assert process.wait(60) in (0, 1)
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


def test_work_goes_on_when_nobody_can_be_told_how_far_it_has_come(stored):
    process = start("copy", stored, stored.parent / "b", "--progress")
    process.stderr.close()
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == 0
    assert "3 arrays" in out
    assert zarrdask.compare(stored, stored.parent / "b").ok


def test_an_interrupt_exits_with_130(stored):
    code = (
        "import os, signal, zarrdask.arrays.hierarchy.lookup as h\n"
        "h.Lookup.find = lambda *a, **b: os.kill(os.getpid(), signal.SIGINT)\n"
        "from zarrdask.tools.cli import main; main()"
    )
    done = fork("info", stored, code=code)
    assert done.code == 130
    assert done.err.strip() == "zarrdask: interrupted"


def test_an_interrupt_of_work_in_other_processes_is_one_line_too(stored):
    # As on a terminal it comes to all processes of the group: one works, another waits for work.
    zarrdask.open_array(stored, "g/s", mode="r+")[...] = 1
    code = (
        "import os, signal, time, dask, zarrdask.tools.verification.verify as v\n"
        "look = v.verify_chunks\n"
        "def check(work):\n"
        "    if work.path == 'a':\n"
        "        time.sleep(1); os.killpg(0, signal.SIGINT); time.sleep(30)\n"
        "    return look(work)\n"
        "v.verify_chunks = check\n"
        "dask.config.set({'num_workers': 2, 'multiprocessing.context': 'fork'})\n"
        "from zarrdask.tools.cli import main; main()"
    )
    done = fork("verify", stored, "--scheduler", "processes", code=code)
    assert done.code == 130
    assert done.err.split() == ["zarrdask:", "interrupted"]


@pytest.mark.parametrize("command", [*(c for c in COMMANDS if c != "completion"), "attrs set"])
def test_an_empty_argument_is_no_place(capsys, stored, monkeypatch, command):
    monkeypatch.chdir(stored)
    arguments = {
        "copy": [stored / "a", "", "--overwrite"],
        "rechunk": [stored / "a", "", "--overwrite"],
        "pyramid": [stored / "a", "", "--overwrite"],
        "convert": [stored / "a", "", "--overwrite"],
        "diff": [stored / "a", ""],
        "sync": [stored / "a", ""],
        "plan-write": [stored / "a", ""],
        "repair": ["", stored / "a"],
        "attrs": ["get", ""],
        "attrs set": ["", "k=1"],
    }.get(command, [""])
    done = call(capsys, *command.split(), *arguments)
    assert (done.code, done.out) == (2, "")
    assert "the path is empty" in done.err
    assert (stored / "zarr.json").exists()


def test_an_error_of_a_store_names_the_place(capsys, stored):
    (stored / "file.txt").write_text("no store")
    for command in ("copy", "rechunk"):
        done = call(capsys, command, stored / "a", stored / "file.txt")
        assert done.code == 2
        assert f"{stored}/file.txt: this is a file, not a directory" in done.err
    assert "this is a file" in call(capsys, "info", stored / "file.txt").err
