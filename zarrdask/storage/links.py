"""Access to files below a directory without following symbolic links.

Each directory on the way is opened by its name in the one above, so that nobody can put a link in
its place between a check and the access.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from zarrdask.errors import LinkError

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
# Where the system has it, O_PATH opens directories that may be entered but not listed.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | _CLOEXEC


def names_in(key: str) -> list[str]:
    """Return the names that a key or prefix consists of.

    >>> names_in("a/c/"), names_in("")
    (['a', 'c'], [])
    """
    return [name for name in key.split("/") if name]


@contextmanager
def opened_directory(root: str, names: Sequence[str]) -> Iterator[int]:
    """Open a directory below a root, to be used as ``dir_fd``.

    Parameters
    ----------
    root : str
        A directory, which may itself be a symbolic link.
    names : sequence of str
        The names of the directories from there, none of which may be a link.

    Raises
    ------
    LinkError
        If one of the names is a symbolic link.
    OSError
        If a directory can't be opened, or is none.
    """
    fd = os.open(root or "/", _DIRECTORY)
    try:
        for count, name in enumerate(names, 1):
            try:
                below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            except OSError as error:
                _check_no_link(fd, name, "/".join((root, *names[:count])), error)
                raise
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def open_unlinked(root: str, key: str, flags: int) -> int:
    """Open a file below a root, where neither it nor a directory on the way is a link.

    Raises
    ------
    LinkError
        If one is.
    OSError
        If the file can't be opened.
    """
    *above, name = names_in(key)
    with opened_directory(root, above) as fd:
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
        except OSError as error:
            _check_no_link(fd, name, f"{root}/{key}", error)
            raise


def _check_no_link(fd: int, name: str, path: str, cause: OSError) -> None:
    if is_link(fd, name):
        raise LinkError(
            "this is a symbolic link, which is not followed here; open the directory that it "
            "points to as a store of its own",
            key=path,
        ) from cause


def is_link(fd: int, name: str) -> bool:
    """Whether a name in a directory is that of a symbolic link."""
    return stat.S_ISLNK(_mode(fd, name))


def is_directory(fd: int, name: str) -> bool:
    """Whether a name in a directory is that of a directory, and not of a link to one."""
    return stat.S_ISDIR(_mode(fd, name))


def _mode(fd: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0
