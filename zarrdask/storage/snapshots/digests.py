"""Digests of stored values, as a manifest has them: ``sha256:...``, ``md5:...``, ``crc32c:...``."""

from hashlib import new
from typing import Any, Literal

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.packages import load_module

#: The algorithms by which digests are computed.
Algorithm = Literal["sha256", "crc32c"]
#: The algorithms of digests, each with the number of hexadecimal digits. MD5 is used by ETags.
_DIGITS = {"sha256": 64, "md5": 32, "crc32c": 8}
#: The form of a digest, for messages.
EXPECTED = "sha256:..., md5:... or crc32c:... in hexadecimal digits"


def digest_of(value: Buffer, algorithm: str) -> str:
    """Return the digest of a value, with the name of its algorithm."""
    if algorithm == "crc32c":
        # The library accepts read-only memory only.
        return f"crc32c:{load_module('google_crc32c').value(bytes(value)):08x}"
    return f"{algorithm}:{new(algorithm, value, usedforsecurity=False).hexdigest()}"


def algorithm_of(digest: str) -> str:
    """Return the name of the algorithm of a digest."""
    return digest.partition(":")[0]


def is_digest(digest: Any) -> bool:
    """Whether a value is a digest by a known algorithm."""
    if not isinstance(digest, str):
        return False
    algorithm, _, digits = digest.partition(":")
    return len(digits) == _DIGITS.get(algorithm) and not digits.strip("0123456789abcdef")
