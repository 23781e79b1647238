"""Listings of obstore, from one key to another."""

from operator import itemgetter
from typing import Any

import obstore

from zarrdask.storage.remote.client_store import PAGE
from zarrdask.storage.remote.obstore.obstore_objects import kind_of, settings_of

#: Stores whose servers begin a listing behind any key. For others, obstore lists all keys before.
_LISTED_FROM = {"S3Store", "GCSStore"}


def lists_parts(store: Any) -> bool:
    """Whether a server lists keys in their order, from any key on."""
    return kind_of(store) in _LISTED_FROM and not settings_of(store).get("s3_express")


def list_entries(
    store: Any,
    directory: str,
    after: str | None,
    until: str | None,
    members: tuple[str, ...],
) -> list[tuple[Any, ...]]:
    """Return the entries of the paths below a directory, behind `after` and up to `until`.

    `members` are the names of the members of an entry to return; the path is the first.
    """
    entries, member_values = list[tuple[Any, ...]](), itemgetter(*members)
    for page in obstore.list(store, directory, offset=after, chunk_size=PAGE):
        listed = [*map(member_values, page)]
        if after:
            # Azurite ignores the requested start, which obstore does not check.
            listed = [entry for entry in listed if entry[0] > after]
        if until is None:
            entries += listed
            continue
        entries += [entry for entry in listed if entry[0] <= until]
        # If a server lists keys in another order, the pages that follow are needed, too.
        if listed and listed[-1][0] > until and listed == sorted(listed):
            break
    return entries
