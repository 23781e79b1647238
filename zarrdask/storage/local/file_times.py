"""Times of files that identify what was written: any later change gives the file another one."""

import os
from contextlib import suppress

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.storage.local.open_file import settled_version, stamp_in, write_whole

#: How much a time is changed that must not be equal to another one: listings round it to less.
_MARK_NS = 1000


def write_marked(file: int, value: Buffer) -> str:
    """Write a value to an open file, and return the stamp of this version."""
    write_whole(file, value)
    mark_time(file)
    return stamp_in(os.fstat(file))


def keep_time(source: int, target: int) -> None:
    """Give an open file the time of the one that it is a copy of, which marks its version.

    A file that was changed just now keeps no time: a further change might not change its time.
    """
    if settled_version(source) is None:
        mark_time(target)
    else:
        _set_time(target, os.fstat(source).st_mtime_ns)


def mark_time(file: int) -> None:
    """Give an open file a time that no other file gets that is written now."""
    _set_time(file, os.fstat(file).st_mtime_ns - _MARK_NS)


def _set_time(file: int, time: int) -> None:
    # Another user may own the file: it is compared by its bytes again next time.
    with suppress(PermissionError):
        if os.utime in os.supports_fd:
            os.utime(file, ns=(time, time))
