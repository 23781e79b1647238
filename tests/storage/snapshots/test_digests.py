"""Digests name their algorithm."""

import pytest

from tests.covering import for_each
from zarrdask.storage.snapshots.digests import algorithm_of, digest_of, is_digest

#: Of the bytes "123456789", as published with each algorithm.
DIGESTS = [
    "sha256:15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
    "md5:25f9e794323b453885f5181f1b624d0b",
    "crc32c:e3069283",
]


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_digest_has_its_algorithm(digest, kind):
    algorithm = algorithm_of(digest)
    if algorithm == "crc32c":
        pytest.importorskip("google_crc32c")
    assert digest_of(kind(b"123456789"), algorithm) == digest
    assert is_digest(digest)


@for_each("value", ["", "md5", "md5:", "sha1:25f9", "md5:" + "g" * 32, DIGESTS[1] + "0", 5, None])
def test_other_values_are_no_digests(value):
    assert not is_digest(value)


def test_digits_are_lower_case():
    assert not is_digest(DIGESTS[1].upper().replace("MD5", "md5"))
