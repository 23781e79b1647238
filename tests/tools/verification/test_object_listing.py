"""What listings say of the values of objects."""

from hashlib import md5

from tests.covering import for_each
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.tools.verification import object_listing as listing

VALUE = b"a value"
MD5 = md5(VALUE).hexdigest()


def listed(tag, size=7):
    return StoredObject("key", "s3://b/", size, None, tag=tag)


@for_each("tag, expected", [(MD5, MD5), (f'"{MD5}"', MD5), (f"{MD5}-2", None), (None, None)])
def test_the_etag_of_one_request_is_the_md5_digest(tag, expected):
    assert listing.md5_of(listed(tag)) == expected


@for_each(
    "one, other, expected",
    [
        (MD5, f'"{MD5}"', True),
        (MD5, "0" * 32, False),
        (f"{MD5}-2", f"{MD5}-2", True),
        (f"{MD5}-2", f"{MD5}-3", None),
        (MD5, f"{MD5}-2", None),
        ("stamp", "stamp", None),
        (None, None, None),
    ],
)
def test_etags_show_whether_values_are_equal(one, other, expected):
    assert listing.have_equal_digests(listed(one), listed(other)) is expected


@for_each(
    "one, other, expected",
    [
        ("md5:1", "md5:1", True),
        ("md5:1", "md5:2", False),
        ("md5:1", "sha256:1", None),
        (None, "md5:1", None),
    ],
)
def test_digests_of_one_algorithm_are_compared(one, other, expected):
    assert listing.compared(one, other) is expected


def test_a_value_is_that_of_its_listing():
    assert listing.is_version(VALUE, listed(MD5))
    assert listing.is_version(VALUE, listed("stamp"))
    assert not listing.is_version(VALUE, listed("stamp", size=3))
    assert not listing.is_version(VALUE[::-1], listed(MD5))
    assert listing.has_digest(VALUE, digest_of(VALUE, "sha256"))
