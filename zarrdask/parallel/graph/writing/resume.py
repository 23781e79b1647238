"""Make writes resumable: they record which blocks are stored, and leave those out when repeated."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import dask.array as da

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, digest
from zarrdask.arrays.hierarchy.changes.new_array import LateArray
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode
from zarrdask.arrays.hierarchy.changes.resumable import ResumableChanges
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import UnsupportedError
from zarrdask.formats.metadata.model import Metadata
from zarrdask.parallel.execution.compared import compared, find_complete_node
from zarrdask.parallel.graph.writing.target import Resume, WriteTarget, write_id
from zarrdask.storage.concurrent_requests import request_on_each

#: Dask arrays, and where they are written.
Writes = Sequence[tuple[da.Array, WriteTarget]]


def resumable(
    writes: Writes, resume: Resume, changes: Sequence[Change] | None = None, source: str = ""
) -> list[tuple[da.Array, WriteTarget]]:
    """Return writes that are resumed together, each with a record of its blocks.

    Their changes become one change, which the first target gets. By default, `changes` are the
    changes of the targets; `source` identifies other values that the call writes.
    """
    if resume != "restart" and (complete := _complete(writes)):
        return complete
    if changes is None:
        changes = [to.change for _, to in writes if to.change is not None]
    records = _records(writes, source)
    node = writes[0][1].array.node_path
    whole = ResumableChanges(node, changes, records, restart=resume == "restart")
    return [
        (x, replace(to, change=None if number else whole, recorded=records[number].blocks))
        for number, (x, to) in enumerate(writes)
    ]


def _complete(writes: Writes) -> list[tuple[da.Array, WriteTarget]]:
    """Return writes of new arrays that compare them, if all are complete; none otherwise."""
    complete = list[tuple[da.Array, WriteTarget]]()
    for x, to in writes:
        new = to.change
        if not isinstance(new, LateArray) or new.overwrites or not new.existed:
            return []
        if (target := WriteTarget.comparing(new.node, new.metadata)) is None:
            return []
        complete.append((x, target))
    return _known(complete)


def complete_targets(
    writes: Sequence[tuple[da.Array | None, WriteTarget]],
    nodes: Sequence[tuple[NodePath, Metadata]],
    source: str,
) -> list[WriteTarget] | None:
    """Return targets that are compared with what is written, if nodes are all complete, else None.

    Values that are in memory are None; `nodes` have the documents that the write would store.
    """
    views = request_on_each(nodes[0][0].store, lambda node: find_complete_node(*node), nodes)
    if None in views:
        return None
    targets = [replace(to, chunks=compared(to.chunks)) for _, to in writes]
    pairs = zip(writes, targets, strict=True)
    known = iter(_known([(x, to) for (x, _), to in pairs if x is not None], source))
    pairs = zip(writes, targets, strict=True)
    return [to if x is None else next(known)[1] for (x, _), to in pairs]


def _known(writes: Writes, source: str = "") -> list[tuple[da.Array, WriteTarget]]:
    """Return writes that compare arrays, without the blocks of those that are known to be equal."""
    records = _records(writes, source) if writes else []
    return [(x, to.known(record)) for (x, to), record in zip(writes, records, strict=True)]


def has_all_values(writes: Writes, source: str = "") -> bool:
    """Whether an earlier run of writes that are resumed together has stored all values."""
    return _records(writes, source)[0].has_all_values()


def _records(writes: Writes, source: str) -> list[ArrayRecord]:
    """Return the records of writes; the first one is for the whole call."""
    plans = [write_id(x, to.array.metadata, _bounds(to)) for x, to in writes]
    plans[0] |= {"what else the call writes": digest(plans[1:], source)}
    new = writes[0][1].change
    single = new if isinstance(new, LateArray) and len(writes) == 1 else None
    return [_record(to, plan, single) for (_, to), plan in zip(writes, plans, strict=True)]


def _record(to: WriteTarget, plan: Fingerprint, single: LateArray | None) -> ArrayRecord:
    """Return the record of a write; `single` is the new array that is written by itself, if any."""
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
    again = "resume='restart'" if single is None else "overwrite=True"
    overwrite = single is not None and single.overwrites
    return ArrayRecord(node, written, plan, start_again=again, overwrite=overwrite, region=region)


def _bounds(to: WriteTarget) -> list[tuple[int, int]]:
    return [(int(pick.start), int(pick.stop)) for pick in to.region]
