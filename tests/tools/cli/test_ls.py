"""The command `ls`."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_ls(capsys, stored, monkeypatch):
    assert call(capsys, "ls", stored).out == "a\ng/\n"
    assert call(capsys, "ls", stored, "--component", "g").out == "r\ns\n"
    assert call(capsys, "ls", stored / "a").out == f"{stored}/a\n"
    assert call(capsys, "ls", stored, "--component", "g/s").out == "g/s\n"
    monkeypatch.chdir(stored)
    assert call(capsys, "ls", "a").out == "a\n"
    assert call(capsys, "ls", ".").out == "a\ng/\n"
    assert call(capsys, "ls", stored / "g", "-l").out.splitlines() == [
        "r  array  (6,)    uint8    ((1, 2, 3),)",
        "s  array  (8, 8)  float32  (2, 2)        (4, 4)",
    ]


def test_ls_of_a_group_without_members(capsys, tmp_path):
    zarrdask.create_group(tmp_path)
    assert call(capsys, "ls", tmp_path, "--long") == (0, "", "")
    assert call(capsys, "ls", tmp_path, "--json").out == "[]\n"


def test_a_member_that_can_not_be_opened_is_listed(capsys, stored):
    (stored / "a/zarr.json").write_text("{}")
    assert call(capsys, "ls", stored).out == "a\ng/\n"
    (bad, good) = json.loads(call(capsys, "ls", stored, "--json").out)
    assert (bad["kind"], good) == ("invalid", {"path": "g", "kind": "group"})
    assert bad["error"] in call(capsys, "ls", stored, "-l").out
    nodes = json.loads(call(capsys, "tree", stored, "--json").out)["nodes"]
    assert nodes[1] == bad
