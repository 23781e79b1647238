"""Documents in large consolidated metadata are parsed when they are needed."""

import json

import pytest

import zarrdask
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata import consolidated_documents as forms

pytestmark = pytest.mark.filterwarnings("ignore::zarrdask.errors.ComplianceWarning")


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    monkeypatch.setattr(forms, "MIN_UNPARSED_BYTES", 0)


def tree(zarr_format):
    """Return a tree of groups in groups, with an array each, and the key of its metadata."""
    place = {}
    zarrdask.create_group(place, zarr_format=zarr_format, attributes={"of": "the group"})
    for path in ("a", "a/b", "a/c", "d"):
        group = zarrdask.create_group(place, path, zarr_format=zarr_format)
        group.attrs.update({"held": {"metadata": {}}})
        group.create_array("x", shape=(2,), dtype="i4", attributes={"units": "{"})
    zarrdask.consolidate_metadata(place)
    return place, ".zmetadata" if zarr_format == 2 else "zarr.json"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_unparsed_documents_are_those_that_parsing_returns(zarr_format, monkeypatch):
    place, _ = tree(zarr_format)
    names = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
    documents = {name: place.get(name) for name in names}
    own, held = forms.split_documents(documents)
    monkeypatch.setattr(forms, "MIN_UNPARSED_BYTES", 2**30)
    expected_own, expected = forms.split_documents(documents)
    assert own == expected_own
    assert dict(held.members) == dict(expected.members)
    assert {"", *held.documents} == {"", *expected.documents}
    for path, nodes in expected.documents.items():
        dumped = {name: held.dump(value) for name, value in held.documents[path].items()}
        assert dumped == {name: expected.dump(value) for name, value in nodes.items()}
        assert held.members.get(path) == expected.members.get(path)
    assert "a/x" not in held.members
    assert not any(isinstance(v, dict) for v in held.documents["a/x"].values())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_invalid_document_is_an_error_of_its_node_only(zarr_format):
    place, key = tree(zarr_format)
    found = json.loads(place[key])
    metadata = found["metadata"] if zarr_format == 2 else found["consolidated_metadata"]["metadata"]
    path = "a/b/x/.zarray" if zarr_format == 2 else "a/b/x"
    metadata[path] = {"invalid": 1}
    place[key] = json.dumps(found).replace('{"invalid": 1}', '{"shape" [2]}').encode()
    group = zarrdask.open_group(place)
    assert group["a/c/x"].attrs["units"] == "{"
    assert sorted(group["a"]) == ["b", "c", "x"]
    with pytest.raises(MetadataError, match="not a JSON document") as error:
        group["a/b/x"]
    assert "a/b/x" in str(error.value)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_verify_compares_them_with_the_documents_of_the_nodes(zarr_format):
    place, _ = tree(zarr_format)
    assert zarrdask.verify(place).ok
    key = "a/b/.zattrs" if zarr_format == 2 else "a/b/zarr.json"
    place[key] = place[key].replace(b'"held"', b'"other"')
    report = zarrdask.verify(place)
    assert [problem.kind for problem in report.problems] == ["stale"]
    assert "a/b" in str(report)


@pytest.mark.parametrize("name", ["..", "a//b", ""])
def test_paths_that_lead_out_of_the_group_are_errors(name):
    place, key = tree(3)
    found = json.loads(place[key])
    found["consolidated_metadata"]["metadata"][name] = {"zarr_format": 3, "node_type": "group"}
    place[key] = json.dumps(found).encode()
    with pytest.raises(MetadataError, match="invalid path"):
        zarrdask.open_group(place)


def test_names_may_begin_with_a_period():
    place, key = tree(3)
    found = json.loads(place[key])
    held = found["consolidated_metadata"]["metadata"]
    held["a/.hidden"] = held["a/x"]
    place[key] = json.dumps(found).encode()
    assert ".hidden" in [*zarrdask.open_group(place)["a"]]


def test_metadata_of_another_kind_is_not_used():
    place, key = tree(3)
    found = json.loads(place[key])
    found["consolidated_metadata"]["kind"] = "other"
    del found["consolidated_metadata"]["metadata"]["d"]
    place[key] = json.dumps(found).encode()
    assert "d" in [*zarrdask.open_group(place)]
