"""Make writes resumable: they record which blocks are stored, and leave those out when repeated."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import dask.array as da

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, digest
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode
from zarrdask.arrays.hierarchy.changes.resumable import ResumableArray, ResumableChanges
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.errors import UnsupportedError
from zarrdask.parallel.graph.target import Resume, WriteTarget, write_id

#: Dask arrays, and where they are written.
Writes = Sequence[tuple[da.Array, WriteTarget]]


def resumable(
    writes: Writes, resume: Resume, changes: Sequence[Change] | None = None, source: str = ""
) -> list[tuple[da.Array, WriteTarget]]:
    """Return writes that are resumed together, each with a record of its blocks.

    Their changes become one change, that of the first target. `changes` are those of the targets by
    default, and `source` identifies what else is written.
    """
    if any(isinstance(to.change, ResumableArray) for _, to in writes):
        return [*writes]  # a single new array
    if changes is None:
        changes = [to.change for _, to in writes if to.change is not None]
    records = _records(writes, source)
    node = writes[0][1].array.node_path
    whole = ResumableChanges(node, changes, records, restart=resume == "restart")
    return [
        (x, replace(to, change=None if number else whole, recorded=records[number].blocks))
        for number, (x, to) in enumerate(writes)
    ]


def has_all_values(writes: Writes, source: str = "") -> bool:
    """Whether an earlier run of writes that are resumed together has stored all values."""
    return _records(writes, source)[0].has_all_values()


def _records(writes: Writes, source: str) -> list[ArrayRecord]:
    """Return the records of writes; the first one is for the whole call."""
    plans = [write_id(x, to.array.metadata, _bounds(to)) for x, to in writes]
    plans[0] |= {"what else the call writes": digest(plans[1:], source)}
    return [_record(to, plan) for (_, to), plan in zip(writes, plans, strict=True)]


def _record(to: WriteTarget, plan: Fingerprint) -> ArrayRecord:
    node = to.array.node_path
    if isinstance(to.change, ReplacedNode):
        raise UnsupportedError(
            "a write of an array that is computed from itself can't be resumed; write it elsewhere",
            key=node.location,
        )
    # Elements are kept in a part of an array that exists: each region has its own record.
    is_region = to.beyond == "keep"
    region = sha256(repr(_bounds(to)).encode()).hexdigest()[:16] if is_region else ""
    written = ArrayRegion(to.chunks, to.region)
    return ArrayRecord(node, written, plan, start_again="resume='restart'", region=region)


def _bounds(to: WriteTarget) -> list[tuple[int, int]]:
    return [(int(pick.start), int(pick.stop)) for pick in to.region]
