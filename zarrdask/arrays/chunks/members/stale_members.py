"""Check that the members of a saved concatenation have not changed since it was saved."""

import time
from collections.abc import Iterable

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member
from zarrdask.errors import StoreError
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.system import after_fork
from zarrdask.storage.base import Store
from zarrdask.storage.listing import key_stamp

#: How long a member that takes a request to check is not checked again in a process.
VALID_SECONDS = 60.0
#: The number of such members whose last check a process remembers.
_MAX_CHECKED = 100_000
#: When they were checked last, by URL of the document and stamp.
_CHECKED = dict[tuple[str, str], float]()
after_fork(_CHECKED.clear)


def check_members(array: Concatenation, members: Iterable[Member]) -> None:
    """Check that members have the stamps of the saved list.

    Where that costs a request for each, these are in flight together, and a member is checked at
    most once in `VALID_SECONDS`.

    Raises
    ------
    StoreError
        If one was changed or removed.
    """
    if not array.is_saved:
        return
    requested = dict[tuple[str, str], tuple[Store, Member]]()
    now = time.monotonic()
    for member in members:
        if not member.stamp:
            continue
        store = member.opened(array.options)
        if is_checked_by_request(store):
            key = f"{store.url}/{member.stamped_key}", member.stamp
            if now - _CHECKED.get(key, -VALID_SECONDS) >= VALID_SECONDS:
                requested[key] = store, member
        elif store.capabilities.stamps:
            _check(member, store, key_stamp(store, member.stamped_key))
    if requested:
        for _ in window(_check_by_request, list(requested.values())):
            pass
        if len(_CHECKED) + len(requested) > _MAX_CHECKED:
            _CHECKED.clear()
        _CHECKED.update(dict.fromkeys(requested, now))


def is_checked_by_request(store: Store) -> bool:
    """Whether it takes a request to check a member in a store: tasks do that when they read it."""
    return store.capabilities.versions and not store.capabilities.stamps


def _check_by_request(stored: tuple[Store, Member]) -> None:
    store, member = stored
    version = store.get_if_changed(member.stamped_key, member.stamp, 0, 0)
    # Without an ETag in the answer, nothing is known.
    if version.value is None or version.tag is not None:
        _check(member, store, version.tag or "")


def _check(member: Member, store: Store, stamp: str) -> None:
    if stamp != member.stamp:
        state = "changed" if stamp else "removed"
        raise StoreError(
            f"this array was {state} after the concatenation was saved; call refresh()",
            key=f"{store.url}/{member.prefix}".rstrip("/"),
        )
