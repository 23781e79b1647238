"""C.10: consolidated metadata of v3."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v3
from tests.test_samples import DATASET, SAMPLES, expected
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.storage.memory import MemoryStore

GROUP = {"zarr_format": 3, "node_type": "group"}
EMPTY = {"kind": "inline", "must_understand": False, "metadata": {}}
#: As zarr-python writes them: nested groups have some of their own, without anything.
MEMBERS = {
    "a": v3(attributes={"units": "K"}),
    "sub": GROUP | {"consolidated_metadata": EMPTY},
    "sub/sh": v3(shape=(6,)),
}


def inline(members=MEMBERS, **others):
    """Return a group's document with consolidated metadata."""
    return GROUP | {"consolidated_metadata": EMPTY | {"metadata": members} | others}


def test_c17_a_group_may_have_consolidated_metadata():
    root = zarrdask.open_group({"zarr.json": dump(inline())})
    assert [path for path, _ in root.walk()] == ["a", "sub", "sub/sh"]


def test_c17_they_may_be_null():
    values = {"zarr.json": dump(GROUP | {"consolidated_metadata": None}), "x/zarr.json": dump(v3())}
    assert list(zarrdask.open_group(values)) == ["x"]
    with pytest.raises(MetadataError, match="no consolidated metadata"):
        zarrdask.open_group(values, consolidated=True)


@pytest.mark.parametrize("must_understand", [True, None, "false"])
def test_c17_they_need_not_be_understood_or_it_is_an_error(must_understand):
    values = {"zarr.json": dump(inline(must_understand=must_understand))}
    with pytest.raises(UnsupportedError, match="consolidated_metadata"):
        zarrdask.open_group(values)


def test_c17_what_is_written_need_not_be_understood():
    values = {"zarr.json": dump(GROUP), "a/zarr.json": dump(v3())}
    zarrdask.consolidate_metadata(values)
    found = json.loads(values["zarr.json"])["consolidated_metadata"]
    assert (found["kind"], found["must_understand"]) == ("inline", False)


def test_c86_the_member_has_three_members_and_no_name():
    values = {"zarr.json": dump(GROUP), "a/zarr.json": dump(v3()), "b/zarr.json": dump(GROUP)}
    zarrdask.consolidate_metadata(values)
    document = json.loads(values["zarr.json"])
    written = document["consolidated_metadata"]
    assert set(written) == {"kind", "must_understand", "metadata"}
    assert (written["kind"], written["must_understand"]) == ("inline", False)
    assert set(written["metadata"]) == {"a", "b"}
    assert "extensions" not in document


def test_c86_it_is_a_member_of_groups_only():
    member = inline()["consolidated_metadata"]
    del member["must_understand"]
    with pytest.raises(UnsupportedError, match="consolidated_metadata"):
        zarrdask.open({"zarr.json": dump({**v3(), "consolidated_metadata": member})})


class Unlisted(MemoryStore):
    """A store that may not be listed, nor be asked for more than the root's documents."""

    def get(self, key):
        if "/" in key:
            pytest.fail(f"{key!r} was asked for")
        return super().get(key)

    def list_dir(self, prefix):
        pytest.fail(f"{prefix!r} was listed")

    list_prefix = list_dir


def test_c78_members_and_metadata_are_taken_from_them():
    root = zarrdask.open_group(Unlisted({"zarr.json": dump(inline())}))
    assert list(root) == ["a", "sub"]
    assert root["a"].attrs["units"] == "K"
    assert root["sub/sh"].shape == (6,)
    assert "b" not in root


def test_c78_a_nested_group_without_members_of_its_own_has_those_beside_it():
    root = zarrdask.open_group(Unlisted({"zarr.json": dump(inline())}))
    assert list(root["sub"]) == ["sh"]
    assert isinstance(root["sub"]["sh"], zarrdask.Array)


def test_c78_they_can_be_bypassed():
    values = {"zarr.json": dump(inline()), "real/zarr.json": dump(v3())}
    assert list(zarrdask.open_group(values)) == ["a", "sub"]
    assert list(zarrdask.open_group(values, consolidated=False)) == ["real"]


@pytest.mark.parametrize("kind", ["elsewhere", None, 5])
def test_c78_an_unknown_kind_is_ignored(kind):
    values = {"zarr.json": dump(inline(kind=kind)), "real/zarr.json": dump(v3())}
    assert list(zarrdask.open_group(values)) == ["real"]


def test_c78_paths_are_relative_and_documents_whole():
    values = {}
    root = zarrdask.create_group(values, "g")
    root.create_array("a", shape=4, dtype="u1", attributes={"n": 1})
    root.create_array("sub/sh", shape=4, dtype="u1")
    documents = {path: json.loads(values[f"g/{path}/zarr.json"]) for path in ("a", "sub", "sub/sh")}
    zarrdask.consolidate_metadata(values, "g")
    found = json.loads(values["g/zarr.json"])["consolidated_metadata"]["metadata"]
    assert found.pop("sub") == documents.pop("sub") | {"consolidated_metadata": EMPTY}
    assert found == documents


def test_c78_a_dataset_of_xarray_is_read_from_them():
    root = zarrdask.open_group(SAMPLES / "xarray" / "v3", consolidated=True)
    assert sorted(root) == sorted(DATASET)
    for name in DATASET:
        np.testing.assert_array_equal(root[name][...], expected("xarray", f"v3/{name}"))


CHANGES = {
    "create": lambda root: root.create_array("sub/new", shape=4, dtype="u1"),
    "overwrite": lambda root: root.create_array("a", shape=9, dtype="f4", overwrite=True),
    "delete": lambda root: root.__delitem__("sub"),
    "attributes": lambda root: root["a"].attrs.update(units="C"),
    "resize": lambda root: root["a"].resize(2),
    "append": lambda root: root["a"].append([1, 2]),
}


def told(root):
    return {path: (str(node), dict(node.attrs)) for path, node in root.walk()}


def consolidated_store():
    store = MemoryStore()
    root = zarrdask.create_group(store)
    root.create_array("a", shape=4, dtype="u1", chunks=2, attributes={"units": "K"})
    root.create_array("sub/sh", shape=6, dtype="u1")
    zarrdask.consolidate_metadata(store)
    return store


@for_each("change", CHANGES.values())
@for_each("consolidated", [None, False])
def test_c79_after_a_change_they_are_gone(change, consolidated):
    store = consolidated_store()
    before = told(zarrdask.open_group(store))
    root = zarrdask.open_group(store, mode="r+", consolidated=consolidated)
    change(root)
    truth = told(zarrdask.open_group(store, consolidated=False))
    assert told(zarrdask.open_group(store)) == told(root) == truth != before
    assert "consolidated_metadata" not in json.loads(store.get("zarr.json"))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_c79_or_up_to_date_if_so_configured(change, setting):
    setting({"zarrdask.consolidated-after-change": "update"})
    store = consolidated_store()
    change(zarrdask.open_group(store, mode="r+"))
    truth = told(zarrdask.open_group(store, consolidated=False))
    assert told(zarrdask.open_group(store, consolidated=True)) == truth


def test_c79_what_others_left_behind_does_not_shadow_the_documents():
    values = {"zarr.json": dump(inline()), "a/zarr.json": dump(v3(shape=(8,)))}
    assert zarrdask.open_group(values)["a"].shape == (4,)
    assert zarrdask.open_group(values, consolidated=False)["a"].shape == (8,)
    assert zarrdask.open_array(values, "a").shape == (8,)
