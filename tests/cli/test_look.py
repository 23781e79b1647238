"""`info`, `tree`, `ls`, `attrs` and `consolidate`."""

import json
import re

import pytest

import zarrdask
from tests.cli.commands import call
from tests.covering import for_each
from zarrdask.cli.nodes import Place
from zarrdask.errors import NodeNotFoundError


@pytest.fixture
def stored(tmp_path):
    """A hierarchy of three arrays."""
    root = zarrdask.create_group(tmp_path / "data.zarr", attributes={"title": "é", "n": [1]})
    z = root.create_array(
        "a",
        shape=(10, 4),
        dtype="i4",
        chunks=(2, 4),
        compressors="gzip",
        dimension_names=("y", None),
    )
    z[:6] = 1
    s = root.create_array("g/s", shape=(8, 8), dtype="f4", chunks=(2, 2), shards=(4, 4))
    s[:4, :4] = 1
    root.create_array("g/r", shape=6, dtype="u1", chunks=((1, 2, 3),))
    return tmp_path / "data.zarr"


def lines(done):
    assert (done.code, done.err) == (0, "")
    return dict(line.split(None, 1) for line in done.out.splitlines() if not line[0].isspace())


def test_info_of_an_array(capsys, stored):
    done = call(capsys, "info", stored / "a")
    assert done.out.splitlines() == [
        f"array       {stored}/a",
        "format      Zarr v3",
        "shape       (10, 4)",
        "dtype       int32",
        "size        160 B",
        "chunks      (2, 4), 5 of them",
        "dimensions  y, -",
        "codecs      bytes(endian=little), gzip(level=5)",
        "fill value  0",
        "attributes  0",
    ]


def test_info_counts_what_is_stored(capsys, stored):
    found = lines(call(capsys, "info", stored, "--component", "a", "--stored"))
    size = sum(file.stat().st_size for file in (stored / "a/c").rglob("*") if file.is_file())
    assert found["stored"] == f"3 of 5 chunks, {size} B"
    found = lines(call(capsys, "info", stored / "g/s", "--stored"))
    assert found["shards"] == "(4, 4), 4 of them"
    assert found["stored"].startswith("1 of 4 shards, ")


def test_info_of_a_group(capsys, stored):
    done = call(capsys, "info", stored)
    assert done.out.splitlines() == [
        f"group       {stored}",
        "format      Zarr v3",
        "members     2",
        "  a         (10, 4) int32, 160 B, 5 chunks (2, 4)",
        "  g         group",
        "attributes  2",
        '  title: "é"',
        "  n: [1]",
    ]


def test_info_as_json(capsys, stored):
    found = json.loads(call(capsys, "info", stored, "--json").out)
    assert found["attributes"] == {"title": "é", "n": [1]}
    assert found["members"] == ["a", "g"]
    found = json.loads(call(capsys, "info", stored / "a", "--json", "--stored").out)
    assert (found["shape"], found["dtype"], found["chunks"]) == ([10, 4], "int32", [2, 4])
    assert (found["bytes"], found["units"], found["stored_units"]) == (160, 5, 3)
    assert found["stored_bytes"] == sum(f.stat().st_size for f in (stored / "a/c").rglob("?/0"))
    assert found["fill_value"] == 0


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


def test_consolidate(capsys, stored):
    done = call(capsys, "consolidate", stored)
    assert (done.code, done.out) == (0, "consolidated metadata of 4 nodes\n")
    assert "consolidated_metadata" in json.loads((stored / "zarr.json").read_text())
    assert zarrdask.open_group(stored, consolidated=True)["a"].shape == (10, 4)
    done = call(capsys, "consolidate", stored / "a")
    assert done.code == 1
    assert "an array has no consolidated metadata" in done.err


def test_ls(capsys, stored):
    assert call(capsys, "ls", stored).out == "a\ng/\n"
    assert call(capsys, "ls", stored, "--component", "g").out == "r\ns\n"
    assert call(capsys, "ls", stored / "a").out == f"{stored}/a\n"
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


def test_attributes(capsys, stored):
    assert call(capsys, "attrs", "get", stored).out == 'title: "é"\nn: [1]\n'
    assert call(capsys, "attrs", stored).out == 'title: "é"\nn: [1]\n'
    assert "did you mean 'get'?" in call(capsys, "attrs", "gte", stored).err
    assert call(capsys, "attrs", "get", stored, "n").out == "[1]\n"
    assert json.loads(call(capsys, "attrs", "get", stored, "--json").out)["title"] == "é"
    done = call(capsys, "attrs", "get", stored, "titel")
    assert (done.code, done.out) == (1, "")
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
    assert (done.code, done.out) == (1, "")
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

    open_place = Place.open
    monkeypatch.setattr(Place, "open", opened)
    call(capsys, "attrs", "delete", stored, "n")
    assert dict(zarrdask.open(stored).attrs) == {"title": "new"}


def test_a_dry_run_of_consolidate(capsys, stored):
    assert call(capsys, "consolidate", stored, "--dry-run") == (
        0,
        "consolidated metadata of 4 nodes\n",
        "",
    )
    assert "consolidated_metadata" not in json.loads((stored / "zarr.json").read_text())
    assert "expected a group" in call(capsys, "consolidate", stored / "a", "--dry-run").err
    nodes = json.loads(call(capsys, "consolidate", stored, "--json").out)["nodes"]
    assert nodes == ["a", "g", "g/r", "g/s"]
    assert "consolidated_metadata" in json.loads((stored / "zarr.json").read_text())


# --------------------------------------------------------------------------------------------
# Names and attributes that would control the terminal

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
        monkeypatch.setattr("zarrdask.cli.output._is_coloured", lambda: True)
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


@for_each(
    "region, decoded",
    [(None, 160), ("0:3", 64), ("t=0:3,x=1", 64), ("..., 1", 160), ("-1", 32), ("9::-4, :", 96)],
)
def test_plan_read(capsys, tmp_path, region, decoded):
    path = tmp_path / "planned"
    names = ("t", "x")
    zarrdask.create_array(
        path, shape=(10, 4), dtype="i4", chunks=(2, 4), dimension_names=names, overwrite=True
    )[...] = 1
    options = [] if region is None else [f"--region={region}"]
    found = json.loads(call(capsys, "plan-read", path, "--json", *options).out)
    assert found["decoded"] == decoded
    assert call(capsys, "plan-read", path, *options).out.startswith(f"array    {path} (10, 4)")


@for_each("region", ["a", "1:2:3:4", "t=", "1:x"])
def test_a_region_that_is_none_is_wrong_usage(capsys, tmp_path, region):
    done = call(capsys, "plan-read", tmp_path, "--region", region)
    assert (done.code, done.out) == (2, "")
    assert "neither slices and positions" in done.err
