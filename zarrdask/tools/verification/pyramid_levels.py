"""Find levels of pyramids that do not fit level 0, by the record of the pyramid."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.hierarchy.path import join_path
from zarrdask.display.words import counted
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.json import DAMAGE
from zarrdask.formats.metadata.model import Metadata
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.tools.verification.check import Problem
from zarrdask.tools.verification.scan import Scan

#: The path of a level from the root of the store, and the shape that is recorded.
Level = tuple[str, tuple[int, ...]]

#: The group in which the label images of an image are.
_LABELS = "labels"
_BUILD = "build the pyramid again with overwrite=True"
_UPDATE = "zarrdask.update_pyramid(...).execute() computes them again"


def pyramid_problems(scan: Scan) -> Iterator[Problem]:
    """Yield a problem for each pyramid with levels that are missing or stale."""
    records = _records(scan)
    arrays = dict(scan.arrays()) if records else {}
    for group, (key, value) in records.items():
        try:
            record = value if isinstance(value, dict) else json.loads(value)
            levels = [(join_path(group, path), tuple(shape)) for path, shape, _ in record["levels"]]
            versions = record.get("versions")
            before = UnitVersions.from_json(versions) if versions else None
            has_level_0 = bool(record["has_level_0"])
        except DAMAGE:
            yield Problem("invalid", group, key, "this record of a pyramid is damaged")
            continue
        if missing := [path for path, _ in levels[not has_level_0 :] if path not in arrays]:
            yield Problem("stale", group, key, f"missing levels: {', '.join(missing)}; {_BUILD}")
        elif has_level_0 and levels[1:] and (reason := _change(arrays, levels, before)):
            stale = ", ".join(path for path, _ in levels[1:])
            yield Problem("stale", group, key, f"stale levels: {stale}; {reason}; {_UPDATE}")


def label_problems(scan: Scan) -> Iterator[Problem]:
    """Yield a note for each label image that has not as many levels as its image (OME-Zarr)."""
    for path, node in scan.nodes.items():
        above, _, folder = path.rpartition("/")[0].rpartition("/")
        image = scan.nodes.get(above) if folder == _LABELS else None
        counts = [_level_count(each) for each in (node, image)]
        if None not in counts and counts[0] != counts[1]:
            text = f"this label image has {counts[0]} levels, and its image {counts[1]}"
            yield Problem("note", path, path, f"{text}; OME-Zarr demands as many")


def _level_count(node: Metadata | None) -> int | None:
    """Return the number of levels that the attributes of OME-Zarr describe; None if they do not."""
    attributes = {} if node is None else node.attributes
    try:
        return len(attributes.get("ome", attributes)["multiscales"][0]["datasets"])
    except (AttributeError, IndexError, KeyError, TypeError):
        return None


def _records(scan: Scan) -> dict[str, tuple[str, Any]]:
    """Return the key and the value of each record, by the path of its group."""
    records = {
        path: (path, metadata.attributes[PyramidDocument.ATTRIBUTE])
        for path, metadata in scan.nodes.items()
        if metadata is not None and PyramidDocument.ATTRIBUTE in metadata.attributes
    }
    for key in scan.pyramids:
        records[key.removesuffix(PyramidDocument.KEY).rstrip("/")] = key, scan.base.get(key) or b""
    return records


def _change(
    arrays: Mapping[str, StoredChunks], levels: Sequence[Level], before: UnitVersions | None
) -> str:
    """Return a description of the changes since levels were computed, or ""."""
    for path, shape in levels:
        if (now := arrays[path].metadata.shape) != shape:
            return f"{path} had shape {shape}, and has {now}"
    chunks = arrays[levels[0][0]]
    try:
        changed = None if before is None else before.changed(UnitVersions.of(chunks, before))
    except StoreError:
        changed = None  # the check of the chunks reports what can't be read
    if changed is None or not changed.any():
        return ""
    of_all = f"{int(changed.sum())} of {counted(changed.size, 'chunk or shard')}"
    if changed.size < chunks.metadata.grid.size:
        of_all = f"{int(changed.sum())} of {counted(changed.size, 'group')} of chunks or shards"
    return f"changes in {of_all} of {levels[0][0]}"
