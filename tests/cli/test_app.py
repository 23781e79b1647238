"""What all commands have in common: help, errors, exit codes, and what they cost to start."""

import json
import signal
import sys
import time

import pytest

import zarrdask
from tests.cli.commands import call, spawn, start
from zarrdask.cli import options
from zarrdask.cli.app import COMMANDS


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
    for name in COMMANDS:
        assert f"  {name} " in listed.out
        done = call(capsys, name, "--help")
        assert done.code == 0
        assert f"zarrdask {name} " in done.out.split("Examples:")[1]
        assert not done.err


def test_what_is_listed_is_what_there_is(capsys):
    import click

    from zarrdask.cli.app import app

    for name, text in COMMANDS.items():
        command = app.get_command(click.Context(app), name)
        assert isinstance(command, click.Command)
        assert text.endswith(".")
    assert app.get_command(click.Context(app), "nonsense") is None


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


@pytest.mark.parametrize("command", [["tree"], ["info"], ["info", "--stored"], ["--help"]])
def test_to_look_into_a_store_imports_no_dask_array(stored, command):
    code = (
        "import json, sys\nfrom zarrdask.cli.app import run\ncode = run()\n"
        "names = 'dask', 'dask.array', 'distributed', 'fsspec', 'numcodecs', 'importlib.metadata'\n"
        "print(json.dumps([n for n in names if n in sys.modules]))\nsys.exit(code)"
    )
    arguments = command if command == ["--help"] else [*command, stored]
    done = spawn(*arguments, code=code)
    assert done.code == 0, done.err
    assert json.loads(done.out.splitlines()[-1]) == []


def test_to_look_into_a_store_takes_little_more_than_numpy(stored):
    def fastest(*arguments, **how):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            assert spawn(*arguments, **how).code == 0
            times.append(time.perf_counter() - start)
        return min(times)

    # Measured on this machine, at this time: others may be working on it.
    assert fastest("tree", stored) < 3 * fastest(code="import numpy") + 0.2


def test_a_reader_who_goes_away_is_no_error(stored):
    process = start("tree", stored)
    process.stdout.close()
    assert process.wait(60) in (0, 1)
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
def test_an_interrupt_exits_with_130(stored):
    code = (
        "import time, zarrdask.hierarchy as h\n"
        "def find(*a, **b):\n    print('there', flush=True); time.sleep(30)\n"
        "h.find = find\nfrom zarrdask.cli import main; main()"
    )
    process = start("info", stored, code=code)
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "zarrdask: interrupted"


def test_values_of_storage_options(capsys, tmp_path):
    assert options.parse_value("true") is True
    assert options.parse_value("3") == 3
    assert options.parse_value("eu-west-1") == "eu-west-1"
    assert call(capsys, "info", tmp_path, "--storage-option", "anon").code == 2
    done = call(capsys, "info", tmp_path, "--storage-option", "anon=true")
    assert done.code == 1
    assert "takes no storage_options" in done.err
    assert "anon" in done.err


def test_storage_options_reach_the_store(capsys):
    done = call(capsys, "info", "memory://a", "--storage-option", "nonsense=1")
    assert done.code == 1
    assert "memory://" in done.err


def test_lengths():
    numbers = options.Numbers()
    assert numbers.convert("256,64", None, None) == (256, 64)
    assert numbers.convert("(256, 64)", None, None) == (256, 64)
    assert options.one_or_all((4,)) == 4
    assert options.one_or_all((4, 5)) == (4, 5)
    assert options.one_or_all(None) is None


def test_changes_as_they_are_given():
    found = {"compressors": ("zstd", '{"name": "crc32c"}'), "fill_value": "NaN", "dtype": None}
    assert options.given(found | {"fill_value": "1.5"}) == {
        "compressors": ["zstd", {"name": "crc32c"}],
        "fill_value": 1.5,
    }
    assert options.given({"compressors": ("none",)}) == {"compressors": []}
    assert options.given({"compressors": ()}) == {}
