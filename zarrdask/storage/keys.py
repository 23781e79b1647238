"""What a key is, and a prefix of keys, in a store."""

import re
from collections.abc import Iterable

from zarrdask.errors import MetadataError

#: The names of the keys, and of the prefixes, right under a prefix.
Names = tuple[list[str], list[str]]
#: What the draft of v3 allows in a key.
_DRAFT = re.compile(r"[A-Za-z0-9/._-]*")
#: How Python has a file name that is no text.
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_key(key: str, *, draft: bool = False) -> str:
    """Return a key if it is one.

    The package makes its keys of paths and chunk indices that were checked, so reads and writes
    of chunks don't do this again.

    Parameters
    ----------
    draft : bool
        Whether the rule of the v3 draft holds, which knows few characters (conformance B-77).
        Otherwise a key is any Unicode text that does not end with "/" (C-72).

    Raises
    ------
    MetadataError
        If it is none.
    """
    valid = isinstance(key, str) and key != "" and not key.endswith("/")
    return _checked("key", key, 'Unicode text that does not end with "/"', valid=valid, draft=draft)


def check_prefix(prefix: str, *, draft: bool = False) -> str:
    """Return a prefix in normal form: "" or a text that ends with "/"; "/" is "" too.

    Parameters
    ----------
    draft : bool
        As in `check_key`.

    Raises
    ------
    MetadataError
        If it is none.
    """
    if prefix in ("", "/"):
        return ""
    valid = isinstance(prefix, str) and prefix.endswith("/")
    expected = '"" or Unicode text that ends with "/"'
    return _checked("prefix", prefix, expected, valid=valid, draft=draft)


def _checked(kind: str, text: str, expected: str, *, valid: bool, draft: bool) -> str:
    if not valid or _SURROGATE.search(text):
        raise MetadataError(f"not a {kind}", key=kind, found=text, expected=expected)
    if draft and not _DRAFT.fullmatch(text):
        raise MetadataError(
            f"not a {kind} in the draft of Zarr v3", key=kind, found=text, expected=_DRAFT.pattern
        )
    return text


def right_below(prefix: str, keys: Iterable[str]) -> Names:
    """Return the names right under a prefix, of all keys that begin with it.

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
