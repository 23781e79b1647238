"""`upgrade`: v3 metadata beside those of v2."""

import json

import pytest

import zarrdask
from tests.parallel.rewrite.hierarchies import check, hierarchy
from zarrdask.errors import MetadataError, UnsupportedError


class TestUpgrade:
    def test_only_metadata_are_written(self, tmp_path):
        root = zarrdask.consolidate_metadata(hierarchy(tmp_path / "a", 2))
        before = {f: f.stat().st_mtime_ns for f in (tmp_path / "a").rglob("*") if f.is_file()}
        report = zarrdask.upgrade(root)
        after = {f: f.stat().st_mtime_ns for f in (tmp_path / "a").rglob("*") if f.is_file()}
        assert {f.name for f in set(after) - set(before)} == {"zarr.json"}
        assert {f: after[f] for f in before} == before
        assert [array.method for array in report.arrays] == ["metadata only"] * 2
        assert "already" not in str(report)
        with pytest.warns(zarrdask.errors.ComplianceWarning, match="metadata of two formats"):
            check(zarrdask.open_group(tmp_path / "a", consolidated=False), 3)
        with pytest.warns(zarrdask.errors.ComplianceWarning, match="metadata of two formats"):
            again = zarrdask.upgrade(tmp_path / "a")
        assert str(again).count("it is v3 already") == 2
        document = json.loads((tmp_path / "a" / "a" / "zarr.json").read_text())
        assert document["chunk_key_encoding"] == {
            "name": "v2",
            "configuration": {"separator": "."},
        }

    def test_the_old_documents_are_removed_on_request(self, tmp_path):
        zarrdask.consolidate_metadata(hierarchy(tmp_path / "a", 2))
        zarrdask.upgrade(tmp_path / "a", remove_v2=True)
        names = {f.name for f in (tmp_path / "a").rglob("*")}
        assert not names & {".zarray", ".zgroup", ".zattrs", ".zmetadata"}
        check(zarrdask.open_group(tmp_path / "a", consolidated=True), 3)

    def test_what_was_cut_short_is_done_by_doing_it_again(self, tmp_path):
        hierarchy(tmp_path / "a", 2)
        zarrdask.upgrade(tmp_path / "a" / "g" / "b")
        with pytest.warns(zarrdask.errors.ComplianceWarning):
            zarrdask.upgrade(tmp_path / "a", remove_v2=True)
        check(zarrdask.open_group(tmp_path / "a"), 3)

    def test_chunks_that_v3_can_not_describe(self, tmp_path):
        root = hierarchy(tmp_path / "a", 2)
        mixed = [("a", "<i2"), ("b", ">f4")]
        root.create_array("m", shape=3, dtype=mixed)
        with pytest.raises(UnsupportedError, match=r"a/m: .*zarrdask.copy"):
            zarrdask.upgrade(root)
        assert not list((tmp_path / "a").rglob("zarr.json"))
        report = zarrdask.upgrade(root, on_unsupported="skip")
        assert [path for path, _ in report.skipped] == ["m"]

    def test_it_is_for_v2_and_nothing_else_changes(self, tmp_path):
        root = hierarchy(tmp_path / "a", "v3-draft")
        with pytest.raises(MetadataError, match="only nodes of v2"):
            zarrdask.upgrade(root)

    @pytest.mark.parametrize("options", [{"in_place": True}, {"remove_v2": True}])
    def test_copy_names_it(self, options):
        z = zarrdask.create_array({}, shape=4, dtype="i4", zarr_format=2)
        with pytest.raises(TypeError, match=r"zarrdask\.upgrade\(url"):
            zarrdask.copy(z, **options)

    def test_a_dry_run_writes_nothing(self, tmp_path):
        z = zarrdask.create_array(tmp_path / "a", shape=4, dtype="i4", zarr_format=2)
        report = zarrdask.upgrade(z, remove_v2=True, dry_run=True)
        assert [array.method for array in report.arrays] == ["metadata only"]
        assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [".zarray"]
