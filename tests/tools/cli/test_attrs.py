"""The command `attrs`."""

import json

import zarrdask
from tests.tools.cli.commands import call
from zarrdask.tools.cli.nodes import Location


def test_attributes(capsys, stored):
    assert call(capsys, "attrs", "get", stored).out == 'title: "é"\nn: [1]\n'
    assert call(capsys, "attrs", stored).out == 'title: "é"\nn: [1]\n'
    assert "did you mean 'get'?" in call(capsys, "attrs", "gte", stored).err
    assert call(capsys, "attrs", "get", stored, "n").out == "[1]\n"
    assert json.loads(call(capsys, "attrs", "get", stored, "--json").out)["title"] == "é"
    done = call(capsys, "attrs", "get", stored, "titel")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("there is no attribute 'titel'; did you mean 'title'?\n")


def test_attributes_are_set(capsys, stored):
    pairs = "units=K", "valid=[1, 2]", "n=2"
    done = call(capsys, "attrs", "set", stored, *pairs, "--dry-run")
    assert done.out == 'title: "é"\nn: 2\nunits: "K"\nvalid: [1, 2]\n'
    assert dict(zarrdask.open_group(stored).attrs) == {"title": "é", "n": [1]}
    assert call(capsys, "attrs", "set", stored, *pairs).out == done.out
    changed = {"title": "é", "n": 2, "units": "K", "valid": [1, 2]}
    assert dict(zarrdask.open_group(stored).attrs) == changed
    assert call(capsys, "attrs", "set", stored, "units").code == 2
    assert call(capsys, "attrs", "set", stored).code == 2


def test_attributes_are_deleted(capsys, stored):
    done = call(capsys, "attrs", "delete", stored, "n", "--dry-run")
    assert done.out == 'title: "é"\n'
    assert "n" in zarrdask.open_group(stored).attrs
    done = call(capsys, "attrs", "delete", stored, "n", "titel")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'title'?" in done.err
    assert json.loads(call(capsys, "attrs", "delete", stored, "n", "title", "--json").out) == {}
    assert dict(zarrdask.open_group(stored).attrs) == {}


def test_deleting_an_attribute_keeps_what_others_set_meanwhile(tmp_path, capsys, monkeypatch):
    stored = str(tmp_path)
    zarrdask.create_group(stored, attributes={"n": 1})

    def opened(*arguments):
        node = open_place(*arguments)
        zarrdask.open(stored, mode="r+").attrs["title"] = "new"
        return node

    open_place = Location.open
    monkeypatch.setattr(Location, "open", opened)
    call(capsys, "attrs", "delete", stored, "n")
    assert dict(zarrdask.open(stored).attrs) == {"title": "new"}
