"""Stores of icechunk's sessions. icechunk is never imported here."""

import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from math import ceil
from typing import Any, Literal
from uuid import uuid4

from zarrdask.errors import ReadOnlyError, StoreError, UnsupportedError
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.formats.store_keys import check_prefix
from zarrdask.storage.adapters.forks import Fork
from zarrdask.storage.adapters.zarr_python import ZarrPythonStore, is_zarr_object
from zarrdask.storage.base import Store, walk
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.private import PrivateStore
from zarrdask.storage.refusals import no_moved_chunks, no_references, not_supported
from zarrdask.storage.wrapper import WrappedStore

# An array "c" has the key that a chunk of an array at the root would have.
_REFUSALS = ("invalid zarr key", "bad key prefix", "invalid chunk index", "there is not an array")

#: Advice where other processes can't access a writable session.
_UNSHARED_ADVICE = (
    'read from a read-only session, commit the changes first, or use the scheduler "threads"'
)

#: Stores references to the chunks of the array with a prefix, each with the index of the chunk.
StoreReferences = Callable[[str, Sequence[tuple[tuple[int, ...], StoredObject]]], None]


class IcechunkStore(ZarrPythonStore):
    """The store of a session, which accepts only keys of Zarr v3.

    A writable session keeps its changes in the memory of this process until it is committed. Tasks
    in other processes change copies of a fork of the session.

    Parameters
    ----------
    inner : icechunk.IcechunkStore
        The store.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._name = uuid4().hex

    @property
    def url(self) -> str:
        session = self.inner.session
        branch = f"@{session.branch}" if session.branch else ""
        return f"icechunk:{session.snapshot_id}{branch}"

    @property
    def identity(self) -> Identity:
        # Sessions that began at one snapshot may have changed it differently. Even the snapshots
        # of two repositories are the same as long as nothing was committed.
        url = self.url
        token = url if self.capabilities.shared else f"{url}#{self._name}"
        return Identity(uri=url, token=token, unshared_advice=_UNSHARED_ADVICE)

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        # A session becomes read-only when it is committed. Each access to it is slow, and this is
        # looked up for each chunk.
        session = self.inner.session
        is_read_only = bool(session.read_only)
        can_fork = not is_read_only and hasattr(session, "fork")
        return _of_session(super().capabilities, is_read_only=is_read_only, can_fork=can_fork)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.capabilities.shared:
            return IcechunkStore, (self.inner,)
        raise StoreError(
            "a writable session of icechunk cannot be used by other processes, as their changes "
            f"would not be merged; {_UNSHARED_ADVICE}",
            key=self.url,
        )

    def temporary(self, prefix: str) -> tuple[Store, str]:
        """Return a local directory: a repository holds nothing else than nodes."""
        return PrivateStore.in_folder(tempfile.gettempdir())

    def fork(self) -> "IcechunkFork":
        """Return a fork of the session, which tasks in other processes can change."""
        try:
            session = self.inner.session.fork()
        except ValueError as error:
            raise UnsupportedError(
                "this release of icechunk can't fork a session with changes, such as new "
                'metadata; update icechunk, or use the scheduler "threads"',
                key=self.url,
            ) from error
        return IcechunkFork(session.store, self)

    def references_to(self, urls: Iterable[str]) -> StoreReferences:
        """Return a function that stores references to objects at URLs such as these."""
        if not self.capabilities.writable:
            raise ReadOnlyError("this session is read-only; open a writable one", key=self.url)
        prefixes = tuple(self.inner.session.config.virtual_chunk_containers or ())
        for url in urls:
            if not url.startswith(prefixes):
                raise _no_container(url, prefixes)
        return self._set_references

    def _set_references(
        self, prefix: str, references: Sequence[tuple[tuple[int, ...], StoredObject]]
    ) -> None:
        chunk = sys.modules["icechunk"].VirtualChunkSpec
        chunks = [
            chunk(list(index), each.url, 0, each.size, *_version(each))
            for index, each in references
        ]
        refused = self.inner.set_virtual_refs(prefix.rstrip("/"), chunks)
        if refused:
            urls = dict(references)
            raise _no_container(
                urls[tuple(refused[0])].url,
                tuple(self.inner.session.config.virtual_chunk_containers or ()),
            )

    def move_chunks(self, prefix: str, offset: Sequence[int]) -> None:
        """Add an offset to the index of each chunk; drop those that leave the array."""
        session = self.inner.session
        if session.read_only:
            raise ReadOnlyError("this session is read-only; open a writable one", key=self.url)
        session.shift_array(f"/{prefix.rstrip('/')}", offset)

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        except _errors() as error:
            _check_refused(error)
            raise UnsupportedError(
                "icechunk stores only documents of Zarr v3, and chunks within the shape of their "
                "array",
                key=f"{self.url}/{key}",
            ) from error

    def erase(self, key: str) -> None:
        try:
            super().erase(key)
        except _errors() as error:
            _check_refused(error)

    async def _get(self, key: str, byte_range: Any = None) -> bytes | None:
        try:
            return await super()._get(key, byte_range)
        except _errors() as error:
            _check_refused(error)
            return None

    def list_prefix(self, prefix: str) -> Iterator[str]:
        try:
            return super().list_prefix(prefix)
        except _errors() as error:
            _check_refused(error)
            return walk(self, check_prefix(prefix))

    async def _exists(self, key: str) -> bool:
        try:
            return await super()._exists(key)
        except _errors() as error:
            _check_refused(error)
            return False


class IcechunkFork(Fork, IcechunkStore):
    """A fork of a writable session, which can be pickled.

    Parameters
    ----------
    inner : icechunk.IcechunkStore
        The store of the fork.
    forked : IcechunkStore, optional
        The store of the session, in the process where the fork was made.
    name : str, optional
        As in `Fork`.
    """

    def __init__(self, inner: Any, forked: IcechunkStore | None = None, name: str = "") -> None:
        IcechunkStore.__init__(self, inner)
        Fork.__init__(self, name)
        self._forked = forked
        #: Copies that no task uses now: they keep what they have read of the repository.
        self._idle = list[IcechunkStore]()

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return replace(super().capabilities, shared=True, forks=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return IcechunkFork, (self.inner, None, self.name)

    def begin(self) -> Store:
        try:
            return self._idle.pop()
        except IndexError:
            session = pickle.loads(pickle.dumps(self.inner.session))
            return IcechunkStore(session.store)

    def end(self, copy: Store) -> bytes:
        session = copy.inner.session  # type: ignore[attr-defined]
        changes = pickle.dumps(session)
        session.discard_changes()
        self._idle.append(copy)  # type: ignore[arg-type]
        return changes

    def check_unchanged(self) -> None:
        session = self._forked.inner.session  # type: ignore[union-attr]
        if session.has_uncommitted_changes:
            raise StoreError(
                "this session has uncommitted changes, which the process that merges would lack; "
                "commit them, and save a fork of a new session",
                key=self.url,
            )

    def check_same(self, other: Fork) -> None:
        one, base = (each.inner.session.snapshot_id for each in (self, other))  # type: ignore[attr-defined]
        if one != base:
            raise StoreError(
                "this session began at another snapshot than the fork; create a branch at the "
                "snapshot of the fork, and merge into a session of this branch",
                key=self.url,
                found=one,
                expected=base,
            )

    def changed(self, changes: bytes) -> Iterator[str]:
        difference = pickle.loads(changes).status()
        for kind in ("new", "updated", "deleted"):
            yield from getattr(difference, f"{kind}_groups")
            yield from getattr(difference, f"{kind}_arrays")
        for path, chunks in difference.updated_chunks.items():
            yield from (f"{path}/c/{'/'.join(map(str, chunk))}" for chunk in chunks)

    def merge(self, changes: Iterable[bytes]) -> None:
        session = self._forked.inner.session  # type: ignore[union-attr]
        session.merge(*map(pickle.loads, changes))


def session_of(
    store: Store, operation: Literal["fork", "references_to", "move_chunks"]
) -> IcechunkStore:
    """Return the session that a store is, or is a view of.

    Raises
    ------
    UnsupportedError
        If it is neither: only sessions have the operation.
    """
    while isinstance(store, WrappedStore):
        store = store.inner
    if not isinstance(store, IcechunkStore):
        raise _NO_SESSION[operation](store.url)
    return store


#: The errors for stores without an operation, by their URLs.
_NO_SESSION: dict[str, Callable[[str], UnsupportedError]] = {
    "fork": partial(not_supported, action="forked"),
    "references_to": no_references,
    "move_chunks": no_moved_chunks,
}


def adapt_store(value: Any) -> "IcechunkStore | None":
    """Return the store of a session as one of ours; None for other objects of icechunk."""
    value = value.store if type(value).__name__ == "Session" else value
    return IcechunkStore(value) if is_zarr_object(value, "Store") else None


def _version(value: StoredObject) -> tuple[str | None, datetime | None]:
    """Return the ETag of an object, or the last second in which it has changed.

    Readers compare one of these. Only S3 is known to list the ETags that it compares: the listings
    of a client of Google Cloud Storage have others, and files have none.
    """
    if value.tag is not None and value.url.startswith("s3://"):
        return value.tag, None
    if value.modified is None:
        return None, None
    return None, datetime.fromtimestamp(ceil(value.modified), UTC)


def _no_container(url: str, prefixes: Sequence[str]) -> StoreError:
    return StoreError(
        "no virtual chunk container of the repository has this object; add one to the "
        "configuration of the repository, for a URL that this one begins with, and authorize it "
        "where you open the repository",
        key=url,
        found=list(prefixes),
    )


def _errors() -> type[Exception]:
    return sys.modules["icechunk"].IcechunkError  # type: ignore[no-any-return]


@lru_cache
def _of_session(base: Capabilities, *, is_read_only: bool, can_fork: bool) -> Capabilities:
    """Return the capabilities of a session, given the capabilities of its store."""
    return replace(base, shared=is_read_only, bounded=True, forks=can_fork)


def _check_refused(error: Exception) -> None:
    """Raise an error again, unless it says that a key or prefix is none of Zarr v3."""
    # Older releases have one class for all errors.
    if not any(text in str(error) for text in _REFUSALS):
        raise error
