"""Objects that were written: versions and digests without reading them again."""

from hashlib import md5, sha256

from zarrdask.storage.snapshots.object_manifest import ManifestEntry
from zarrdask.storage.snapshots.written_objects import WrittenObjects

VALUE = b"some value"
SHA256, MD5 = sha256(VALUE).hexdigest(), md5(VALUE).hexdigest()


def test_a_file_has_the_version_of_its_stamp():
    written = WrittenObjects()
    assert written.add_value("a", VALUE, "stamp") == ManifestEntry(
        "a", len(VALUE), "stamp", f"sha256:{SHA256}"
    )


def test_the_md5_digest_is_the_etag_of_an_object():
    written = WrittenObjects("md5")
    assert written.add_value("a", VALUE) == ManifestEntry("a", 10, f'"{MD5}"', f"md5:{MD5}")
    assert written.add_value("b", VALUE, md5="0" * 32).version == f'"{"0" * 32}"'


def test_a_file_that_is_copied_in_blocks_has_the_digest_of_all():
    written = WrittenObjects()
    hashed = written.hashing()
    hashed.update(VALUE[:4])
    hashed.update(VALUE[4:])
    written.add_file("a", len(VALUE), "stamp", hashed)
    assert written.digests() == {"a": f"sha256:{SHA256}"}


def test_what_is_below_a_prefix_has_the_keys_there():
    array, group = WrittenObjects(), WrittenObjects()
    array.add_value("c/0", VALUE)
    array["c/1"] = None
    group.add_below("a/", array)
    assert [*group] == ["a/c/0", "a/c/1"]
    assert group["a/c/0"].key == "a/c/0"
    assert group.below("a/") == array
    assert group.below("b/") == {}


def test_other_processes_send_what_they_have_written():
    one, other = WrittenObjects(), WrittenObjects()
    one.add_value("a", VALUE, "1")
    one["b"] = None
    other.add_value("b", VALUE, "2")
    one.merge([other.render()])
    assert one["b"] == other["b"]
    other.merge([one.render()])
    assert other == one
