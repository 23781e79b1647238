"""Stores of obstore: S3, Google Cloud Storage, Azure, HTTP."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.formats.store_keys import Names, check_key
from zarrdask.runtime.in_flight import window
from zarrdask.storage.capabilities import without
from zarrdask.storage.identity import Identity
from zarrdask.storage.memory import LIVE, recall
from zarrdask.storage.remote.body_limit import body_limit, check_body
from zarrdask.storage.remote.client_store import PAGE, ClientStore, Described, Fetched
from zarrdask.storage.remote.failures import meaning_of
from zarrdask.storage.remote.obstore.obstore_errors import EncodedError, cause, message
from zarrdask.storage.remote.obstore.obstore_listing import list_entries, lists_parts
from zarrdask.storage.remote.obstore.obstore_objects import (
    ERASE_MANY,
    endpoint_of,
    is_usable,
    kind_of,
    not_usable,
    pickled,
    root_url,
    settings_of,
    unsupported,
)
from zarrdask.storage.request import Meaning, Request

#: Bytes: larger values are uploaded in parts of this size, so that none of the requests takes
#: longer than the time limit of a request. They appear at once all the same.
UPLOAD_PART_BYTES = 2**26


class ObstoreStore(ClientStore):
    """Values in an object store that obstore supports.

    Requests wait in the threads of `in_flight`, outside of Python's lock and
    without an event loop. An object that a user passes repeats failed requests according to its
    ``retry_config``; they are not repeated again here.

    Parameters
    ----------
    store : obstore.store.ObjectStore
        An ``S3Store``, ``GCSStore``, ``AzureStore``, ``HTTPStore``, ``LocalStore`` or
        ``MemoryStore``.
    prefix : str
        A prefix of all keys, in addition to the object's own.
    """

    # Parts of a value are not read by obstore's `get_ranges`: it keeps up to ten requests in flight
    # of its own, beyond the limit of the process, and fails as a whole where one range lies behind
    # the value.

    #: The errors that obstore raises: its own, and these built-in ones.
    _errors = (BaseError, OSError, ValueError, NotImplementedError)

    def __init__(self, store: Any, prefix: str = "") -> None:
        self.inner = store
        self.prefix = prefix.strip("/")
        self._kind = kind_of(store)
        self._has_suffixes = self._kind != "AzureStore"
        self._name = uuid4().hex
        retries = getattr(store, "retry_config", None) or {}
        absent = unsupported(store)
        if retries.get("max_retries") == 0:
            absent |= {"repeats"}
        has = without(self.capabilities, absent)
        self.capabilities = replace(has, lists_parts=True) if lists_parts(store) else has
        if not self.capabilities.shared:
            LIVE[self._name] = self

    @property
    def _is_anonymous(self) -> bool:
        config = getattr(self.inner, "config", None) or {}
        return str(config.get("skip_signature", "")).lower() == "true"

    # ---- identity

    @property
    def _real_url(self) -> str:
        inner = getattr(self.inner, "prefix", None)
        parts = [root_url(self.inner), str(inner or "").strip("/"), self.prefix]
        return "/".join(part for part in parts if part)

    def above(self) -> "ObstoreStore | None":
        directory = self.prefix.rpartition("/")[0]
        has_parent = self.prefix and self.capabilities.shared
        return ObstoreStore(self.inner, directory) if has_parent else None

    @cached_property
    def identity(self) -> Identity:
        settings = settings_of(self.inner)
        text = repr(sorted(settings.items()))
        client = getattr(self.inner, "client_options", None) or {}
        return Identity(
            uri=self.url,
            token=f"{self._real_url}#{blake2b(text.encode(), digest_size=8).hexdigest()}",
            access={**settings, "headers": client.get("default_headers")},
            endpoint=endpoint_of(self.inner),
            opened_by="obstore",
        )

    def path(self, key: str) -> str:
        """Return the path of a key in obstore's object.

        Raises
        ------
        StoreError
            If this process was forked from one that used obstore.
        """
        if not is_usable():
            raise not_usable(self.url)
        return f"{self.prefix}/{key}" if self.prefix else key

    # ---- requests

    def _fetch(self, path: str, request: Request) -> Fetched:
        is_whole = request.is_whole
        options: dict[str, Any] = {}
        if not is_whole:
            options["range"] = _range(request.start, request.length)
        if request.if_match is not None:
            options["if_match"] = request.if_match
        if request.unless is not None:
            options["if_none_match"] = request.unless
        if request.version_id is not None:
            options["version"] = request.version_id
        answer = obstore.get(self.inner, path, options=options or None)
        if self._kind == "HTTPStore":
            encoding = answer.attributes.get("Content-Encoding", "identity")
            if encoding != "identity":
                raise EncodedError(f"the server encoded the body: {encoding}")
        first, end = answer.range
        check_body(end - first, body_limit())
        value = memoryview(answer.bytes())
        return Fetched(value, partial(_described_in, answer), is_whole=is_whole)

    def _describe(self, path: str) -> Described | None:
        # Not every HTTP server answers such a request.
        return None if self._kind == "HTTPStore" else _described(obstore.head(self.inner, path))

    def _put(self, path: str, value: Buffer) -> None:
        body = self._body(value)
        is_large = len(body) > UPLOAD_PART_BYTES
        options = {"use_multipart": is_large, "chunk_size": UPLOAD_PART_BYTES}
        obstore.put(self.inner, path, body, **options)

    def _put_if(self, path: str, value: Buffer, condition: Tag | None) -> None:
        # obstore takes no tags that are None, which it returns itself.
        tags = {name: tag for name, tag in (condition or {}).items() if tag is not None}
        mode = tags or "create"
        obstore.put(self.inner, path, self._body(value), mode=mode, use_multipart=False)

    def _body(self, value: Buffer) -> bytes | memoryview:
        # obstore's memory keeps what it is given, not a copy; others send it before they return.
        return memoryview(value).cast("B") if self.capabilities.shared else bytes(value)

    def _delete(self, path: str) -> None:
        obstore.delete(self.inner, path)

    def erase_values(self, keys: Iterable[str]) -> None:
        checked = [check_key(key) for key in keys]
        if self._kind not in ERASE_MANY or len(checked) < 2:
            super().erase_values(checked)
            return
        pages = [checked[at : at + PAGE] for at in range(0, len(checked), PAGE)]
        for _ in window(self._erase_page, pages):
            pass

    def _erase_page(self, keys: Sequence[str]) -> None:
        paths = [self.path(key) for key in keys]
        try:
            self._sent("DELETE", partial(obstore.delete, self.inner, paths))
        except FileNotFoundError:
            # A missing key may have kept others from being erased.
            for key in keys:
                self.erase(key)
        except self._errors as error:
            raise self._failed(keys[0], error) from self._cause(error)

    # ---- listings

    def _list_names(self, directory: str) -> Names:
        listed = obstore.list_with_delimiter(self.inner, directory)
        keys = [_name(entry["path"]) for entry in listed["objects"]]
        return keys, [_name(path) for path in listed["common_prefixes"]]

    def _list_entries(
        self, directory: str, after: str, until: str | None, members: tuple[str, ...]
    ) -> Iterable[tuple[Any, ...]]:
        return list_entries(self.inner, directory.rstrip("/"), after, until, members)

    def _shows_no_listing(self, error: Exception) -> bool:
        # Servers without WebDAV answer in many ways.
        return self._kind == "HTTPStore"

    # ---- errors

    def _meaning(self, error: Exception) -> Meaning | None:
        if isinstance(error, FileNotFoundError):
            # Most requests for sparse arrays get this answer, so its text is not searched.
            return Meaning.NO_BUCKET if "NoSuchBucket" in str(error) else Meaning.MISSING
        # For a key below a key, obstore's LocalStore raises an error of no particular class.
        if self._kind == "LocalStore" and "kind: NotADirectory" in str(error):
            return Meaning.MISSING
        # Other answers of the server are in the text of the error, which `cause` parses.
        return meaning_of(error) or meaning_of(self._cause(error))

    def _failed(self, key: str, error: Exception) -> StoreError:
        return StoreError(message(error), key=f"{self.url}/{key}")

    def _cause(self, error: Exception) -> Exception:
        return cause(error, repeated=self.capabilities.repeats)

    @property
    def _bucket(self) -> str | None:
        return settings_of(self.inner).get("bucket")

    # ---- in other processes

    def __reduce__(self) -> tuple[Any, ...]:
        if self.capabilities.shared:
            return pickled(type(self), self.inner, self.prefix)
        return recall, (self._name, os.getpid())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObstoreStore):
            return NotImplemented
        return bool(self.prefix == other.prefix and self.inner == other.inner)

    def __hash__(self) -> int:
        # Objects of obstore can be compared, but have no hash.
        return hash((self._kind, self.url))


def _range(start: int, length: int | None) -> Any:
    """Return a range for obstore; one from the end of a value extends up to the end."""
    if start < 0:
        return {"suffix": -start}
    return {"offset": start} if length is None else (start, start + length)


def _described_in(answer: Any) -> Described:
    return _described(answer.meta)


def _described(meta: Any) -> Described:
    etag, version = meta["e_tag"], meta["version"]
    condition = {"e_tag": etag, "version": version}
    return Described(meta["size"], etag, condition, version, meta["last_modified"])


def _name(path: str) -> str:
    return path.rpartition("/")[2]
