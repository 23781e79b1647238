"""``zarrdask manifest``, ``verify --manifest``, and ``diff`` of two manifests."""

import json

import zarrdask
from tests.tools.cli.commands import call


def test_a_saved_manifest_shows_what_has_changed(tmp_path, capsys):
    z = zarrdask.create_array(tmp_path / "a.zarr", shape=4, chunks=2, dtype="i4")
    z[...] = 1
    place, before, after = (str(tmp_path / name) for name in ("a.zarr", "1.json", "2.json"))
    done = call(capsys, "manifest", place, "--save", before)
    assert "3 objects" in done.out
    assert call(capsys, "verify", place, "--manifest", before).code == 0
    z[0] = 2
    done = call(capsys, "verify", place, "--manifest", before, "--json")
    assert (done.code, json.loads(done.out)["changed"]) == (1, ["c/0"])
    assert call(capsys, "manifest", place, "--digest", "none", "--json").code == 0
    call(capsys, "manifest", place, "--save", after)
    done = call(capsys, "diff", before, after, "--json")
    assert (done.code, json.loads(done.out)["changed"]) == (1, ["c/0"])
    assert call(capsys, "diff", after, after).code == 0


def test_a_manifest_that_is_stored_in_the_node(tmp_path, capsys):
    z = zarrdask.create_array(tmp_path / "a.zarr", shape=4, chunks=2, dtype="i4")
    z[...] = 1
    place, copy = (str(tmp_path / name) for name in ("a.zarr", "b.zarr"))
    assert call(capsys, "verify", place, "--stored-manifest").code == 2
    assert call(capsys, "manifest", place, "--keep").code == 0
    assert call(capsys, "sync", place, copy, "--source-manifest").code == 0
    for each in (place, copy):
        assert call(capsys, "verify", each, "--stored-manifest").code == 0
    z[0] = 2
    done = call(capsys, "verify", place, "--stored-manifest", "--json")
    assert (done.code, json.loads(done.out)["changed"]) == (1, ["c/0"])
    assert call(capsys, "sync", place, copy, "--manifest").code == 0
    assert call(capsys, "verify", copy, "--stored-manifest").code == 0
    done = call(capsys, "verify", copy, "--stored-manifest", "--manifest", __file__)
    assert (done.code, "either" in done.err) == (2, True)
