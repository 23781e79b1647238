"""Rules for keys, and for prefixes of keys, in a store."""

import re
from collections.abc import Iterable

from zarrdask.errors import MetadataError

#: The names of the keys, and of the prefixes, directly below a prefix.
Names = tuple[list[str], list[str]]
#: The characters that the draft of v3 allows in a key.
_DRAFT = re.compile(r"[A-Za-z0-9/._-]*")
#: Python represents the bytes of a file name that are not text by these characters.
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_key(key: str, *, draft: bool = False) -> str:
    """Return a key if it is valid: any Unicode text that does not end with "/" (conformance C-72).

    With `draft`, it must also follow the rule of the v3 draft, which allows few characters (B-77).
    The package builds its keys from paths and chunk indices that were checked before, so reads and
    writes of chunks don't call this function.

    Raises
    ------
    MetadataError
        If the key is invalid.
    """
    valid = isinstance(key, str) and key != "" and not key.endswith("/")
    return _checked("key", key, 'Unicode text that does not end with "/"', valid=valid, draft=draft)


def check_prefix(prefix: str, *, draft: bool = False) -> str:
    """Return a prefix in normal form: "" or a text that ends with "/"; "/" becomes "".

    `draft` and the error are the same as in `check_key`.
    """
    if prefix in ("", "/"):
        return ""
    valid = isinstance(prefix, str) and prefix.endswith("/")
    expected = '"" or Unicode text that ends with "/"'
    return _checked("prefix", prefix, expected, valid=valid, draft=draft)


def _checked(kind: str, text: str, expected: str, *, valid: bool, draft: bool) -> str:
    if not valid or _SURROGATE.search(text):
        raise MetadataError(f"invalid {kind}", key=kind, found=text, expected=expected)
    if draft and not _DRAFT.fullmatch(text):
        raise MetadataError(
            f"invalid {kind} in the draft of Zarr v3",
            key=kind,
            found=text,
            expected=f"only characters that match {_DRAFT.pattern}",
        )
    return text


def check_relative(key: object, location: str) -> str:
    """Return a key below a node, if it is one that can't lead out of it.

    Raises
    ------
    MetadataError
        If it is not a key, or has names that consist of periods only.
    """
    if isinstance(key, str) and "\0" not in key and "\\" not in key:
        names = key.split("/")
        if all(name.strip(".") or not name.startswith(".") for name in names) and all(names):
            return key
    raise MetadataError(
        "this is not a key, or it leads out of the node",
        key=location,
        found=key,
        expected='names joined by "/", none of which consists of periods only',
    )


def right_below(prefix: str, keys: Iterable[str]) -> Names:
    """Return the names directly below a prefix, for all keys that begin with it.

    Examples
    --------
    >>> right_below("a/", ["a/b", "a/c", "a/d/e", "a/f/g"])
    (['b', 'c'], ['d', 'f'])
    """
    names: set[str] = set()
    prefixes: set[str] = set()
    for key in keys:
        name, slash, _ = key[len(prefix) :].partition("/")
        (prefixes if slash else names).add(name)
    return sorted(names), sorted(prefixes)
