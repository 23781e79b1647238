"""The command `info`."""

import json

import zarrdask
from tests.tools.cli.commands import call, lines
from zarrdask.tools.conventions import Level, write_multiscales


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
    assert (found["bytes"], found["objects"], found["stored_objects"]) == (160, 5, 3)
    assert found["stored_bytes"] == sum(f.stat().st_size for f in (stored / "a/c").rglob("?/0"))
    assert found["fill_value"] == 0


def test_info_of_a_pyramid(capsys, tmp_path):
    root = zarrdask.create_group(tmp_path / "image")
    for name, n in ("0", 8), ("1", 4):
        root.create_array(name, shape=(n, n), dtype="u1", chunks=4, dimension_names=("y", "x"))
    levels = [Level("0", (0.5, 0.5)), Level("1", (1, 1))]
    write_multiscales(root, levels, convention="ome")
    out = call(capsys, "info", tmp_path / "image").out
    assert "\n  1         shape (4, 4)  scale (1, 1)      chunks (4, 4)\n" in out
    found = json.loads(call(capsys, "info", tmp_path / "image", "--json").out)
    assert found["levels"][0][0] == {
        "path": "0", "scale": [0.5, 0.5], "shape": [8, 8], "chunks": [4, 4], "shards": None
    }  # fmt: skip
