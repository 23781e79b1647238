"""Stores opened by obstore that fall back to fsspec for requests that obstore does not support."""

import logging
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.identity import Identity
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.remote.obstore.obstore_errors import AnswerError
from zarrdask.storage.remote.obstore.obstore_objects import is_forked, not_usable
from zarrdask.storage.request import Answer, Request, Send, ask

_LOG = logging.getLogger(__name__)

#: The capabilities that the store of fsspec lacks when it lists for the store of obstore.
_PARTS = frozenset({"lists_parts"})


class RemoteStore(PolicyStore):
    """A store opened by obstore that falls back to fsspec where obstore does not support a request.

    That is in a process that was forked after obstore was used, for servers whose answers obstore
    does not understand, and for listings of HTTP servers without WebDAV.

    Parameters
    ----------
    url : str
        The URL.
    storage_options : dict, optional
        The options of the user, for fsspec.
    inner : ObstoreStore
        The store that obstore opened.
    """

    def __init__(self, url: str, storage_options: dict[str, Any] | None, inner: Store) -> None:
        self._opened = url, storage_options
        self._by_obstore = inner
        #: Whether obstore does not understand the server's answers, or can't list it.
        self._is_taken_over = self._is_listed_by_fsspec = False

    # It stays the same store after the fallback to fsspec: in the names of tasks and locks, and as
    # a key.

    @property
    def url(self) -> str:
        return self._by_obstore.url

    @property
    def identity(self) -> Identity:
        identity, inner = self._by_obstore.identity, self.inner
        if inner is self._by_obstore:
            return identity
        return replace(identity, opened_by=inner.identity.opened_by)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._by_obstore == other._by_obstore

    def __hash__(self) -> int:
        return hash(self._by_obstore)

    @property
    def inner(self) -> Store:  # type: ignore[override]
        """The store that is used in this process, at present."""
        return self._by_fsspec if self._is_taken_over or is_forked() else self._by_obstore

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities of the store that is used in this process."""
        has = self.inner.capabilities
        return without(has, _PARTS) if self._is_listed_by_fsspec else has

    @cached_property
    def _by_fsspec(self) -> Store:
        # Imported on demand: most processes use obstore only.
        module = import_module("zarrdask.storage.remote.fsspec.fsspec_store")
        try:
            return module.open_url(*self._opened)  # type: ignore[no-any-return]
        except StoreError as error:
            if is_forked():
                error.add_note(str(not_usable(self._by_obstore.url)))
            raise

    def above(self) -> "RemoteStore | None":
        url, options = self._opened
        directory = url.rstrip("/").rpartition("/")[0]
        if "://" not in directory:
            return None
        module = import_module("zarrdask.storage.remote.obstore.obstore_urls")
        return RemoteStore(directory, options, module.open_url(directory, options))

    def policy(self, request: Request, send: Send) -> Answer:
        """Return the answer to a request, from fsspec where obstore can't send it."""
        if self._is_listed_by_fsspec and request.verb == "LIST":
            return ask(self._by_fsspec, request)
        try:
            return send(request)
        except (StoreError, UnsupportedError) as error:
            if request.verb == "LIST" and isinstance(error, UnsupportedError):
                store = self._take_over(error, "can't list this server")
                self._is_listed_by_fsspec = True
            elif request.call is None and isinstance(error.__cause__, AnswerError):
                reason = f"can't parse its answers ({error.__cause__})"
                store = self._take_over(error, reason)
                self._is_taken_over = True
            else:
                raise
        return ask(store, request)

    def _take_over(self, error: Exception, reason: str) -> Store:
        """Return the store of fsspec, to fall back to; raise the error if fsspec can't open it."""
        try:
            store = self._by_fsspec
        except StoreError as failure:
            error.add_note(f"fsspec, which may support this, can't be used: {failure}")
            raise error from error.__cause__
        _LOG.info("%s: falling back to fsspec, as obstore %s", self.url, reason)
        return store

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"_is_taken_over": self._is_taken_over}
        return RemoteStore, (*self._opened, self._by_obstore), state
