"""Documents and keys of a hierarchy: what is not valid, stale, or belongs to nothing."""

import json

import pytest

import zarrdask
from tests.documents import dump, v3
from tests.drafts import hierarchy, older
from tests.tools.verification.damage import kinds, make, told


class TestMetadata:
    def test_an_array_that_is_not_valid_is_named_and_the_others_are_checked(self):
        store = {}
        make(store)
        root = zarrdask.open_group(store, mode="r+")
        root.create_array("b", shape=2, dtype="u1")[...] = 1
        document = json.loads(store["g/a/zarr.json"])
        store["g/a/zarr.json"] = dump(document | {"shape": "many"})
        report = zarrdask.verify(store)
        assert not report.ok
        assert told(report) == [("invalid", "g/a", "g/a")]
        assert [found.path for found in report.arrays] == ["b"]

    def test_an_unknown_codec_can_not_be_checked(self):
        store = {"zarr.json": dump(v3(codecs=[{"name": "nobody.knows"}]))}
        report = zarrdask.verify(store)
        assert not report.ok
        assert kinds(report) == ["unsupported"]
        assert "nobody.knows" in str(report)

    def test_what_is_tolerated_is_noted_and_fails_in_strict_mode(self):
        store = {
            "zarr.json": dump(
                v3(codecs=[{"name": "endian", "configuration": {"endian": "little"}}])
            )
        }
        report, strict = zarrdask.verify(store), zarrdask.verify(store, strict=True)
        assert report.ok
        assert kinds(report) == kinds(strict) == ["note"]
        assert "X-C7" in str(report)
        assert not strict.ok
        assert [p.kind for p in strict.failures] == ["note"]

    def test_it_warns_of_nothing(self):
        # It would be an error here: pytest is told so.
        store = {"zarr.json": dump(v3()), ".zarray": b"{}"}
        assert kinds(zarrdask.verify(store)) == ["note"]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_metadata_that_are_stale(self, zarr_format):
        store = {}
        make(store, zarr_format)
        zarrdask.consolidate_metadata(store)
        assert not zarrdask.verify(store).problems
        key = "g/a/zarr.json" if zarr_format == 3 else "g/a/.zarray"
        store[key] = dump(json.loads(store[key]) | {"shape": [44]})
        report = zarrdask.verify(store)
        assert told(report) == [("stale", "", "")]
        assert "g/a" in report.problems[0].message
        assert not report.ok

    def test_an_entry_point_of_the_draft_that_is_wrong(self):
        store = hierarchy({"a.array": older()})
        store["zarr.json"] = store["zarr.json"].replace(b"/3.0", b"/9.0")
        report = zarrdask.verify(store)
        assert not report.ok
        assert set(kinds(report)) <= {"invalid", "unsupported"}

    def test_nothing_there_is_an_error(self):
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.verify({})
