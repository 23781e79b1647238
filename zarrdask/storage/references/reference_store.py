"""References, as kerchunk and VirtualiZarr write them: keys that are ranges of other files."""

import json
import os
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

from toolz import partition_all

from zarrdask import config
from zarrdask.errors import MetadataError, StoreError, UnsupportedError, without_secrets
from zarrdask.formats.byte_ranges import Buffer, KeyRange, cut
from zarrdask.formats.store_keys import Names, check_key, check_prefix, right_below
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.file_calls import path_of_url
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.partial_access import StoreWithPartialAccess
from zarrdask.storage.references.parquet_references import DOCUMENT, ParquetReferences
from zarrdask.storage.references.reference_targets import (
    Target,
    TargetRules,
    TargetStore,
    prefix_of_options,
)
from zarrdask.storage.remote.remote_urls import open_remote
from zarrdask.storage.remote.retry import retrying

#: Values that are requested together.
_BATCH = 256
#: Documents that a process keeps for its tasks.
_MAX_OPEN = 8
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
#: The options of fsspec's reference file system that are understood here, and ``remote_prefix``.
_OPTIONS = {
    *("fo", "target_options", "target_protocol"),
    *("remote_options", "remote_protocol", "remote_prefix"),
}
#: Its options that change how it works, but not what is read.
_IGNORED = {"asynchronous", "cache_size", "lazy", "max_block", "max_gap", "skip_instance_cache"}


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
        Options of fsspec for the objects below `prefix`. Other objects are opened without options.
    protocol : str, optional
        The protocol of URLs that have none; by default they are local paths.
    prefix : str, optional
        The URL that `options`, which may contain credentials, are for, such as
        ``https://data.example.org/`` or ``s3://bucket/``; ``s3://`` and ``gs://`` are all buckets
        of a server. By default all buckets if `protocol` is ``s3`` or ``gs``.
    url : str, optional
        The location of the document, for messages.
    local : bool, optional
        Whether references may be to local files; by default as in the setting
        ``zarrdask.local-references``.

    Raises
    ------
    MetadataError, UnsupportedError
        If the document is not valid, or generates references.
    StoreError
        If there are `options`, but no valid `prefix`.
    """

    # The stores of the objects retry.
    capabilities = Capabilities(concurrent=True, retries=True)

    def __init__(
        self,
        references: Mapping[str, Any] | ParquetReferences,
        *,
        options: dict[str, Any] | None = None,
        protocol: str | None = None,
        prefix: str | None = None,
        url: str | None = None,
        local: bool | None = None,
    ) -> None:
        self._references, self._options = references, options
        self._entries = (
            references if isinstance(references, ParquetReferences) else _parse(references)
        )
        self._url = url or f"reference:{self._entries.digest}"
        self._rules = TargetRules(
            protocol,
            prefix_of_options(prefix, protocol) if options else None,
            config.get("local-references") if local is None else local,
        )
        self._stores: dict[TargetStore, Store] = {}
        #: The URL of the document, and its options, by which another process reads it.
        self.source: tuple[str, dict[str, Any] | None] | None = None

    @property
    def url(self) -> str:
        return without_secrets(self._url)

    @property
    def identity(self) -> Identity:
        return Identity.at(self.url, f"{self._url}#{self._entries.digest}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceStore) and self._identity == other._identity

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.identity.token, self._options, self._rules

    def __hash__(self) -> int:
        return hash(self.identity.token)

    def __reduce__(self) -> tuple[Any, ...]:
        how: dict[str, Any] = {
            "options": self._options,
            "url": self._url,
            **self._rules._asdict(),
        }
        if self.source is None:
            return partial(ReferenceStore, **how), (self._references,)
        # Tasks carry the URL of the document, which may be as large as all their results.
        return _recall, (self.identity.token, self.source, how)

    # ---- reading

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        for batch in partition_all(_BATCH, keys):
            yield from self.get_partial_values([(key, (0, None)) for key in batch])

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        requests = [(check_key(key), *each) for key, each in key_ranges]
        values: list[Buffer | None] = [None] * len(requests)
        requested = defaultdict[TargetStore, list[tuple[int, KeyRange]]](list)
        bounded: dict[int, int] = {}
        entries = self._entries.load([key for key, _, _ in requests])
        for at, (key, start, length) in enumerate(requests):
            target = self._target(key, entries.get(key))
            if not isinstance(target, Target):
                values[at] = None if target is None else cut(target, start, length)
                continue
            first, count = target.within(start, length)
            if count == 0:
                values[at] = b""
                continue
            if target.length is not None and count is not None:
                bounded[at] = count
            server, name = self._rules.locate(target.url, f"{self.url}/{key}")
            requested[server].append((at, (name, (first, count))))
        for server, ranges in requested.items():
            parts = self._store(server).get_partial_values([each for _, each in ranges])
            for (at, (name, _)), part in zip(ranges, parts, strict=True):
                is_short = part is not None and at in bounded and len(part) < bounded[at]
                if part is None or is_short:
                    raise StoreError(
                        "the object that a reference refers to is missing, or too short",
                        key=f"{self.url}/{requests[at][0]}",
                        found=f"{server.root}/{name}",
                    )
                values[at] = part
        return values

    def list_dir(self, prefix: str) -> Names:
        return self._entries.list_dir(check_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._entries.list_prefix(check_prefix(prefix))

    # ---- references

    def _target(self, key: str, reference: Any) -> bytes | Target | None:
        """Return the target of a reference: the value if it is inline; None if missing.

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

    def _store(self, server: TargetStore) -> Store:
        if server not in self._stores:
            options = self._options if server.takes_options else None
            is_local = server.root == "/"
            store = LocalStore("/") if is_local else retrying(open_remote(server.root, options))
            self._stores[server] = store
        return self._stores[server]


def open_references(options: Mapping[str, Any]) -> ReferenceStore:
    """Return the store for the options of fsspec's ``reference://``.

    Raises
    ------
    StoreError
        If an option is not known here, or the document can't be read.
    MetadataError
        If the document is not valid.
    """
    for name in sorted(options.keys() - _OPTIONS - _IGNORED):
        raise StoreError(
            "this option is not supported for references",
            key="storage_options",
            found=name,
            expected=", ".join(sorted(_OPTIONS | _IGNORED)),
        )
    document = options.get("fo")
    how = {
        "options": options.get("remote_options"),
        "protocol": options.get("remote_protocol"),
        "prefix": options.get("remote_prefix"),
    }
    if isinstance(document, Mapping):
        return ReferenceStore(document, **how)
    if not isinstance(document, str | os.PathLike) or not os.fspath(document):
        raise StoreError(
            "there is no reference document",
            key="storage_options['fo']",
            found=document,
            expected="a URL, a path or a dict",
        )
    url, protocol = os.fsdecode(document), options.get("target_protocol") or "file"
    url = url if "://" in url or protocol == "file" else f"{protocol}://{url}"
    if "://" not in url or url.startswith(("file://", "local://")):
        # Tasks carry the URL of the document to workers, which may have other working directories.
        url = os.path.abspath(path_of_url(url.rpartition("://")[2]))
    return _read((url, options.get("target_options")), {**how, "url": url})


def open_url(url: str, storage_options: Mapping[str, Any] | None) -> ReferenceStore:
    """Return the store for ``reference://``, or for ``reference::URL``.

    The options of a chain may be by protocol, as for fsspec.
    """
    document, options = url.partition("::")[2], {**(storage_options or {})}
    if not document:
        return open_references(options)
    protocol = document.partition("://")[0] if "://" in document else "file"
    target = options.pop(protocol, None)
    options |= options.pop("reference", {})
    return open_references({"target_options": target, **options, "fo": document})


def _read(source: tuple[str, dict[str, Any] | None], how: dict[str, Any]) -> ReferenceStore:
    """Return the references in a document, or in a directory of Parquet files.

    Raises
    ------
    StoreError
        If the document can't be read.
    MetadataError
        If it is not valid.
    """
    url, options = source
    open_at: Callable[[str], Store] = LocalStore
    if "://" in url:
        path, mark, query = url.partition("?")
        folder, _, name = path.rstrip("/").rpartition("/")
        name += mark + query
        open_at = lambda at: retrying(open_remote(at, options))  # noqa: E731
    else:
        folder, name = os.path.split(url)
    is_file = "?" in name or name.endswith(".json")
    directory = open_at(f"{folder}/{name}")
    references: Any
    if not is_file and (data := directory.get(DOCUMENT)) is not None:
        references = ParquetReferences(directory, bytes(data))
    elif (data := open_at(folder).get(name)) is not None:
        try:
            references = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            raise MetadataError(f"the references are not JSON: {error}", key=url) from error
    else:
        raise StoreError("there is no reference document here", key=url)
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
        if store.identity.token != token:
            raise StoreError("the document of references was changed; open it again", key=source[0])
        if len(_OPEN) >= _MAX_OPEN:
            _OPEN.clear()
        _OPEN[identity] = store
    return store


def _parse(references: Mapping[str, Any]) -> _JsonReferences:
    """Return the references of a document."""
    if not isinstance(references, Mapping):
        raise _no_document("")
    try:
        text = json.dumps(references, sort_keys=True)
    except (ValueError, TypeError, RecursionError) as error:
        raise _no_document("", str(error)) from error
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


def _no_document(key: str, found: str | None = None) -> MetadataError:
    message = "this is not a reference document"
    return MetadataError(message, key=key, found=found, expected="a JSON object")


def _inline(text: str) -> bytes | None:
    """Return a value that is given in the document; None if it is malformed."""
    try:
        return b64decode(text[7:]) if text.startswith("base64:") else text.encode()
    except ValueError:
        return None
