"""Stores behind the clients of other packages, which send single requests.

`ClientStore` decides which requests an operation sends, what it returns for an answer or an error,
and what to do if a server lacks a kind of request. A subclass sends the requests, and says what the
errors of its package mean. `Store` keeps several requests in flight, and `retry`
repeats failed ones.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import quote

from zarrdask.errors import ReadOnlyError, StoreError, without_secrets
from zarrdask.formats.byte_ranges import (
    Buffer,
    Entry,
    ObjectVersion,
    StoredObject,
    Tag,
    cut,
    strong_etag,
)
from zarrdask.formats.store_keys import Names, check_prefix
from zarrdask.runtime import measuring
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.refusals import (
    forbidden_hint,
    no_bucket,
    not_listable,
    not_supported,
    not_writable,
    refuses_conditions,
)
from zarrdask.storage.remote.failures import error_code, is_forbidden
from zarrdask.storage.request import DONE, MISSING, NOT_MET, Absent, Answer, Form, Meaning, Request
from zarrdask.storage.request_store import RequestStore

T = TypeVar("T")

#: Keys that a server lists by one request.
PAGE = 1000


class Described(NamedTuple):
    """The properties of the whole value, from an answer.

    Attributes
    ----------
    size : int
        The size in bytes; 0 if the server does not say.
    etag : str, optional
        The ETag, which may be a weak one.
    condition : optional
        The tag of this version for conditional writes.
    version_id : str, optional
        The ID of this version in a bucket with versions.
    modified : datetime, optional
        When it was changed last.
    """

    size: int = 0
    etag: str | None = None
    condition: Tag | None = None
    version_id: str | None = None
    modified: Any = None


class Fetched:
    """The answer to a request for a value, or for part of it.

    Parameters
    ----------
    value : bytes-like
        The requested part, or all of the value.
    is_whole : bool
        Whether it is all of the value, also if part of it was requested.
    describe : callable
        Returns the properties of the whole value, which most reads do not need.
    """

    __slots__ = ("describe", "is_whole", "value")

    def __init__(
        self, value: Buffer, describe: Callable[[], Described] = Described, *, is_whole: bool
    ) -> None:
        self.value, self.describe, self.is_whole = value, describe, is_whole

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request, with the requested tag."""
        form = request.form
        if form is Form.BUFFER or form is Form.BYTES:
            version = request.version
            is_version = version is None or self._is_of(version)
            return Answer(self._part(request)) if is_version else NOT_MET
        size, etag, condition, *_ = self.describe()
        match form:
            case Form.TAGGED:
                return Answer(self.value, size, condition)
            case Form.VERSION:
                # Without the size, parts of several versions might be taken for parts of one.
                tag = strong_etag(etag) if size or self.is_whole else None
                return Answer(self._part(request), size, tag)
        # A server that sends no parts sends none of a certain version either.
        tag = strong_etag(etag) if size and not self.is_whole else None
        # Not every server knows the condition.
        is_met = request.if_match in (None, tag)
        return Answer(self.value, size, tag) if is_met else NOT_MET

    def _is_of(self, version: ObjectVersion) -> bool:
        """Whether the value is of a version: not every server knows the condition."""
        described = self.describe()
        if version.id is not None:
            return described.version_id == version.id
        return strong_etag(described.etag) == version.tag

    def _part(self, request: Request) -> Buffer:
        value, start, length = self.value, request.start, request.length
        if self.is_whole:
            return value if start == 0 and length is None else cut(value, start, length)
        # A range from the end is requested up to there: it may be longer than the value.
        return memoryview(value)[:length]


class ClientStore(RequestStore):
    """A store whose values a client of another package requests."""

    capabilities = Capabilities(
        concurrent=True,
        repeats=True,
        create_exclusive=True,
        compare_and_swap=True,
        etags=True,
        versions=True,
        reads_versions=True,
        md5_etags=True,
        bodies_limited=True,
    )

    #: The classes of the client's errors.
    _errors: ClassVar[tuple[type[Exception], ...]] = (Exception,)
    #: Whether a range can be counted from the end of a value.
    _has_suffixes = True
    #: Whether the server compares ETags of conditional writes with their quotes, as HTTP says. Ceph
    #: 16 refuses those, also if the condition holds, and takes them without.
    _has_quotes = True
    #: Whether the keys below a prefix are listed by the thousand, not directory by directory.
    _lists_flat = True

    # ---- what a subclass implements

    @property
    @abstractmethod
    def _real_url(self) -> str:
        """The URL, with passwords."""

    @abstractmethod
    def path(self, key: str) -> str:
        """Return the path of a key, by which the client knows it."""

    @abstractmethod
    def _fetch(self, path: str, request: Request) -> Fetched:
        """Request a value, or part of it, under the conditions of a request.

        They are the ETags `if_match` and `unless`, and the `version_id`.
        """

    @abstractmethod
    def _describe(self, path: str) -> Described | None:
        """Request the properties of a value; None if the server does not say its size."""

    @abstractmethod
    def _put(self, path: str, value: Buffer) -> None:
        """Store a value."""

    @abstractmethod
    def _put_if(self, path: str, value: Buffer, condition: Tag | None) -> None:
        """Store a value if the present one has a tag, or if there is none for None."""

    @abstractmethod
    def _delete(self, path: str) -> None:
        """Remove a value."""

    @abstractmethod
    def _list_names(self, directory: str) -> Names:
        """Return the names of values and of directories in a directory."""

    @abstractmethod
    def _list_entries(
        self, directory: str, after: str, until: str | None, members: tuple[str, ...]
    ) -> Iterable[tuple[Any, ...]]:
        """Return members of the entries below a directory, behind `after` and up to `until`.

        The members are the first of "path", "size", "last_modified" (a time) and "e_tag".
        """

    @abstractmethod
    def _meaning(self, error: Exception) -> Meaning | None:
        """Return the meaning of an error of the client; None for other errors."""

    @abstractmethod
    def _failed(self, key: str, error: Exception) -> StoreError:
        """Return the error of the store for an error of the client."""

    @abstractmethod
    def _cause(self, error: Exception) -> BaseException:
        """Return an error without secrets that replaces one of the client as the cause."""

    @abstractmethod
    def _shows_no_listing(self, error: Exception) -> bool:
        """Whether an error of a listing says that the server has none."""

    @property
    @abstractmethod
    def _bucket(self) -> str | None:
        """The name of the bucket, for messages."""

    # ---- reading

    @property
    def url(self) -> str:
        return without_secrets(self._real_url)

    def send(self, request: Request) -> Answer:
        """Send a request, and return the answer."""
        match request.verb:
            case "GET":
                return self._get(request)
            case "HEAD":
                return self._properties(request.key)
            case "PUT":
                self.check_writable()
                return DONE if self._write(request) else NOT_MET
            case _:
                self.check_writable()
                self._remove(request.key)
                return DONE

    # ---- reading

    def _get(self, request: Request) -> Answer:
        """Return the requested part of a value, with the requested tag."""
        sent = request
        if request.version is not None and request.version.id is None:
            sent = request._replace(if_match=request.version.tag)
        outcome = self._fetched(sent)
        if isinstance(outcome, Fetched):
            return outcome.answer(request)
        match outcome:
            case Meaning.UNCHANGED:
                return Answer(tag=request.unless, meaning=outcome)
            case Meaning.BEHIND if request.if_match is None and request.form is not Form.TAGGED:
                return Answer(b"")
        return Answer(meaning=outcome)

    def _fetched(self, request: Request) -> Fetched | Meaning:
        """Request a value, or part of it; return the answer, or what the error says instead.

        That is MISSING, BEHIND, NOT_MET or UNCHANGED.
        """
        if request.start < 0 and not self._has_suffixes:
            return self._fetched_from_end(request)
        path = self.path(request.key)
        try:
            # A range of no bytes can't be requested.
            sent = request._replace(length=1) if request.length == 0 else request
            return self._sent("GET", partial(self._fetch, path, sent))
        except self._errors as error:
            meaning = self._meaning(error)
            if meaning is Meaning.UNSUPPORTED and not request.is_whole:
                # The server sends whole values only.
                return self._fetched(_of_all(request))
            expected = {
                Meaning.BEHIND: True,
                Meaning.NOT_MET: request.if_match is not None,
                Meaning.UNCHANGED: request.unless is not None,
            }
            if meaning is not None and expected.get(meaning):
                return meaning
            try:
                self._check_missing(request.key, error)
            except StoreError as failure:
                if is_forbidden(failure):
                    hints = {"anonymous": self._is_anonymous}
                    failure.add_note(forbidden_hint(self.url, error_code(failure), **hints))
                raise
            return Meaning.MISSING

    def _fetched_from_end(self, request: Request) -> Fetched | Meaning:
        """Request the end of a value from a server that can't count ranges from the end."""
        if request.version_id is not None:
            # The latest version may have another size than this one.
            return self._fetched(_of_all(request))
        entry = self.stat(request.key)
        size = None if entry is None else entry.size
        if not size:
            return Meaning.MISSING if size is None else Meaning.BEHIND
        answer = self._fetched(request._replace(start=max(size + request.start, 0)))
        if isinstance(answer, Fetched) and answer.describe().size not in (0, size):
            return self._fetched(_of_all(request))  # it has changed
        return answer

    def _properties(self, key: str) -> Answer:
        path = self.path(key)
        try:
            described = self._sent("HEAD", partial(self._describe, path))
        except self._errors as error:
            self._check_missing(key, error)
            return MISSING
        if described is None:
            entry = Store.stat(self, key)
            return MISSING if entry is None else Answer(size=entry.size)
        size, etag, _, version_id, modified = described
        entry = _object(self._root, key, size, modified, etag, version_id)
        return Answer(entry.object, size)

    # ---- writing

    def _write(self, request: Request) -> bool:
        """Store a value, and return whether its condition holds."""
        key, value = request.key, b"" if request.value is None else request.value
        if request.if_match is not None:
            return self._replace(key, value, request.if_match)
        if request.unless is not None:
            is_created = (
                self._is_put(key, value, None) if self.capabilities.create_exclusive else None
            )
            return Store.create(self, key, value) if is_created is None else is_created
        path = self.path(key)
        try:
            self._sent("PUT", partial(self._put, path, value), len(value))
        except self._errors as error:
            raise self._not_written(key, error) from self._cause(error)
        return True

    def _replace(self, key: str, value: Buffer, tag: Tag | Absent) -> bool:
        """Store a value if the present one has a tag."""
        is_absent = tag is Absent.ABSENT
        conditions = [None] if is_absent else [tag, _unquoted(tag)]
        if not self._has_quotes:
            conditions.reverse()
        for condition in conditions:
            is_stored = self._is_put(key, value, condition)
            if is_stored is None:
                raise not_supported(self.url, "changed by conditional writes")
            if is_stored:
                self._has_quotes = is_absent or condition is tag
                return True
            if is_absent or not self._is_current(key, tag):
                return False
        raise refuses_conditions(self.url, key)

    def _is_current(self, key: str, tag: Tag) -> bool:
        """Whether a value still has a tag."""
        answer = self._fetched(Request("GET", key, 0, 1))
        return isinstance(answer, Fetched) and answer.describe().condition == tag

    def _is_put(self, key: str, value: Buffer, condition: Tag | None) -> bool | None:
        """Store a value on a condition; return whether it was met, or None if it is unsupported."""
        path = self.path(key)
        try:
            self._sent("PUT", partial(self._put_if, path, value, condition), len(value))
        except self._errors as error:
            meaning = self._meaning(error)
            if meaning is Meaning.NOT_MET or (meaning is Meaning.MISSING and condition is not None):
                return False
            if meaning is not Meaning.UNSUPPORTED:
                raise self._failed(key, error) from self._cause(error)
            # No conditional write is requested again of this server, or of an old client.
            absent = frozenset({"create_exclusive", "compare_and_swap"})
            self.capabilities = without(self.capabilities, absent)
            return None
        return True

    def _remove(self, key: str) -> None:
        path = self.path(key)
        try:
            self._sent("DELETE", partial(self._delete, path))
        except self._errors as error:
            self._check_erased(key, error)

    def _check_erased(self, key: str, error: Exception) -> None:
        """Check that an error of erasing says that there is no such key."""
        if isinstance(error, NotImplementedError):
            raise self._not_written(key, error) from self._cause(error)
        self._check_missing(key, error)

    def _not_written(self, key: str, error: Exception) -> StoreError:
        if isinstance(error, NotImplementedError):
            return ReadOnlyError("this file system can't be written", key=f"{self.url}/{key}")
        return self._failed(key, error)

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        if not self.capabilities.writable:
            raise not_writable(self.url)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        directory = self.path(check_prefix(prefix)).rstrip("/")
        keys, prefixes = self._listed(prefix, partial(self._list_names, directory)) or ([], [])
        return sorted(keys), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        if not self._lists_flat:
            return super().list_prefix(prefix)
        return iter(sorted(entry.key for entry in self.entries(prefix)))

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        if not (self._lists_flat and (self.capabilities.shared or not objects)):
            return super().entries(prefix, after, until, objects=objects)
        skipped = len(self.path(""))
        if not objects:
            listed = self._requested(prefix, after, until, ("path", "size"))
            return (Entry(path[skipped:], size) for path, size in listed)
        root = self._root
        listed = self._requested(prefix, after, until, ("path", "size", "last_modified", "e_tag"))
        return (_object(root, path[skipped:], *rest) for path, *rest in listed)

    @property
    def _root(self) -> str:
        """The URL that the URLs of objects begin with."""
        return quote(self._real_url, safe=":/") + "/"

    def _requested(
        self, prefix: str, after: str, until: str | None, members: tuple[str, ...]
    ) -> Iterable[tuple[Any, ...]]:
        directory = self.path(check_prefix(prefix))
        first, last = (key and self.path(key) for key in (after, until))
        ask = partial(self._list_entries, directory, first or "", last, members)
        return self._listed(prefix, ask) or ()

    def _listed(self, prefix: str, ask: Callable[[], T]) -> T | None:
        """Return the result of a listing, or None if there is nothing below a prefix."""
        try:
            listed = self._sent("LIST", ask)
        except self._errors as error:
            if self._shows_no_listing(error):
                reason = self._failed(prefix, error).message
                raise not_listable(self.url, reason) from self._cause(error)
            self._check_missing(prefix, error)
            return None
        if measuring.IS_ACTIVE and isinstance(listed, list) and len(listed) > PAGE:
            THIS_THREAD.counts.count("LIST", (len(listed) - 1) // PAGE, self)
        return listed

    def _sent(self, kind: str, send: Callable[[], T], stored: int = 0) -> T:
        """Send a request, which is counted if requests are measured."""
        if not measuring.IS_ACTIVE:
            return send()
        return THIS_THREAD.counts.request(kind, self, send, stored)

    # ---- errors

    @property
    def _is_anonymous(self) -> bool:
        """Whether the user has chosen requests without a signature."""
        return False

    def _check_missing(self, key: str, error: Exception) -> None:
        """Check that an error says that there is no such key.

        Raises
        ------
        StoreError
            If it says something else, or that the whole bucket is not there.
        """
        meaning = self._meaning(error)
        if meaning is Meaning.NO_BUCKET:
            raise no_bucket(self._bucket, self.url) from self._cause(error)
        if meaning is not Meaning.MISSING:
            raise self._failed(key, error) from self._cause(error)


def _unquoted(tag: Tag) -> Tag:
    """Return the tag of a conditional write without the quotes of its ETag."""
    if isinstance(tag, Mapping):
        return {name: text and text.strip('"') for name, text in tag.items()}
    return tag.strip('"')


def _of_all(request: Request) -> Request:
    """Return a request for all of the value."""
    return request._replace(start=0, length=None)


def _object(
    root: str, key: str, size: int, time: Any, etag: str | None, version_id: str | None = None
) -> Entry:
    """Return the entry of a key, with the object that holds the value."""
    modified, tag = time and time.timestamp(), strong_etag(etag)
    return Entry(key, size, "", StoredObject(key, root, size, modified, tag, None, version_id))
