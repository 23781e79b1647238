"""Which objects a document of references may refer to, and with which options they are read."""

import os
import re
from typing import NamedTuple
from urllib.parse import unquote

from zarrdask.errors import StoreError
from zarrdask.storage.file_calls import path_of_url

#: Schemes that references may have. Others may do more than read from a server.
_SCHEMES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https"}
#: The schemes whose URLs name a bucket, but no server: the options name the server.
_BUCKETS = {"s3", "s3a", "gs", "gcs"}
#: What a URL may name before its path. Anything else may be one host to the code that compares it,
#: and another one to the code that connects to it.
_AUTHORITY = re.compile(
    r"([\w.~%-]+(:[\w.~%-]*)?@)?([\w.-]+|\[[\da-f:.]+\])(:\d+)?", re.ASCII | re.IGNORECASE
)


class Target(NamedTuple):
    """The target of a reference: part of an object, or all of it if the length is None."""

    url: str
    start: int
    length: int | None

    def within(self, start: int, length: int | None) -> tuple[int, int | None]:
        """Return the range of the object for a range of the value that is part of it."""
        if self.length is None:
            return start, length
        first = max(self.length + start, 0) if start < 0 else min(start, self.length)
        rest = self.length - first
        return self.start + first, rest if length is None else min(length, rest)


class TargetStore(NamedTuple):
    """A bucket or a server, or "/" for local files, and whether the user's options are for it."""

    root: str
    takes_options: bool


class TargetRules(NamedTuple):
    """The locations that references may refer to.

    Attributes
    ----------
    protocol : str or None
        The protocol of URLs that have none; None for local paths.
    prefix : str or None
        The URL below which the user's options are for.
    local : bool
        Whether references may be to local files.
    """

    protocol: str | None
    prefix: str | None
    local: bool

    def locate(self, url: str, key: str) -> tuple[TargetStore, str]:
        """Return the store of a reference's URL, and the key in it; `key` is for messages.

        Raises
        ------
        StoreError
            If the URL may not be read.
        """
        if "://" not in url and self.protocol not in (None, "file", "local"):
            url = f"{self.protocol}://{url}"
        scheme, separator, rest = url.partition("://")
        authority, _, name = rest.partition("/")
        if not separator or scheme in ("file", "local"):
            if not self.local:
                raise StoreError(
                    "this reference is to a local file, which a document from an untrusted source "
                    "may abuse; set zarrdask.local-references to True if you trust this document",
                    key=key,
                    found=url,
                )
            path = os.path.abspath(path_of_url(rest if separator else url)).lstrip("/")
            return TargetStore("/", takes_options=False), path
        if scheme not in _SCHEMES or not _AUTHORITY.fullmatch(authority):
            raise StoreError(
                "references with this scheme, or with a chain of schemes, are not followed",
                key=key,
                found=url,
                expected=f"a bucket or server after one of {', '.join(sorted(_SCHEMES))}, or file",
            )
        root = f"{scheme}://{authority}"
        is_below = self.prefix is not None and _is_below(self.prefix, f"{root}/{name}")
        return TargetStore(root, is_below), name


def prefix_of_options(prefix: str | None, protocol: str | None) -> str:
    """Return the URL below which objects are requested with the user's options.

    Raises
    ------
    StoreError
        If the user named none, or one that is not limited to a server.
    """
    if prefix is None and protocol in _BUCKETS:
        return f"{protocol}://"
    scheme, _, rest = (prefix or "").partition("://")
    authority = rest.partition("/")[0]
    is_limited = _AUTHORITY.fullmatch(authority) or (scheme in _BUCKETS and not rest)
    if prefix is None or scheme not in _SCHEMES or not is_limited:
        raise StoreError(
            "options for the objects of references may contain credentials, so they are used only "
            "for the server or bucket that you name; pass its URL as remote_prefix",
            key="remote_prefix",
            found=prefix,
            expected='a URL such as "https://data.example.org/", "s3://bucket/" or "s3://"',
        )
    return prefix


def _is_below(prefix: str, url: str) -> bool:
    """Whether a URL begins with another one, and has no ".." that leads out of it."""
    directory = prefix if prefix.endswith("/") else f"{prefix}/"
    names = re.split(r"[/\\]", re.sub(r"[\t\r\n]", "", unquote(url)))
    return url.startswith(directory) and ".." not in names
