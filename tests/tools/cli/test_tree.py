"""The command `tree`."""

import json

from tests.tools.cli.commands import call


def test_tree(capsys, stored):
    done = call(capsys, "tree", stored)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "/",
        "├── a (10, 4) int32, 160 B, 5 chunks (2, 4)",
        "└── g",
        "    ├── r (6,) uint8, 6 B, 3 chunks ((1, 2, 3),)",
        "    └── s (8, 8) float32, 256 B, 16 chunks (2, 2) in 4 shards (4, 4)",
    ]


def test_tree_to_a_depth_and_of_a_group_below(capsys, stored):
    assert call(capsys, "tree", stored, "--depth", 1).out.splitlines()[-1] == "└── g"
    done = call(capsys, "tree", stored, "--component", "g", "--depth", "2")
    assert done.out.splitlines()[0] == "g"
    assert len(done.out.splitlines()) == 3
    assert call(capsys, "tree", stored / "a").out == "/ (10, 4) int32, 160 B, 5 chunks (2, 4)\n"


def test_tree_goes_on_after_a_node_that_can_not_be_opened(capsys, stored):
    (stored / "a/zarr.json").write_text("{}")
    done = call(capsys, "tree", stored)
    assert done.code == 0
    assert done.out.splitlines()[1].startswith("├── a  can't be opened: ")
    assert "    └── s" in done.out


def test_a_tree_as_json(capsys, stored):
    nodes = json.loads(call(capsys, "tree", stored, "--json").out)["nodes"]
    assert [(node["path"], node["kind"]) for node in nodes] == [
        ("", "group"),
        ("a", "array"),
        ("g", "group"),
        ("g/r", "array"),
        ("g/s", "array"),
    ]
    assert nodes[4] == {
        "path": "g/s",
        "kind": "array",
        "shape": [8, 8],
        "dtype": "float32",
        "chunks": [2, 2],
        "shards": [4, 4],
    }
    nodes = json.loads(call(capsys, "tree", stored, "--json", "--depth", 1).out)["nodes"]
    assert [node["path"] for node in nodes] == ["", "a", "g"]
