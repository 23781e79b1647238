"""A.8: consolidated metadata of v2, and what they do to ``.zgroup``."""

import json

import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v2
from tests.test_samples import DATASET, SAMPLES, expected
from zarrdask.errors import MetadataError
from zarrdask.storage.memory import MemoryStore

GROUP = {"zarr_format": 2}
#: Of a group with an array, and a nested one: the documents, and all of them in one.
NODES = {
    ".zgroup": GROUP,
    ".zattrs": {"title": "all"},
    "x/.zarray": v2(),
    "x/.zattrs": {"units": "K"},
    "sub/.zgroup": GROUP,
    "sub/y/.zarray": v2(shape=(6,)),
}
CONSOLIDATED = {"zarr_consolidated_format": 1, "metadata": NODES}


class Unlisted(MemoryStore):
    """A store that may not be listed, and that tells what it was asked for."""

    def __init__(self, values):
        super().__init__(dict(values))
        self.asked = []

    def get(self, key):
        self.asked.append(key)
        return super().get(key)

    def list_dir(self, prefix):
        pytest.fail(f"{prefix!r} was listed")

    list_prefix = list_dir


def test_a67_all_documents_stand_in_one_by_their_keys():
    values = {key: dump(document) for key, document in NODES.items()}
    zarrdask.consolidate_metadata(values)
    assert json.loads(values[".zmetadata"]) == CONSOLIDATED


def test_a67_chunks_and_other_keys_are_not_in_it():
    values = {}
    root = zarrdask.create_group(values, zarr_format=2)
    root.create_array("x", shape=4, dtype="u1")[...] = 1
    values["x/note.txt"] = b"hello"
    zarrdask.consolidate_metadata(values)
    assert set(json.loads(values[".zmetadata"])["metadata"]) == {".zgroup", "x/.zarray"}


def test_a68_members_and_metadata_are_taken_from_it_without_listing():
    store = Unlisted({".zgroup": dump(GROUP), ".zmetadata": dump(CONSOLIDATED)})
    root = zarrdask.open_group(store)
    asked = len(store.asked)
    assert [path for path, _ in root.walk()] == ["sub", "sub/y", "x"]
    assert root["x"].attrs["units"] == "K"
    assert root["sub"]["y"].shape == (6,)
    assert len(store.asked) == asked


@for_each("version", [2, 0, "1", 1.0, True, None])
def test_a68_another_format_is_an_error_that_says_how_to_do_without(version):
    document = {"zarr_consolidated_format": version, "metadata": NODES}
    values = {".zgroup": dump(GROUP), ".zmetadata": dump(document)}
    for verb in (zarrdask.open, zarrdask.open_group):
        with pytest.raises(MetadataError, match="consolidated=False") as caught:
            verb(values)
        assert "zarr_consolidated_format" in caught.value.key
        assert caught.value.found == version
        assert list(verb(values, consolidated=False)) == []


def test_a68_it_is_written_on_demand():
    values = {}
    root = zarrdask.create_group(values, zarr_format=2)
    root.create_array("x", shape=4, dtype="u1")
    assert ".zmetadata" not in values
    zarrdask.consolidate_metadata(values)
    assert "x/.zarray" in json.loads(values[".zmetadata"])["metadata"]
    root.create_array("y", shape=4, dtype="u1")
    zarrdask.consolidate_metadata(values)
    assert "y/.zarray" in json.loads(values[".zmetadata"])["metadata"]


def test_a68_it_is_no_node():
    values = {".zmetadata": dump(CONSOLIDATED), ".zgroup": dump(GROUP)}
    root = zarrdask.open_group(values, consolidated=False)
    assert ".zmetadata" not in root
    assert list(root) == []
    with pytest.raises(MetadataError):
        zarrdask.create_group(values, "a/.zmetadata", zarr_format=2)


def test_a68_a_dataset_of_xarray_is_read_from_it():
    root = zarrdask.open_group(SAMPLES / "xarray" / "v2", consolidated=True)
    assert sorted(root) == sorted(DATASET)
    for name in DATASET:
        assert root[name][...].tolist() == expected("xarray", f"v2/{name}").tolist()


@pytest.mark.parametrize("member", ["consolidated_metadata", "_NCZARR_GROUP"])
def test_a50_what_others_put_into_zgroup_is_read_from_it_too(member):
    entries = NODES | {"sub/.zgroup": GROUP | {member: {"metadata": {}}}}
    document = {"zarr_consolidated_format": 1, "metadata": entries}
    values = {".zgroup": dump(GROUP), ".zmetadata": dump(document)}
    assert list(zarrdask.open_group(values)["sub"]) == ["y"]
    with pytest.raises(MetadataError, match=r"X-C12|A-50"):
        zarrdask.open_group(values, strict=True)["sub"]
