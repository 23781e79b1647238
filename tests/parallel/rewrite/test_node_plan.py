"""Which nodes a copy has, in which format, and where they may go."""

import json
import os

import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from tests.parallel.rewrite.hierarchies import FORMATS, VALUES, check, hierarchy, make
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    UnsupportedError,
)


class TestHierarchies:
    @covering(strength=1, source=FORMATS, target=FORMATS[::-1])
    def test_from_each_format_to_each(self, tmp_path, source, target):
        hierarchy(tmp_path / "a", source)
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        check(zarrdask.open_group(tmp_path / "b"), target)
        assert (report.groups, len(report.arrays), report.objects) == (3, 2, 40)

    @pytest.mark.parametrize("target", [2, 3])
    @pytest.mark.parametrize("source", [2, 3])
    def test_consolidated_metadata_go_with_it(self, tmp_path, source, target):
        zarrdask.consolidate_metadata(hierarchy(tmp_path / "a", source))
        zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        check(zarrdask.open_group(tmp_path / "b", consolidated=True), target)
        hierarchy(tmp_path / "c", source)
        zarrdask.copy(tmp_path / "c", tmp_path / "d", zarr_format=target)
        with pytest.raises(MetadataError, match="no consolidated"):
            zarrdask.open_group(tmp_path / "d", consolidated=True)

    def test_a_draft_has_no_consolidated_metadata_and_the_report_says_so(self, tmp_path):
        zarrdask.consolidate_metadata(hierarchy(tmp_path / "a"))
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format="v3-draft")
        assert report.notes == (
            "no consolidated metadata: the format has none, or the store can't be listed",
        )

    def test_groups_of_groups(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        zarrdask.copy(root["g"], tmp_path / "b", "x/y", zarr_format=2)
        found = zarrdask.open_group(tmp_path / "b")
        assert [path for path, _ in found.walk()] == ["x", "x/y", "x/y/b", "x/y/empty"]
        np.testing.assert_array_equal(found["x/y/b"][...], VALUES)

    def test_some_of_it(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        zarrdask.copy(root, tmp_path / "b", include="*/b")
        assert [p for p, _ in zarrdask.open_group(tmp_path / "b").walk()] == ["g", "g/b", "g/empty"]
        zarrdask.copy(root, tmp_path / "c", exclude=["g"])
        assert [p for p, _ in zarrdask.open_group(tmp_path / "c").walk()] == ["a"]
        with pytest.raises(MetadataError, match="include"):
            zarrdask.copy(root, tmp_path / "d", include=[3])

    @pytest.mark.parametrize("options", [{}, {"dry_run": True}, {"exclude": "*"}], ids=str)
    def test_patterns_that_match_no_array_are_an_error(self, tmp_path, options):
        root = hierarchy(tmp_path / "a", zarr_format=2)
        with pytest.raises(MetadataError, match=r"no array matches.*nothing"):
            zarrdask.copy(root, tmp_path / "b", include=["nothing", "g"], **options)
        assert not (tmp_path / "b").exists()
        with pytest.raises(MetadataError, match="no array matches"):
            zarrdask.upgrade(root, include="nothing")

    def test_what_the_format_lacks_is_found_before_anything_is_written(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        make(root, "odd", dtype="bfloat16")
        with pytest.raises(UnsupportedError, match=r"a/odd: .*bfloat16"):
            zarrdask.copy(root, tmp_path / "b", zarr_format=2)
        assert not os.path.exists(tmp_path / "b")
        report = zarrdask.copy(root, tmp_path / "b", zarr_format=2, on_unsupported="skip")
        assert [path for path, _ in report.skipped] == ["odd"]
        assert "skipped odd: " in str(report)
        check(zarrdask.open_group(tmp_path / "b"), 2)

    def test_what_can_not_be_read_is_skipped_on_request(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        (tmp_path / "a" / "g" / "zarr.json").write_text("{")
        with pytest.raises(MetadataError, match="a/g"):
            zarrdask.copy(root, tmp_path / "b")
        report = zarrdask.copy(root, tmp_path / "b", on_unsupported="skip")
        assert [path for path, _ in report.skipped] == ["g"]
        assert list(zarrdask.open_group(tmp_path / "b")) == ["a"]
        with pytest.raises(MetadataError, match="on_unsupported"):
            zarrdask.copy(root, tmp_path / "c", on_unsupported="ignore")

    @pytest.mark.parametrize("target", [2, 3])
    def test_names_of_v2_that_are_not_ascii(self, tmp_path, target):
        # As other software writes them.
        document = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C"}
        document |= {"compressor": None, "filters": None, "fill_value": 0}
        for name in ("", "größe", "größe/た"):
            folder = tmp_path / "a" / name
            folder.mkdir(parents=True)
            array = name.endswith("た")
            text = json.dumps(document) if array else '{"zarr_format": 2}'
            (folder / (".zarray" if array else ".zgroup")).write_text(text)
        (tmp_path / "a" / "größe" / "た" / "0").write_bytes(b"\1\2")
        zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=target)
        found = zarrdask.open_array(tmp_path / "b", "größe/た")
        assert found.zarr_format == target
        assert found[...].tolist() == [1, 2]
        zarrdask.copy(tmp_path / "a" / "größe", tmp_path / "c")
        assert zarrdask.open_array(tmp_path / "c", "た")[...].tolist() == [1, 2]

    def test_names_that_the_format_lacks(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "a")
        make(root, "größe")
        with pytest.raises(MetadataError, match="größe"):
            zarrdask.copy(root, tmp_path / "b", zarr_format="v3-draft")
        zarrdask.copy(root, tmp_path / "b")
        assert list(zarrdask.open_group(tmp_path / "b")) == ["größe"]


class TestPlaces:
    @covering(strength=1, before=FORMATS, after=FORMATS[::-1])
    def test_what_is_there_is_replaced_on_request_only(self, tmp_path, before, after):
        z = make(tmp_path / "z")
        hierarchy(tmp_path / "root", before)
        with pytest.raises(NodeExistsError):
            zarrdask.copy(z, tmp_path / "root", zarr_format=after)
        check(zarrdask.open_group(tmp_path / "root"), before)
        zarrdask.copy(z, tmp_path / "root", zarr_format=after, overwrite=True)
        found = zarrdask.open_array(tmp_path / "root")
        assert found.zarr_format == after
        np.testing.assert_array_equal(found[...], VALUES)
        assert not [f for f in (tmp_path / "root").rglob("*") if f.name.startswith("empty")]

    def test_a_member_of_a_group_is_replaced_alone(self, tmp_path):
        root = zarrdask.consolidate_metadata(hierarchy(tmp_path / "root"))
        z = zarrdask.create_array(tmp_path / "z", shape=3, dtype="i4")
        zarrdask.copy(z, root, "g/b", overwrite=True)
        found = zarrdask.open_group(tmp_path / "root")
        assert found["g/b"].shape == (3,)
        assert found["a"].shape == (10, 12)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_a_member_is_replaced_in_any_format(self, tmp_path, zarr_format):
        root, z = hierarchy(tmp_path / "root", zarr_format), make(tmp_path / "z")
        for name in ("g/b", "g"):
            with pytest.raises(NodeExistsError):
                zarrdask.copy(z, root, name)
            report = zarrdask.copy(z, root, name, overwrite=True, fill_value=3)
            assert report.objects == 20
            found = zarrdask.open_group(tmp_path / "root")[name]
            assert (found.zarr_format, found.fill_value) == (zarr_format, 3)
            np.testing.assert_array_equal(found[...], VALUES)

    def test_what_can_not_be_read_is_replaced_too(self, tmp_path):
        z = make(tmp_path / "a")
        for name in ("b", "c/d"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "zarr.json").write_text("{")
            (tmp_path / name / "c").write_text("in the way")
            with pytest.raises(NodeExistsError):
                zarrdask.copy(z, tmp_path / name)
            zarrdask.copy(z, tmp_path / name, overwrite=True)
            np.testing.assert_array_equal(zarrdask.open_array(tmp_path / name)[...], VALUES)

    def test_leftovers_are_not_taken_for_chunks(self, tmp_path):
        z = zarrdask.create_array(tmp_path / "a", shape=4, chunks=2, dtype="u1")
        os.makedirs(tmp_path / "b" / "c")
        (tmp_path / "b" / "c" / "1").write_bytes(b"nonsense")
        zarrdask.copy(z, tmp_path / "b")
        assert zarrdask.open_array(tmp_path / "b")[...].tolist() == [0] * 4

    def test_not_into_itself_nor_over_what_holds_it(self, tmp_path):
        root = hierarchy(tmp_path / "a")
        for place in (tmp_path / "a", tmp_path / "a" / "g", tmp_path / "a" / "new"):
            with pytest.raises(NodeExistsError, match="itself"):
                zarrdask.copy(root, place, overwrite=True)
        with pytest.raises(NodeExistsError, match="itself"):
            zarrdask.copy(root["g/b"], tmp_path / "a", overwrite=True)
        check(zarrdask.open_group(tmp_path / "a"), 3)
        zarrdask.copy(root["g"], root, "h")
        assert sorted(root) == ["a", "g", "h"]

    def test_nothing_to_copy_and_nowhere_to(self, tmp_path):
        with pytest.raises(NodeNotFoundError):
            zarrdask.copy(tmp_path / "none", tmp_path / "b")
        z = make(tmp_path / "a")
        with pytest.raises(MetadataError, match="target"):
            zarrdask.copy(z)
