"""Remote values that are cached on the local disk, and requested again only if they have changed.

Each entry of the cache is the answer to a request: a whole value, or a range of one. Each use sends
a conditional request (``If-None-Match``), which the server answers without data if the value has
the cached version. Offline, nothing is requested.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NoReturn

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Tag
from zarrdask.runtime import measuring
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.cache.cache_directory import CacheDirectory, Entry
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.request import MISSING, NOT_MET, Answer, Form, Meaning, Request, Send

_LOG = logging.getLogger(__name__)

#: Options with secrets, which may be renewed, and options that do not affect what is read.
_SECRETS = re.compile(
    r"secret|token|password|credential|sas|_key$|config_kwargs|timeout|retr", re.IGNORECASE
)
#: The names by which a user passes the key of an account.
_ACCESS_KEYS = ("key", "access_key_id")
#: Variables that choose a server or an account where options don't.
_VARIABLES = (
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_PROFILE"),
    *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING", "STORAGE_EMULATOR_HOST"),
)
#: The errors of a full disk.
_FULL = (ENOSPC, EDQUOT)
#: Capabilities that a store without requests lacks.
_CHANGES = frozenset({"writable", "listable", "create_exclusive", "compare_and_swap"})


class DiskCachedStore(PolicyStore):
    """A store whose values are cached in a directory.

    Parameters
    ----------
    inner : Store
        A store with the capability `versions`.
    directory : CacheDirectory
        The cache.
    offline : bool, optional
        Whether nothing is requested from the inner store: values are as they were last seen.
    """

    def __init__(self, inner: Store, directory: CacheDirectory, *, offline: bool = False) -> None:
        super().__init__(OfflineStore(inner) if offline else inner)
        #: The store without the cache, from which nothing is requested offline.
        self.source = inner
        self.directory = directory
        self.offline = offline

    def __reduce__(self) -> tuple[Any, ...]:
        return _cached_here, (self.source, self.directory, self.offline)

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return _keeping(super().capabilities)

    def above(self) -> Store | None:
        above = self.source.above()
        if above is None:
            return None
        return DiskCachedStore(above, self.directory, offline=self.offline)

    def policy(self, request: Request, send: Send) -> Answer:
        """Return the answer to a read from the cache, if the server says that it has not changed.

        A range of no bytes is none that servers send, and neither a tag for a write nor a version
        of a value is cached.
        """
        if request.verb != "GET" or request.length == 0:
            return send(request)
        if request.form is Form.TAGGED or request.version is not None:
            return send(request)
        name = self._name(request.key, request.start, request.length)
        if request.if_match is not None:
            return self._pinned(name, request, send)
        # With a tag, the caller has a value, so that the cached one is hardly ever needed. After a
        # fallback from obstore to fsspec, as in a forked process, there may be no versions.
        tag = request.unless
        is_usable = self.offline or (tag is None and self.inner.capabilities.versions)
        entry = self.directory.get(name) if is_usable else None
        if self.offline and entry is not None:
            return _unchanged(tag) if tag is not None and tag == entry.tag else _answer(entry)
        cached = tag if entry is None or entry.value is None else entry.tag
        found = send(request._replace(unless=cached, form=Form.VERSION))
        is_unchanged = found.meaning is Meaning.UNCHANGED
        if is_unchanged and entry is not None:
            _count_hit()
            return _answer(entry)
        is_known_missing = entry is not None and entry.value is None
        if not is_unchanged and not (found.value is None and is_known_missing):
            self._put(name, found)
        return found

    def _pinned(self, name: bytes, request: Request, send: Send) -> Answer:
        """Return a part of the version of a value that has a tag."""
        entry = self.directory.get(name)
        if entry is None or entry.value is None or entry.tag != request.if_match:
            # Offline, this raises an error: parts of several versions do not make a value.
            part = send(request)
            if part.value is not None:
                self._put(name, part)
            return part
        answer = _unchanged(entry.tag)
        if not self.offline:
            pinned = request._replace(if_match=None, unless=entry.tag, form=Form.VERSION)
            answer = send(pinned)
        if answer.meaning is Meaning.UNCHANGED:
            _count_hit()
            return _answer(entry)
        self._put(name, answer)
        return NOT_MET

    def _put(self, name: bytes, found: Answer) -> None:
        if isinstance(found.tag, str) or found.value is None:
            self.directory.put(name, Entry(found.value, found.size or 0, found.tag or ""))

    def _name(self, key: str, start: int, length: int | None) -> bytes:
        """Return the name of an entry: the same for all URLs that lead to a value."""
        place = f"{self._service}\n{self.url}/{key}\n{start} {length}"
        return blake2b(place.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @cached_property
    def _service(self) -> str:
        return _service(self.source.identity.access)


class OfflineStore(PolicyStore):
    """A store that sends no requests: each operation raises an error."""

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return without(super().capabilities, _CHANGES)

    def policy(self, request: Request, send: Send) -> NoReturn:
        """Refuse a request."""
        raise StoreError(
            "this is not in the cache, and zarrdask.cache-offline allows no requests",
            key=f"{self.url}/{request.key}" if request.key else self.url,
        )


def cached_as_set(store: Store, *, offline: bool) -> Store:
    """Return a store that is cached in the directory of the settings, if its server sends ETags.

    Raises
    ------
    StoreError
        If the directory can't be used, except that the disk is full, or is needed to work offline
        and not set.
    """
    path = config.get("cache-directory")
    if not path:
        raise StoreError(
            "zarrdask.cache-offline allows no requests, and no cache is set to read from; set "
            "zarrdask.cache-directory",
            key=store.url,
        )
    if not store.capabilities.versions:
        _LOG.warning("%s sends no ETags, so its values are not cached", store.url)
        return OfflineStore(store) if offline else store
    try:
        directory = CacheDirectory.below(os.path.expanduser(path), config.get("cache-bytes"))
    except StoreError as error:
        if getattr(error.__cause__, "errno", None) not in _FULL:
            raise
        return _uncached(store, error, offline=offline)
    return DiskCachedStore(store, directory, offline=offline)


def _cached_here(inner: Store, directory: CacheDirectory, offline: bool) -> Store:  # noqa: FBT001
    """Return an unpickled store, which may be on another machine, or of another user."""
    try:
        return DiskCachedStore(inner, directory.here(), offline=offline)
    except StoreError as error:
        return _uncached(inner, error, offline=offline)


def _uncached(store: Store, error: StoreError, *, offline: bool) -> Store:
    """Return a store without a cache, where the directory can't be used."""
    _LOG.warning("values of %s are not cached in this process: %s", store.url, error)
    return OfflineStore(store) if offline else store


@lru_cache(maxsize=64)
def _keeping(capabilities: Capabilities) -> Capabilities:
    return replace(capabilities, keeps_values=True)


def _count_hit() -> None:
    if measuring.IS_ACTIVE:
        THIS_THREAD.counts.count("cache_hits")


def _answer(entry: Entry) -> Answer:
    return MISSING if entry.value is None else Answer(*entry)


def _unchanged(tag: Tag) -> Answer:
    return Answer(tag=tag, meaning=Meaning.UNCHANGED)


def _service(access: Mapping[str, Any]) -> str:
    """Return a text that is different for different servers and accounts, without secrets.

    The access key stands for an account, unless it is a temporary one.
    """
    is_temporary = any(access.get(name) for name in ("token", "session_token"))
    keys = [access.get(name) for name in _ACCESS_KEYS if not is_temporary]
    options = _plain({name: each for name, each in access.items() if name not in _ACCESS_KEYS})
    variables = {name: os.environ.get(name) for name in _VARIABLES}
    return repr((options, keys, variables))


def _plain(value: Any) -> Any:
    """Return options without secrets and without objects, which are other ones in each process."""
    if isinstance(value, Mapping):
        members = {str(name): _plain(each) for name, each in value.items()}
        return sorted((n, each) for n, each in members.items() if not _SECRETS.search(n))
    return value if isinstance(value, str | int | float | bool | None) else None
