"""Options that several commands have."""

import click
import pytest

import zarrdask
from tests.tools.cli.commands import call
from zarrdask.tools.cli import options


def test_values_of_storage_options(capsys, tmp_path):
    assert call(capsys, "info", tmp_path, "--storage-option", "anon").code == 2
    done = call(capsys, "info", tmp_path, "--storage-option", "anon=true")
    assert done.code == 2
    assert "takes no storage_options" in done.err
    assert "anon" in done.err


@pytest.mark.parametrize("command", ["copy", "rechunk", "diff"])
def test_storage_options_are_for_those_places_that_take_them(capsys, stored, command):
    place, option = f"memory://{stored.parent}", ["--storage-option", "use_listings_cache=false"]
    if command == "diff":
        call(capsys, "copy", stored / "a", place)
    assert call(capsys, command, stored / "a", place, *option).code == 0
    done = call(capsys, command, stored / "a", stored / "c", *option)
    assert done.code == 2
    assert "takes no storage_options" in done.err


def test_an_option_is_told_by_its_name_here(capsys, stored):
    done = call(capsys, "copy", stored / "a", stored / "g/s")
    assert done.err.endswith("already; --overwrite replaces it\n")


def test_storage_options_reach_the_store(capsys):
    done = call(capsys, "info", "memory://a", "--storage-option", "nonsense=1")
    assert done.code == 2
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
