"""Copy the records of pyramids with the groups that are copied or rewritten."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import join_path
from zarrdask.formats.metadata.json import DAMAGE
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.storage.concurrent_requests import request_on_each

#: An array that is read, and the new one.
Copied = tuple[StoredChunks, StoredChunks]


def copy_pyramid_records(source: NodePath, target: NodePath, arrays: Mapping[str, Copied]) -> None:
    """Copy the records of the groups of arrays, if all levels are copied with their data types."""

    def copy(path: str) -> None:
        try:
            record = PyramidDocument(source.join(path)).read()
            if record is None:
                return
            levels = [join_path(path, level) for level, *_ in record["levels"]]
            levels = levels[not record["has_level_0"] :]
            copied = [arrays[level] for level in levels]
            if any(one.metadata.dtype != other.metadata.dtype for one, other in copied):
                return
            versions = _versions(record, *copied[0])
        except DAMAGE:
            return  # it is damaged, or not all levels are copied
        record["versions"] = versions and versions.to_json()
        PyramidDocument(target.join(path)).write(record)

    groups = sorted({path.rpartition("/")[0] for path in arrays if path})
    request_on_each(source.store, copy, groups)


def _versions(record: Any, before: StoredChunks, after: StoredChunks) -> UnitVersions | None:
    """Return the versions of the new level 0: others than it has, if the old levels are stale."""
    if not (record["has_level_0"] and record.get("versions")):
        return None
    recorded = UnitVersions.from_json(record["versions"])
    changed = recorded.changed(UnitVersions.of(before, recorded))
    if changed is None:
        return None
    now = UnitVersions.of(after)
    return now.marked(np.full(now.digests.shape, changed.any()))
