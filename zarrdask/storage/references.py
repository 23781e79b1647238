"""References, as kerchunk and VirtualiZarr write them: keys that are ranges of other files."""

import json
import os
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from toolz import partition_all

from zarrdask import config
from zarrdask.errors import MetadataError, StoreError, UnsupportedError, without_secrets
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, KeyRange, cut
from zarrdask.storage.keys import Names, check_key, check_prefix, right_below
from zarrdask.storage.local import LocalStore
from zarrdask.storage.parquet_references import DOCUMENT, ParquetReferences
from zarrdask.storage.partial_access import StoreWithPartialAccess
from zarrdask.storage.remote import open_remote
from zarrdask.storage.retry import retrying
from zarrdask.storage.system import path_of_url

#: Values that are requested together.
_BATCH = 256
#: Documents that a process keeps for its tasks.
_MAX_OPEN = 8
#: Schemes that references may have. Others may do more than read from a server.
_SCHEMES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https"}
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
#: The options of fsspec's reference file system that are understood here.
_OPTIONS = {
    *("fo", "target_options", "target_protocol", "remote_options", "remote_protocol"),
    "lazy",  # which references in Parquet always are
}


class Target(NamedTuple):
    """What a reference refers to: part of an object, or all of it if the length is None."""

    url: str
    start: int
    length: int | None


@dataclass(frozen=True)
class _JsonReferences:
    """The references in a document of JSON: all are in memory."""

    entries: Mapping[str, Any]
    templates: Mapping[str, str]
    digest: str

    def load(self, _: Iterable[str]) -> Mapping[str, Any]:
        return self.entries

    def list_dir(self, prefix: str) -> Names:
        return right_below(prefix, self.list_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return (key for key in sorted(self.entries) if key.startswith(prefix))


class ReferenceStore(StoreWithPartialAccess):
    """Values that are parts of other objects, or are given with their keys.

    Ranges that are close to each other in an object are read by one request, and all requests of a
    call are in flight together.

    Parameters
    ----------
    references : mapping or ParquetReferences
        The JSON document of kerchunk, version 0 or 1: by key a text, a text that begins with
        ``base64:``, ``[url]`` or ``[url, start, length]``. Templates are replaced. Or the
        references in a directory of Parquet files.
    options : dict, optional
        Options of fsspec for the objects.
    protocol : str, optional
        The protocol of URLs that have none; by default they are local paths.
    url : str, optional
        Where the document is, for messages.
    local : bool, optional
        Whether references may be to local files; by default the setting
        ``zarrdask.local-references`` says so.

    Raises
    ------
    MetadataError, UnsupportedError
        If the document is not valid, or generates references.
    """

    concurrent = True
    #: The stores of the objects do.
    repeats = True

    def __init__(
        self,
        references: Mapping[str, Any] | ParquetReferences,
        *,
        options: dict[str, Any] | None = None,
        protocol: str | None = None,
        url: str | None = None,
        local: bool | None = None,
    ) -> None:
        self._references, self._options, self._protocol = references, options, protocol
        self._entries = (
            references if isinstance(references, ParquetReferences) else _parse(references)
        )
        self._url = url or f"reference:{self._entries.digest}"
        self._local = config.get("local-references") if local is None else local
        self._stores: dict[str, Store] = {}
        #: Where the document is read in another process: its URL and the options for it.
        self.source: tuple[str, dict[str, Any] | None] | None = None

    @property
    def url(self) -> str:
        return without_secrets(self._url)

    @property
    def token(self) -> str:
        return f"{self._url}#{self._entries.digest}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceStore) and self._identity == other._identity

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.token, self._options, self._protocol, self._local

    def __hash__(self) -> int:
        return hash(self.token)

    def __reduce__(self) -> tuple[Any, ...]:
        how: dict[str, Any] = {
            "options": self._options,
            "protocol": self._protocol,
            "url": self._url,
            "local": self._local,
        }
        if self.source is None:
            return partial(ReferenceStore, **how), (self._references,)
        # Tasks carry where the document is: it may be as large as all their results.
        return _recall, (self.token, self.source, how)

    # ---- reading

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        for batch in partition_all(_BATCH, keys):
            yield from self.get_partial_values([(key, (0, None)) for key in batch])

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        requests = [(check_key(key), *each) for key, each in key_ranges]
        values: list[Buffer | None] = [None] * len(requests)
        asked = defaultdict[str, list[tuple[int, KeyRange]]](list)
        bounded: dict[int, int] = {}
        entries = self._entries.load([key for key, _, _ in requests])
        for at, (key, start, length) in enumerate(requests):
            target = self._target(key, entries.get(key))
            if not isinstance(target, Target):
                values[at] = None if target is None else cut(target, start, length)
                continue
            first, count = _within(target, start, length)
            if count == 0:
                values[at] = b""
                continue
            if target.length is not None and count is not None:
                bounded[at] = count
            root, name = self._split(key, target.url)
            asked[root].append((at, (name, (first, count))))
        for root, ranges in asked.items():
            parts = self._store(root).get_partial_values([each for _, each in ranges])
            for (at, (name, _)), part in zip(ranges, parts, strict=True):
                is_short = part is not None and at in bounded and len(part) < bounded[at]
                if part is None or is_short:
                    raise StoreError(
                        "the object that a reference refers to is missing, or too short",
                        key=f"{self.url}/{requests[at][0]}",
                        found=f"{root}/{name}",
                    )
                values[at] = part
        return values

    def list_dir(self, prefix: str) -> Names:
        return self._entries.list_dir(check_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._entries.list_prefix(check_prefix(prefix))

    # ---- references

    def _target(self, key: str, reference: Any) -> bytes | Target | None:
        """Return what a reference is to: the value itself if it has it; None if there is none.

        Raises
        ------
        MetadataError
            If the reference is malformed.
        """
        match reference:
            case None | bytes():
                return reference
            case str(text) if (value := _inline(text)) is not None:
                return value
            case dict(document):
                return json.dumps(document).encode()
            case [str(url)]:
                return Target(self._filled(url), 0, None)
            case [str(url), int(start), int(length)] if start >= 0 and length >= 0:
                return Target(self._filled(url), start, length)
            case other:
                raise MetadataError(
                    "this reference is malformed",
                    key=f"{self.url}/{key}",
                    found=other,
                    expected="a text, [url] or [url, start, length]",
                )

    def _filled(self, url: str) -> str:
        return _TEMPLATE.sub(lambda name: self._entries.templates.get(name[1], name[0]), url)

    def _split(self, key: str, url: str) -> tuple[str, str]:
        """Return the bucket or server of a URL, and the key in it; "/" for a local path.

        Raises
        ------
        StoreError
            If the URL may not be read.
        """
        if "://" not in url and self._protocol not in (None, "file", "local"):
            url = f"{self._protocol}://{url}"
        scheme, found, rest = url.partition("://")
        place, _, name = rest.partition("/")
        if not found or scheme in ("file", "local"):
            if not self._local:
                raise StoreError(
                    "this reference is to a local file, which a document from an untrusted source "
                    "may abuse; set zarrdask.local-references to True if you trust this document",
                    key=f"{self.url}/{key}",
                    found=url,
                )
            return "/", os.path.abspath(path_of_url(rest if found else url)).lstrip("/")
        if scheme not in _SCHEMES or "::" in place:
            raise StoreError(
                "references with this scheme, or with a chain of schemes, are not followed",
                key=f"{self.url}/{key}",
                found=url,
                expected=f"one of {', '.join(sorted(_SCHEMES))}, file",
            )
        return f"{scheme}://{place}", name

    def _store(self, root: str) -> Store:
        if root not in self._stores:
            is_local = root == "/"
            store = LocalStore("/") if is_local else retrying(open_remote(root, self._options))
            self._stores[root] = store
        return self._stores[root]


def open_references(options: dict[str, Any]) -> Store | None:
    """Return the store for the options of fsspec's ``reference://``; None if fsspec opens them.

    It does if there are options, or a kind of document, that are not known here.
    """
    document = options.get("fo")
    how = {"options": options.get("remote_options"), "protocol": options.get("remote_protocol")}
    if not options.keys() <= _OPTIONS:
        return None
    if isinstance(document, Mapping):
        return ReferenceStore(document, **how)
    if not isinstance(document, str):
        return None
    protocol = options.get("target_protocol", "file")
    url = document if "://" in document or protocol == "file" else f"{protocol}://{document}"
    return _read((url, options.get("target_options")), {**how, "url": url})


def _read(source: tuple[str, dict[str, Any] | None], how: dict[str, Any]) -> ReferenceStore | None:
    """Return the references in a document, or in a directory; None if it is neither.

    Raises
    ------
    StoreError
        If the document can't be read.
    MetadataError
        If it is not valid.
    """
    url, options = source
    is_json = url.endswith(".json")
    if "://" in url and not url.startswith(("file://", "local://")):
        place, _, name = url.rpartition("/") if is_json else (url, "", DOCUMENT)
        directory = retrying(open_remote(place, options))
    else:
        path = os.path.abspath(path_of_url(url.rpartition("://")[2]))
        place, name = os.path.split(path) if is_json else (path, DOCUMENT)
        directory = LocalStore(place)
    data = directory.get(name)
    if data is None and not is_json:
        return None
    if data is None:
        raise StoreError("there is no reference document here", key=url)
    try:
        references = json.loads(data) if is_json else ParquetReferences(directory, data)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"the references are not JSON: {error}", key=url) from error
    store = ReferenceStore(references, **how)
    store.source = source
    return store


#: Stores that tasks in this process need, by what they are made of.
_OPEN: dict[str, ReferenceStore] = {}


def _recall(token: str, source: tuple[str, Any], how: dict[str, Any]) -> ReferenceStore:
    # Not by the digest alone: credentials are renewed, and only some may read local files.
    identity = repr((token, source, how))
    store = _OPEN.get(identity)
    if store is None:
        store = _read(source, how)
        if store is None or store.token != token:
            raise StoreError("the document of references was changed; open it again", key=source[0])
        if len(_OPEN) >= _MAX_OPEN:
            _OPEN.clear()
        _OPEN[identity] = store
    return store


def _parse(references: Mapping[str, Any]) -> _JsonReferences:
    """Return the references of a document."""
    if not isinstance(references, Mapping):
        raise _no_document("")
    text = json.dumps(references, sort_keys=True)
    digest = blake2b(text.encode(), digest_size=12).hexdigest()
    if "refs" not in references and "version" not in references:
        return _JsonReferences(references, {}, digest)
    if references.get("gen"):
        raise UnsupportedError(
            "references that are generated from a pattern are not supported", key="gen"
        )
    entries, templates = references.get("refs"), references.get("templates") or {}
    if not isinstance(entries, Mapping) or not isinstance(templates, Mapping):
        raise _no_document("refs")
    for name, text in templates.items():
        if not isinstance(text, str) or "{{" in text:
            raise UnsupportedError(
                "a template with expressions is not supported", key=f"templates.{name}", found=text
            )
    return _JsonReferences(entries, templates, digest)


def _no_document(key: str) -> MetadataError:
    return MetadataError("this is not a reference document", key=key, expected="a JSON object")


def _inline(text: str) -> bytes | None:
    """Return a value that is given in the document; None if it is malformed."""
    try:
        return b64decode(text[7:]) if text.startswith("base64:") else text.encode()
    except ValueError:
        return None


def _within(target: Target, start: int, length: int | None) -> tuple[int, int | None]:
    """Return the range of an object for a range of a value that is part of it."""
    if target.length is None:
        return start, length
    first = max(target.length + start, 0) if start < 0 else min(start, target.length)
    rest = target.length - first
    return target.start + first, rest if length is None else min(length, rest)
