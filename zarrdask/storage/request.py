"""`Request` and `Answer`: every operation of a remote store is made of these.

Reading, writing and erasing a value are three verbs of HTTP with a range and two conditions. So
each policy, such as repeating requests or looking into a cache first, is one function; see
`zarrdask.storage.policy_store`.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from zarrdask.formats.byte_ranges import Buffer, ObjectVersion, Tag

if TYPE_CHECKING:
    from zarrdask.storage.base import Store

Verb = Literal["GET", "HEAD", "LIST", "PUT", "DELETE"]

#: As `unless` of a write: there is any value. Where a server has no conditional writes, the value
#: is looked up first.
ANY: Final = "*"


class Absent(Enum):
    """As `if_match` of a write: there is no value. Nothing is looked up first."""

    ABSENT = auto()


class Form(Enum):
    """The form of the answer to a read, and the operation of `Store` that it is for."""

    #: The value, or part of it, as any buffer: `get_range`.
    BUFFER = auto()
    #: All of the value: `get`. A store of a user returns `bytes`, which need not be copied.
    BYTES = auto()
    #: A part, with the tag of the value if the server sends parts: `get_part`.
    PART = auto()
    #: The value, or part of it, with the tag of the whole value: `get_if_changed`.
    VERSION = auto()
    #: The value, with the tag for a conditional write: `get_tagged`.
    TAGGED = auto()


class Request(NamedTuple):
    """A request to a store.

    Attributes
    ----------
    verb : {"GET", "HEAD", "LIST", "PUT", "DELETE"}
        What the request does; HEAD is for the properties of a value.
    key : str
        The key, or a prefix; "" for several keys.
    start, length : int
        The part of the value to read, as in `Store.get_range`.
    if_match : optional
        The tag that the value must have, or ``Absent.ABSENT``.
    unless : optional
        The tag that the value must not have, or `ANY`.
    value : bytes-like, optional
        The value to store.
    form : Form
        The form of the answer to a read.
    version : ObjectVersion, optional
        The version of the value to read: see `Store.get_version`.
    call : callable, optional
        For what concerns more than one value, such as a listing: called with the store that sends
        the request; the result is the value of the answer.
    """

    verb: Verb
    key: str
    start: int = 0
    length: int | None = None
    if_match: Tag | None = None
    unless: Tag | None = None
    value: Buffer | None = None
    form: Form = Form.BUFFER
    version: ObjectVersion | None = None
    call: "Callable[[Store], Any] | None" = None

    @property
    def is_read(self) -> bool:
        """Whether the request changes nothing."""
        return self.verb not in ("PUT", "DELETE")

    @property
    def version_id(self) -> str | None:
        """The ID of the version to read, if it has one."""
        return None if self.version is None else self.version.id

    @property
    def is_whole(self) -> bool:
        """Whether all of a value is requested."""
        return self.start == 0 and self.length is None


class Meaning(Enum):
    """The meaning of an error that is about the value, or about the kind of request."""

    #: There is no such value, or no such bucket.
    MISSING = auto()
    NO_BUCKET = auto()
    #: The condition of a write, or of a read (If-Match), does not hold.
    NOT_MET = auto()
    #: The value still has the ETag of the condition (If-None-Match).
    UNCHANGED = auto()
    #: The range begins behind the end of the value, which may be empty.
    BEHIND = auto()
    #: The server, or the package, has no such requests.
    UNSUPPORTED = auto()


class Answer(NamedTuple):
    """The answer to a request.

    Attributes
    ----------
    value : bytes-like, optional
        What was read, or what the `call` of the request returned; None if there is nothing. For
        HEAD, the `StoredObject`, where it is known.
    size : int, optional
        The size of the whole value in bytes; 0 if it is not known.
    tag : optional
        The tag that belongs to the form of the answer; for HEAD, the stamp.
    meaning : Meaning, optional
        Why there is no value, or why nothing was stored; None after success.
    """

    value: Any = None
    size: int | None = 0
    tag: Tag | None = None
    meaning: Meaning | None = None


Send = Callable[[Request], Answer]

DONE: Final = Answer()
MISSING: Final = Answer(meaning=Meaning.MISSING)
NOT_MET: Final = Answer(meaning=Meaning.NOT_MET)


def ask(store: "Store", request: Request) -> Answer:
    """Return the answer of any store to a request: what the method for it returns."""
    if request.call is not None:
        return Answer(request.call(store))
    match request.verb:
        case "GET":
            return _read(store, request)
        case "HEAD":
            entry = store.stat(request.key)
            return MISSING if entry is None else Answer(entry.object, entry.size, entry.stamp)
        case "PUT":
            return DONE if _is_stored(store, request) else NOT_MET
        case _:
            store.erase(request.key)
            return DONE


def _read(store: "Store", request: Request) -> Answer:
    key, start, length = request.key, request.start, request.length
    value: Buffer | None
    if request.version is not None:
        value = store.get_version(key, request.version, start, length)
        return NOT_MET if value is None else Answer(value)
    match request.form:
        case Form.BYTES | Form.BUFFER:
            is_range = request.form is Form.BUFFER
            value = store.get_range(key, start, length) if is_range else store.get(key)
            return MISSING if value is None else Answer(value)
        case Form.PART:
            part = store.get_part(key, start, length or 0, request.if_match)
            return MISSING if part is None else Answer(*part)
        case Form.VERSION:
            version = store.get_if_changed(key, request.unless, start, length)
            return Answer(*version, Meaning.UNCHANGED if version.is_unchanged else None)
        case Form.TAGGED:
            value, tag = store.get_tagged(key)
            return MISSING if value is None else Answer(value, len(value), tag)


def _is_stored(store: "Store", request: Request) -> bool:
    """Store the value of a request, and return whether its condition holds."""
    value = b"" if request.value is None else request.value
    if request.unless is not None:
        return store.create(request.key, value)
    if request.if_match is not None:
        tag = None if request.if_match is Absent.ABSENT else request.if_match
        return store.swap(request.key, value, tag)
    store.set(request.key, value)
    return True
