"""Readings of what is unclear about groups: those without a document, those that have too much."""

import json

import pytest

import zarrdask
from tests.documents import dump, v2, v3
from zarrdask.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zarrdask.storage.memory import MemoryStore

GROUP = {"zarr_format": 3, "node_type": "group"}
IMPLICIT = {
    "zarr.json": dump(GROUP),
    "a/b/x/zarr.json": dump(v3()),
    "a/b/x/c/0": b"1234",
    "nothing/file": b"1",
    "old/y/.zarray": dump(v2()),
}


def test_xc10_a_group_has_a_document():
    root = zarrdask.open_group(dict(IMPLICIT))
    assert list(root) == []
    assert "a" not in root
    for path in ("a", "a/b"):
        with pytest.raises(NodeNotFoundError):
            root[path]
        with pytest.raises(NodeNotFoundError):
            zarrdask.open(dict(IMPLICIT), path)
    assert root["a/b/x"].shape == (4,)


def test_xc10_on_request_a_node_below_is_enough(setting):
    setting({"zarrdask.implicit-groups": True})
    root = zarrdask.open_group(dict(IMPLICIT))
    assert [path for path, _ in root.walk()] == ["a", "a/b", "a/b/x"]
    assert ("a" in root, "nothing" in root, "old" in root) == (True, False, False)
    assert isinstance(root["a"], zarrdask.Group)
    assert dict(zarrdask.open_group(dict(IMPLICIT), "a/b").attrs) == {}
    with pytest.raises(NodeNotFoundError):
        root["nothing"]
    bare = {key: value for key, value in IMPLICIT.items() if key != "zarr.json"}
    assert list(zarrdask.open_group(bare)) == ["a"]


def test_xc10_strictly_it_is_an_error_all_the_same(setting):
    setting({"zarrdask.implicit-groups": True})
    with pytest.raises(MetadataError, match="X-C10"):
        list(zarrdask.open_group(dict(IMPLICIT), strict=True).groups())


def test_xc10_what_is_created_has_its_documents_also_then(setting):
    setting({"zarrdask.implicit-groups": True})
    values = dict(IMPLICIT)
    zarrdask.create_array(values, "a/b/new", shape=4, dtype="u1")
    assert json.loads(values["a/zarr.json"])["node_type"] == "group"
    assert json.loads(values["a/b/zarr.json"])["node_type"] == "group"


def test_xc10_a_store_that_cannot_be_listed_has_none(setting):
    class Unlisted(MemoryStore):
        def list_dir(self, prefix):
            raise UnsupportedError("this store can't be listed")

        list_prefix = list_dir

    setting({"zarrdask.implicit-groups": True})
    with pytest.raises(NodeNotFoundError):
        zarrdask.open(Unlisted(dict(IMPLICIT)), "a")


POLLUTED = {
    "zarr_consolidated_format": 1,
    "metadata": {
        ".zgroup": {"zarr_format": 2},
        "sub/.zgroup": {
            "zarr_format": 2,
            "consolidated_metadata": {
                "kind": "inline",
                "must_understand": False,
                "metadata": {},
            },
        },
        "sub/.zattrs": {"n": 1},
        "sub/x/.zarray": v2(),
    },
}


def polluted():
    return {
        ".zgroup": dump({"zarr_format": 2}),
        "sub/.zgroup": dump({"zarr_format": 2}),
        "sub/.zattrs": dump({"n": 1}),
        "sub/x/.zarray": dump(v2()),
        ".zmetadata": dump(POLLUTED),
    }


def test_xc12_what_zarr_python_adds_to_zgroup_is_read():
    root = zarrdask.open_group(polluted())
    assert [path for path, _ in root.walk()] == ["sub", "sub/x"]
    assert dict(root["sub"].attrs) == {"n": 1}
    assert root["sub"].metadata.extra == {}


def test_xc12_strictly_it_is_an_error():
    with pytest.raises(MetadataError, match=r"sub/\.zgroup: .*X-C12"):
        zarrdask.open_group(polluted(), strict=True)
    assert list(zarrdask.open_group(polluted(), strict=True, consolidated=False)) == ["sub"]


def test_xc12_it_is_not_written():
    values = polluted()
    zarrdask.open_group(values, mode="r+")["sub"].attrs["n"] = 2
    assert json.loads(values["sub/.zgroup"]) == {"zarr_format": 2}
    zarrdask.consolidate_metadata(values)
    assert json.loads(values[".zmetadata"])["metadata"]["sub/.zgroup"] == {"zarr_format": 2}
