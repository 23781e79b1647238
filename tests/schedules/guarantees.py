"""What two writers may expect of each verb on each kind of store: the table of the page."""

from enum import Enum

from tests.schedules.verbs import CHANGES, CREATIONS


class Guarantee(Enum):
    """What is guaranteed if another writer runs at the same time."""

    ONE = "one succeeds"
    BOTH = "both results"
    NONE = "not safe"


#: The kinds of stores, with the machines of the two writers, as columns of the table.
PLACES = {
    "one process: memory": ("memory", (1, 1)),
    "one machine: local disk": ("local disk", (1, 1)),
    "several machines: shared file system": ("local disk", (1, 2)),
    "one machine: object store": ("object store", (1, 1)),
    "several machines: object store": ("object store", (1, 2)),
}
#: On a file system that several machines share, nothing is locked: only new values are exclusive.
_SHARED_DISK = "several machines: shared file system"
#: Verbs that change no value that another writer of the same kind changes.
_INDEPENDENT = ("create_array beside",)
#: Writers of elements, beside which `sync` guarantees the result for each chunk only.
_OF_ELEMENTS = ("z[...] = x", "to_zarr(region=)", "erase", "update_pyramid")


def guarantee(verb: str, place: str) -> Guarantee:
    """Return what is guaranteed for a verb beside another writer that has the same guarantee."""
    if verb in CREATIONS:
        return Guarantee.ONE
    is_shared = place == _SHARED_DISK and verb not in _INDEPENDENT
    return Guarantee.NONE if is_shared else Guarantee.BOTH


def is_guaranteed(first: str, second: str, place: str) -> bool:
    """Whether anything is guaranteed for two verbs at the same time.

    Only the first writer finds the pyramid that it needs.
    """
    if "sync" in (first, second):
        # Nothing excludes that an object store goes on to remove an array that is created again.
        excluded = (*_OF_ELEMENTS, "del") if "object store" in place else _OF_ELEMENTS
        if not {first, second}.isdisjoint(excluded):
            return False
    if second == "update_pyramid" != first:
        return False
    return all(guarantee(verb, place) is not Guarantee.NONE for verb in (first, second))


def table() -> str:
    """Return the table of the page."""
    rows = [["", *PLACES], ["---"] * (len(PLACES) + 1)]
    for verb in (*CREATIONS, *CHANGES):
        rows.append([f"`{verb}`", *(guarantee(verb, place).value for place in PLACES)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
