"""`Capabilities`: which operations a store supports, and what its requests cost."""

from collections.abc import Collection, Container
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

#: The operation that each of these capabilities is about, and the operations that it must agree
#: with: a class that overrides one of them, but neither the operation nor the declaration of its
#: capabilities, loses the capability.
_OPERATIONS = {
    "create_exclusive": ("create", ("set",)),
    "compare_and_swap": ("swap", ("get", "set")),
    "etags": ("get_part", ("get", "get_many", "get_range", "get_ranges")),
    "versions": ("get_if_changed", ("get", "get_many", "get_range", "get_ranges")),
    "reads_versions": ("get_version", ("get", "get_many", "get_range", "get_ranges")),
    "lists_parts": ("entries", ("list_prefix",)),
    "keeps_open": ("reading", ("get", "get_many", "get_range", "get_ranges")),
}

#: An algorithm of the digests of values that are stored.
StoredDigest = Literal["sha256", "md5"]


class StoreCosts(NamedTuple):
    """What requests to a store cost: plans count it, and it says which requests are worth it.

    Attributes
    ----------
    request : int
        The overhead of a request, in bytes that could be moved in that time.
    copies : int
        The number of copies of a value in memory while it is read or written: two, if the store
        needs a copy of its own or returns several values at once.
    network : float
        The cost of a byte that processes exchange, relative to a byte of the store.
    block_factor : int
        How many times larger blocks are than on a local disk: more requests are in flight.
    in_flight : int
        How many pieces of a block are requested at a time; see `overlaps`.
    checks : bool
        Whether requests are sent that only check something, or look for advice in an error message:
        they take hardly any time.
    listed : int
        How many keys are listed, with what `stat` says of them, in the time of one request.
    """

    request: int
    copies: int
    network: float
    block_factor: int
    in_flight: int
    checks: bool
    listed: int

    @property
    def overlaps(self) -> bool:
        """Whether several requests take less time together than one after another."""
        return self.in_flight > 1


#: The costs of local disks and of memory.
LOCAL_COSTS = StoreCosts(
    request=2**15, copies=1, network=1.5, block_factor=1, in_flight=1, checks=True, listed=1
)
#: The costs of stores with latency: each request takes a round trip.
REMOTE_COSTS = StoreCosts(
    request=2**19, copies=2, network=0.5, block_factor=4, in_flight=8, checks=False, listed=100
)


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The operations that a store supports, and what its requests cost.

    Attributes
    ----------
    readable, writable, listable : bool
        Whether values can be read, whether they can be stored and erased, and whether keys can be
        listed (conformance B-86). Default: True, if the class implements the operations.
    shared : bool
        A pickled copy in another process sees the same values. Default: True.
    costs : StoreCosts
        What requests cost: `LOCAL_COSTS` for local disks and memory, or others, such as
        ``REMOTE_COSTS._replace(checks=True)``. Default: `REMOTE_COSTS`.
    concurrent : bool
        A call that concerns many values has up to ``zarrdask.requests`` requests in flight, which
        several threads send. Default: False.
    retries : bool
        The store itself repeats requests after transient errors. Default: False.
    repeats : bool
        The store, or the package that it uses, may send a request again by itself after its answer
        was lost: so a conditional write may be refused because of itself. Default: False.
    create_exclusive : bool
        Exactly one of several simultaneous calls of `create` for a key succeeds. Default: False.
    compare_and_swap : bool
        Supports conditional writes (If-Match): `get_tagged` and `swap`. Default: False.
    etags : bool
        Range requests return an ETag, and can be pinned to one: `get_part`. Default: False.
    versions : bool
        A value that has not changed need not be sent again (If-None-Match): `get_if_changed`.
        Default: False.
    reads_versions : bool
        A value can be read on the condition that it is of a version that was listed: `get_version`.
        Default: False.
    md5_etags : bool
        `stat` and listings return an ETag with each object, which is usually the MD5 digest of its
        value. Default: False.
    directories : bool
        Keys are the paths of files, so a directory may have the name of a value, or a file the name
        of a directory. Default: False.
    bounded : bool
        Chunks can be stored only within the shape of their array, so an append writes the shape
        first. Only for stores whose changes become visible together. Default: False.
    one_writer : bool
        Values are changed by one process at a time, which runs its tasks in threads. Default:
        False.
    forks : bool
        Tasks in other processes, which can't see the store, change copies of it, whose changes are
        merged: see `zarrdask.storage.adapters.forks`. Default: False.
    deferrable : bool
        Values may be written after the call that prepared the write has returned. Default: True.
    lists_parts : bool
        A listing can begin behind a key, so that its parts can be requested concurrently. Default:
        False.
    stamps : bool
        `stat` returns a stamp that each change of a value changes, at hardly any cost. Default:
        False.
    compact : bool
        Each task may carry a pickled copy, as it is small. Default: True.
    keeps_values : bool
        Values that were read are kept on a local disk, where one that was read whole serves reads
        of its parts. Default: False.
    keeps_open : bool
        A value is kept open while its parts are read, which then cost no request each: `reading`
        returns an object with the `size` of the value. Default: False.
    bodies_limited : bool
        Answers are read up to a number of bytes: see `zarrdask.storage.remote.body_limit`. Default:
        False.
    """

    readable: bool = True
    writable: bool = True
    listable: bool = True
    shared: bool = True
    costs: StoreCosts = REMOTE_COSTS
    concurrent: bool = False
    retries: bool = False
    repeats: bool = False
    create_exclusive: bool = False
    compare_and_swap: bool = False
    etags: bool = False
    versions: bool = False
    reads_versions: bool = False
    md5_etags: bool = False
    directories: bool = False
    bounded: bool = False
    one_writer: bool = False
    forks: bool = False
    deferrable: bool = True
    lists_parts: bool = False
    stamps: bool = False
    compact: bool = True
    keeps_values: bool = False
    keeps_open: bool = False
    bodies_limited: bool = False

    @property
    def digest_algorithm(self) -> StoredDigest:
        """The algorithm of the digests by which stored values are compared with the listing."""
        return "md5" if self.md5_etags else "sha256"

    @property
    def requests_parts(self) -> bool:
        """Whether parts of large values are requested, several at a time and of one version."""
        overlaps = self.costs.overlaps and self.concurrent
        return overlaps and self.etags and not self.keeps_values

    @property
    def reads_parts(self) -> bool:
        """Whether parts of large values are read without the rest."""
        return self.keeps_open or self.requests_parts

    @property
    def is_listed_fast(self) -> bool:
        """Whether many keys can be looked up fast: on a local disk, or in a dict."""
        # A mapping of a user, which other processes can see, may be slow.
        return self.costs.checks and (self.directories or not self.shared)


@lru_cache(maxsize=256)
def without(capabilities: Capabilities, names: Collection[str]) -> Capabilities:
    """Return capabilities with some switched off."""
    absent: dict[str, Any] = dict.fromkeys(names, False)
    return replace(capabilities, **absent)


@dataclass(frozen=True)
class Declared:
    """The capabilities that a class declares or inherits, and those that it lacks nevertheless.

    Attributes
    ----------
    capabilities : Capabilities
        The declared ones.
    lost : frozenset of str
        Those whose operation does not agree with a method that the class overrides.
    is_own : bool
        Whether the class itself declares them.
    """

    capabilities: Capabilities = Capabilities()
    lost: frozenset[str] = frozenset()
    is_own: bool = False

    def in_subclass(self, methods: Container[str]) -> "Declared":
        """Return the capabilities of a class that declares none, but overrides methods.

        Examples
        --------
        >>> sorted(Declared().in_subclass(["set"]).lost)
        ['compare_and_swap', 'create_exclusive']
        """
        lost = (
            name
            for name, (operation, related) in _OPERATIONS.items()
            if operation not in methods
            and (name in self.lost or any(each in methods for each in related))
        )
        return Declared(self.capabilities, frozenset(lost))

    def provided(self, **implemented: bool) -> Capabilities:
        """Return the capabilities of the methods; `implemented` has the implemented groups."""
        absent = {name for name, has in implemented.items() if not has}
        return without(self.capabilities, self.lost | absent)
