"""Nodes that are named on the command line."""

import pytest

import zarrdask
from tests.tools.cli.commands import call


class TestNearestNames:
    """A node that does not exist: the error suggests the member with the nearest name."""

    @pytest.mark.parametrize("command", ["info", "tree", "ls", "verify", "consolidate"])
    def test_in_a_path(self, capsys, stored, command):
        zarrdask.create_group(stored, "temperature")
        done = call(capsys, command, stored / "temprature")
        assert (done.code, done.out) == (2, "")
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
        assert done.code == 2
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
