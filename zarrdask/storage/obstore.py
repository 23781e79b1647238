"""Object stores by way of obstore: S3, Google Cloud Storage, Azure, HTTP."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError

from zarrdask.errors import StoreError, without_secrets
from zarrdask.storage.base import Store
from zarrdask.storage.byte_ranges import Buffer, Part, StoredObject, Tag, Version, cut, strong_etag
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.failures import Meaning, meaning_of
from zarrdask.storage.in_flight import window
from zarrdask.storage.keys import Names, check_key, check_prefix
from zarrdask.storage.memory import LIVE, recall
from zarrdask.storage.obstore_errors import AnswerError, EncodedError, cause, message
from zarrdask.storage.obstore_listing import PAGE, list_entries, lists_parts
from zarrdask.storage.obstore_objects import (
    ERASE_MANY,
    REPEATED,
    is_usable,
    kind_of,
    not_usable,
    pickled,
    root_url,
    settings_of,
    unsupported,
)
from zarrdask.storage.refusals import no_bucket, not_listable, not_supported, not_writable

T = TypeVar("T")

#: Bytes: larger values are uploaded in parts of this size, so that none of the requests takes
#: longer than the time limit of a request. They appear at once all the same.
UPLOAD_PART_BYTES = 2**26
#: What obstore raises: errors of its own, and of these built-in ones.
_ERRORS = (BaseError, OSError, ValueError, NotImplementedError)
_ABSENT = (Meaning.MISSING, Meaning.NO_BUCKET)


class ObstoreStore(Store):
    """Values in an object store that obstore knows.

    Requests wait in the threads of `zarrdask.storage.in_flight`, outside of Python's lock and
    without an event loop. Objects of users repeat requests as their ``retry_config`` says; what
    they have repeated is not repeated here once more.

    Parameters
    ----------
    store : obstore.store.ObjectStore
        An ``S3Store``, ``GCSStore``, ``AzureStore``, ``HTTPStore``, ``LocalStore`` or
        ``MemoryStore``.
    prefix : str
        What all keys are below, in addition to a prefix of the object itself.
    """

    # Parts of a value are not read by obstore's `get_ranges`: it keeps up to ten requests in flight
    # of its own, beyond the limit of the process, and fails as a whole where one range lies behind
    # the value.
    capabilities = Capabilities(
        concurrent=True, create_exclusive=True, compare_and_swap=True, etags=True, versions=True
    )

    _opened_by = "obstore"

    def __init__(self, store: Any, prefix: str = "") -> None:
        self.inner = store
        self.prefix = prefix.strip("/")
        self._kind = kind_of(store)
        self._name = uuid4().hex
        retries = getattr(store, "retry_config", None) or {}
        #: Whether obstore itself repeats requests that failed.
        self._repeats = retries.get("max_retries") != 0
        self.capabilities = without(self.capabilities, unsupported(store))
        if not self.capabilities.shared:
            LIVE[self._name] = self

    # ---- what it is

    @property
    def url(self) -> str:
        return without_secrets(self._real_url)

    @property
    def _real_url(self) -> str:
        inner = getattr(self.inner, "prefix", None)
        parts = [root_url(self.inner), str(inner or "").strip("/"), self.prefix]
        return "/".join(part for part in parts if part)

    def _above(self) -> "ObstoreStore | None":
        directory = self.prefix.rpartition("/")[0]
        has_parent = self.prefix and self.capabilities.shared
        return ObstoreStore(self.inner, directory) if has_parent else None

    @property
    def _token(self) -> str:
        settings = sorted(settings_of(self.inner).items())
        return f"{self._real_url}#{blake2b(repr(settings).encode(), digest_size=8).hexdigest()}"

    @property
    def _access(self) -> Mapping[str, Any]:
        client = getattr(self.inner, "client_options", None) or {}
        return {**settings_of(self.inner), "headers": client.get("default_headers")}

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

    # ---- reading

    def get(self, key: str) -> bytes | None:
        value = self._get(key)
        return None if value is None else bytes(value)

    def _get(self, key: str) -> memoryview | None:
        try:
            return self._decoded(obstore.get(self.inner, self.path(key)))
        except _ERRORS as error:
            self._check_absent(key, error)
            return None

    def _decoded(self, answer: Any) -> memoryview:
        """Return the body of an answer, which no HTTP server may have compressed for the way."""
        if self._kind == "HTTPStore":
            encoding = answer.attributes.get("Content-Encoding", "identity")
            if encoding != "identity":
                raise EncodedError(f"the server encoded the body: {encoding}")
        return memoryview(answer.bytes())

    def _asked(self, key: str, ask: Callable[[str], T]) -> T | None:
        """Return the answer to a request for the path of a key, or None if there is no such key."""
        try:
            return ask(self.path(key))
        except _ERRORS as error:
            self._check_absent(key, error)
            return None

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        if start == 0 and length is None:
            return self._get(key)
        try:
            return self._get_part(key, start, length)
        except _ERRORS as error:
            # Object stores refuse a range that lies behind the end of a value, or is empty, and
            # Azure one that is counted from the end. Which it is, the size of the value tells.
            return self._get_unusual_part(key, start, length, error)

    def _get_part(self, key: str, start: int, length: int | None) -> memoryview:
        path = self.path(key)
        if start >= 0 and length is not None:
            part = obstore.get_range(self.inner, path, start=start, length=length)
            return memoryview(part)
        value = obstore.get(self.inner, path, options={"range": _range(start, None)}).bytes()
        return memoryview(value)[:length]

    def _get_unusual_part(
        self, key: str, start: int, length: int | None, error: Exception
    ) -> Buffer | None:
        meaning = self._meaning(error)
        if meaning in _ABSENT:
            self._check_absent(key, error)
            return None
        cause = self._cause(error)
        if isinstance(cause, AnswerError):
            raise self._failed(key, error) from cause
        if meaning is Meaning.UNSUPPORTED and start >= 0:
            value = self._get(key)  # the server sends whole values only
            return None if value is None else cut(value, start, length)
        size = self._head(key)
        if size is None:
            return None
        first = max(size + start, 0) if start < 0 else start
        if first >= size or length == 0:
            return b""
        if meaning is Meaning.UNSUPPORTED:
            return self.get_range(key, first, size - first if length is None else length)
        raise self._failed(key, error) from cause

    def _head(self, key: str) -> int | None:
        return self._asked(key, lambda path: int(obstore.head(self.inner, path)["size"]))

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        options: dict[str, Any] = {"range": _range(start, length)}
        if tag is not None:
            options["if_match"] = tag
        try:
            answer = obstore.get(self.inner, self.path(key), options=options)
            meta = answer.meta  # a new dictionary each time
            part = Part(memoryview(answer.bytes()), meta["size"], strong_etag(meta["e_tag"]))
        except _ERRORS as error:
            meaning = self._meaning(error)
            if meaning is Meaning.NOT_MET:
                return None
            is_refused = meaning is Meaning.UNSUPPORTED
            # Azure counts no range from the end.
            size = self._head(key) if is_refused and start < 0 else None
            if size:
                end = self.get_part(key, max(size + start, 0), length, tag)
                if end is None or end.size == size:
                    return end
            # A server that knows no ranges, or an empty value, has no parts.
            if not is_refused and meaning is not Meaning.BEHIND:
                self._check_absent(key, error)
                return None
            value = self._get(key)
            if value is None:
                return None
            part = Part(value, len(value), None)
        # Not every server knows the condition.
        return part if tag in (None, part.tag) else None

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        options: dict[str, Any] = {}
        if tag is not None:
            options["if_none_match"] = tag
        if start or length is not None:
            options["range"] = _range(start, length)
        try:
            answer = obstore.get(self.inner, self.path(key), options=options)
            meta = answer.meta
            part = self._decoded(answer)[:length]  # a range from the end is all of the end
            return Version(part, meta["size"], strong_etag(meta["e_tag"]))
        except _ERRORS as error:
            meaning = self._meaning(error)
            if meaning is Meaning.UNCHANGED:
                return Version(tag=tag)
            if meaning in _ABSENT or (start == 0 and length is None):
                self._check_absent(key, error)
                return Version()
            is_suffix = start < 0 and meaning is Meaning.UNSUPPORTED
            # Azure counts no range from the end.
            size = self._head(key) if is_suffix else None
            if size:
                end = self.get_if_changed(key, tag, max(size + start, 0), length)
                if end.value is None or end.size == size:
                    return end
        # The server knows no ranges, or refuses this one.
        whole = self.get_if_changed(key, tag)
        value = None if whole.value is None else cut(whole.value, start, length)
        return whole._replace(value=value)

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        body = self._body(value)
        is_large = len(body) > UPLOAD_PART_BYTES
        how = {"use_multipart": is_large, "chunk_size": UPLOAD_PART_BYTES}
        try:
            obstore.put(self.inner, self.path(key), body, **how)
        except _ERRORS as error:
            raise self._failed(key, error) from self._cause(error)

    def create(self, key: str, value: Buffer) -> bool:
        self._check_writable()
        if not self.capabilities.create_exclusive:
            return super().create(key, value)
        try:
            body = self._body(value)
            obstore.put(self.inner, self.path(key), body, mode="create", use_multipart=False)
        except _ERRORS as error:
            meaning = self._meaning(error)
            if meaning is Meaning.NOT_MET:
                return self._is_stored(key, value)
            if meaning is Meaning.UNSUPPORTED:
                self._note_unconditional()
                return super().create(key, value)
            raise self._failed(key, error) from self._cause(error)
        return True

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        def ask(path: str) -> tuple[Buffer, Tag]:
            answer = obstore.get(self.inner, path)
            tag = {name: answer.meta[name] for name in ("e_tag", "version")}
            tag = {name: value for name, value in tag.items() if value is not None}
            return self._decoded(answer), tag

        return self._asked(key, ask) or (None, None)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        self._check_writable()
        # Not `create`, which may look the key up first: a value that another stored would be lost.
        mode = "create" if tag is None else tag
        try:
            obstore.put(
                self.inner, self.path(key), self._body(value), mode=mode, use_multipart=False
            )
        except _ERRORS as error:
            meaning = self._meaning(error)
            if meaning in (Meaning.NOT_MET, Meaning.MISSING):
                return self._is_stored(key, value)
            if meaning is Meaning.UNSUPPORTED:
                self._note_unconditional()
                raise not_supported(self.url, "changed on a condition") from self._cause(error)
            raise self._failed(key, error) from self._cause(error)
        return True

    def _is_stored(self, key: str, value: Buffer) -> bool:
        """Whether a conditional write was done, though obstore's last request was refused.

        That is so if the answer to the first one was lost: obstore repeats it.
        """
        is_possible = self._repeats and self._kind in REPEATED
        return is_possible and self.get(key) == bytes(value)

    def _note_unconditional(self) -> None:
        """Request no conditional write again of a server, or of obstore, that has none."""
        conditional = frozenset({"create_exclusive", "compare_and_swap"})
        self.capabilities = without(self.capabilities, conditional)

    def _body(self, value: Buffer) -> bytes | memoryview:
        # obstore's memory keeps what it is given, not a copy; others send it before they return.
        return memoryview(value).cast("B") if self.capabilities.shared else bytes(value)

    def erase(self, key: str) -> None:
        self._check_writable()
        self._asked(key, lambda path: obstore.delete(self.inner, path))

    def erase_values(self, keys: Iterable[str]) -> None:
        checked = [check_key(key) for key in keys]
        if self._kind not in ERASE_MANY or len(checked) < 2:
            super().erase_values(checked)
            return
        pages = [checked[at : at + PAGE] for at in range(0, len(checked), PAGE)]
        for _ in window(self._erase_page, pages):
            pass

    def _erase_page(self, keys: Sequence[str]) -> None:
        try:
            obstore.delete(self.inner, [self.path(key) for key in keys])
        except FileNotFoundError:
            # A missing key may have kept others from being erased.
            for key in keys:
                self.erase(key)
        except _ERRORS as error:
            raise self._failed(keys[0], error) from self._cause(error)

    def _check_writable(self) -> None:
        if not self.capabilities.writable:
            raise not_writable(self.url)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        directory = self.path(check_prefix(prefix)).rstrip("/")
        listed = self._listed(prefix, partial(obstore.list_with_delimiter, self.inner, directory))
        keys = [_name(entry["path"]) for entry in listed["objects"]] if listed else []
        prefixes = [_name(path) for path in listed["common_prefixes"]] if listed else []
        return sorted(keys), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return iter(sorted(key for key, _ in self._list_sizes(prefix)))

    @property
    def _lists_parts(self) -> bool:  # type: ignore[override]
        return lists_parts(self.inner)

    def _list_sizes(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[tuple[str, int]]:
        skipped = len(self.path(""))
        listed = self._entries(prefix, after, until, ("path", "size"))
        return ((path[skipped:], size) for path, size in listed)

    def _list_objects(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[StoredObject]:
        if not self.capabilities.shared:
            return super()._list_objects(prefix, after, until)
        skipped, root = len(self.path("")), quote(self._real_url, safe=":/") + "/"
        members = "path", "size", "last_modified", "e_tag"
        return (
            StoredObject(path[skipped:], root, size, modified.timestamp(), strong_etag(etag))
            for path, size, modified, etag in self._entries(prefix, after, until, members)
        )

    def _entries(
        self, prefix: str, after: str, until: str | None, members: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        """Return members of the entries of a listing, beginning with the path."""
        directory = self.path(check_prefix(prefix)).rstrip("/")
        first, last = (key and self.path(key) for key in (after, until))
        ask = partial(list_entries, self.inner, directory, first, last, members)
        return self._listed(prefix, ask) or ()

    def _listed(self, prefix: str, ask: Any) -> Any:
        """Return what a listing returns, or None where there is nothing below a prefix."""
        try:
            return ask()
        except _ERRORS as error:
            if self._kind == "HTTPStore":
                # Servers that don't know WebDAV answer in many ways.
                raise not_listable(self.url, StoreError(message(error))) from self._cause(error)
            self._check_absent(prefix, error)
            return None

    # ---- errors

    def _meaning(self, error: Exception) -> Meaning | None:
        if isinstance(error, FileNotFoundError):
            # Of sparse arrays that is the answer to most requests: no dump is searched.
            return Meaning.NO_BUCKET if "NoSuchBucket" in str(error) else Meaning.MISSING
        # Of a key below a key, obstore's LocalStore raises an error of no particular class.
        if self._kind == "LocalStore" and "kind: NotADirectory" in str(error):
            return Meaning.MISSING
        # What else the server answered is in the text of the error, which `cause` parses.
        return meaning_of(error) or meaning_of(self._cause(error))

    def _check_absent(self, key: str, error: Exception) -> None:
        """Check that an error says that there is no such key.

        Raises
        ------
        StoreError
            If it says something else, or that the whole bucket is not there.
        """
        meaning = self._meaning(error)
        if meaning not in _ABSENT:
            raise self._failed(key, error) from self._cause(error)
        if meaning is Meaning.NO_BUCKET:
            raise no_bucket(settings_of(self.inner).get("bucket"), self.url) from self._cause(error)

    def _failed(self, key: str, error: Exception) -> StoreError:
        return StoreError(message(error), key=f"{self.url}/{key}")

    def _cause(self, error: Exception) -> Exception:
        return cause(error, repeated=self._repeats)

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
    """Return a range for obstore; one from the end of a value is all of its end."""
    if start < 0:
        return {"suffix": -start}
    return {"offset": start} if length is None else (start, start + length)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
