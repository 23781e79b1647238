"""A list of finished writes, kept on this machine for the processes of this user.

A finished write leaves nothing in the store but the array. If the same call is made again, such as
by a script that is run again, the versions of the chunks and shards show whether this call has
stored them. They are kept beside the lock files, of the latest writes only: without them, the call
computes its blocks and compares them.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.errors import UnsupportedError
from zarrdask.formats.metadata.json import DAMAGE
from zarrdask.storage.locks.lock_files import lock_directory, open_lock_file

#: The beginning of the names of the files, and the number of files that are kept.
_PREFIX, _FILES = "finished-", 256


def remember_finished(chunks: StoredChunks, plan: Mapping[str, str]) -> None:
    """Note the versions of the chunks that a write has stored, before readers see the array."""
    if not _has_versions(chunks):
        return
    name = _name(chunks, plan)
    value = UnitVersions.of(chunks).to_json()
    directory = lock_directory()
    with suppress(OSError):  # a full disk, or a directory that others may write to
        fd = open_lock_file(directory, f"{_PREFIX}{name}")
        try:
            os.ftruncate(fd, 0)
            os.write(fd, json.dumps(value).encode())
        finally:
            os.close(fd)
        with os.scandir(directory) as entries:
            files = [each for each in entries if each.name.startswith(_PREFIX)]
        for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-_FILES]:
            os.unlink(each)


def is_finished(chunks: StoredChunks, plan: Mapping[str, str]) -> bool:
    """Whether a write is known to have stored the chunks as they are now."""
    name = _name(chunks, plan)
    try:
        with open(f"{lock_directory()}/{_PREFIX}{name}", "rb") as file:
            versions = UnitVersions.from_json(json.load(file))
    except (OSError, *DAMAGE):
        return False
    changed = versions.changed(UnitVersions.of(chunks, versions))
    return changed is not None and not changed.any()


def _name(chunks: StoredChunks, plan: Mapping[str, str]) -> str:
    values = chunks.canonical_location, sorted(plan.items())
    return sha256(repr(values).encode(errors="surrogateescape")).hexdigest()


def _has_versions(chunks: StoredChunks) -> bool:
    """Whether versions can be listed, or the chunks are in the memory of this process."""
    try:
        _, first = next(StoredUnits(chunks).objects(), (None, None))
    except UnsupportedError:
        return not chunks.units.capabilities.shared
    return first is None or first.tag is not None
