"""Check that the members of a saved concatenation have not changed since it was saved."""

import time
from collections.abc import Iterable

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member
from zarrdask.errors import StoreError
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.system import after_fork
from zarrdask.storage.base import Store
from zarrdask.storage.listing import key_stamp

#: How long a remote member is not checked again in a process.
VALID_SECONDS = 60.0
#: The number of remote members whose last check a process remembers.
_MAX_CHECKED = 100_000
#: When remote members were checked last, by URL of the document and stamp.
_CHECKED = dict[tuple[str, str], float]()
after_fork(_CHECKED.clear)


def check_members(array: Concatenation, members: Iterable[Member]) -> None:
    """Check that members have the stamps of the saved list; remote ones concurrently.

    The documents of remote members cost a request each, at most once in `VALID_SECONDS`.

    Raises
    ------
    StoreError
        If one was changed or removed.
    """
    if not array.is_saved:
        return
    far = dict[tuple[str, str], tuple[Store, Member]]()
    now = time.monotonic()
    for member in members:
        if not member.stamp:
            continue
        store = member.opened(array.options)
        if store.capabilities.stamps:
            _check(member, store, key_stamp(store, member.stamped_key))
        elif store.capabilities.versions:
            key = f"{store.url}/{member.stamped_key}", member.stamp
            if now - _CHECKED.get(key, -VALID_SECONDS) >= VALID_SECONDS:
                far[key] = store, member
    if far:
        for _ in window(_check_remote, list(far.values())):
            pass
        if len(_CHECKED) + len(far) > _MAX_CHECKED:
            _CHECKED.clear()
        _CHECKED.update(dict.fromkeys(far, now))


def _check_remote(stored: tuple[Store, Member]) -> None:
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
