"""The comparison of manifests reads no object."""

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry

ONE, TWO = (f"md5:{digit * 32}" for digit in "12")
SHA = f"sha256:{'1' * 64}"


def compared(before, now):
    """Return the differences of manifests of one object, whose properties are given."""
    before, now = (Manifest("s3://b/a", (ManifestEntry("k", *each),)) for each in (before, now))
    return now.compare(before)


@for_each(
    "before, now",
    [
        ((1, "v", ONE), (1, "w", ONE)),
        ((1, "v", ONE), (1, "v", SHA)),
        ((1, "v", None), (1, "v", None)),
    ],
)
def test_objects_of_one_digest_or_version_are_equal(before, now):
    assert compared(before, now).ok


@for_each("before, now", [((1, "v", ONE), (2, "v", ONE)), ((1, "v", ONE), (1, "v", TWO))])
def test_objects_of_other_sizes_or_digests_differ(before, now):
    differences = compared(before, now)
    assert (differences.changed, differences.ok) == (("k",), False)


@for_each(
    "before, now",
    [
        ((1, "v", None), (1, "w", None)),
        ((1, None, None), (1, None, None)),
        ((1, "v", ONE), (1, "w", SHA)),
    ],
)
def test_objects_that_can_not_be_compared_are_unknown(before, now):
    differences = compared(before, now)
    assert (differences.unknown, differences.changed, differences.ok) == (("k",), (), False)


def test_keys_that_one_manifest_lacks_are_missing_or_added():
    a, b, c = (ManifestEntry(key, 1, "v") for key in "abc")
    differences = Manifest("", (b, c)).compare(Manifest("", (a, b)))
    assert (differences.missing, differences.added, differences.changed) == (("a",), ("c",), ())
    assert dict(differences.facts())["added"] == "1, the first is c"


def test_a_manifest_is_the_same_after_it_was_written(tmp_path):
    manifest = Manifest("s3://b/a", (ManifestEntry("k", 1, "v", ONE, "id"), ManifestEntry("l", 2)))
    assert Manifest.parse(manifest.render(), "name") == manifest
    path = tmp_path / "manifest.json"
    manifest.save(path)
    assert Manifest.of(path) == Manifest.of(str(path)) == Manifest.of(manifest) == manifest


def test_another_value_is_no_manifest():
    with pytest.raises(MetadataError, match="pass a manifest, or the path"):
        Manifest.of(3)
