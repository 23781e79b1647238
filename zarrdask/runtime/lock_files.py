"""The directory of lock files, and safe ways to open what is in it.

Every user has one directory, by default in the directory for temporary files, where others may
make files, too: also one of just this name, or links to files of their victim. So the directory
and the files in it are used only if they belong to the user, and no symbolic link is followed.

``XDG_RUNTIME_DIR`` is not used, though it would be out of reach of others: a daemon or a batch job
may lack it, and two processes that lock in different directories do not exclude each other.
"""

import os
import stat
import tempfile

from zarrdask import config

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | _CLOEXEC
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | _CLOEXEC


class UnsafeDirectoryError(PermissionError):
    """Others could change the lock files."""


def lock_directory() -> str:
    """Return the directory of the lock files: all processes of a user use the same one."""
    chosen = config.get("lock-directory")
    # With a slash at its end, a link would be followed.
    return (
        str(chosen).rstrip("/")
        if chosen
        else os.path.join(tempfile.gettempdir(), f"zarrdask-{os.geteuid()}")
    )


def open_lock_file(directory: str, name: str) -> int:
    """Return a descriptor of a file, which is made, as is its directory, if there is none.

    Raises
    ------
    UnsafeDirectoryError
        If the directory or the file belongs to somebody else, others may write to the directory,
        or one of them is a symbolic link.
    OSError
        If the file can't be made.
    """
    above = _open_directory(directory)
    try:
        _check_directory(above, directory)
        try:
            fd = os.open(name, _FILE, 0o600, dir_fd=above)
        except OSError as error:
            if os.path.islink(f"{directory}/{name}"):
                raise UnsafeDirectoryError(f"{directory}/{name} is a symbolic link") from error
            raise
        try:
            _check_file(fd, f"{directory}/{name}")
        except BaseException:
            os.close(fd)
            raise
        return fd
    finally:
        os.close(above)


def _open_directory(path: str) -> int:
    try:
        try:
            return os.open(path, _DIRECTORY)
        except FileNotFoundError:
            os.makedirs(path, 0o700, exist_ok=True)
            return os.open(path, _DIRECTORY)
    except OSError as error:
        if os.path.islink(path):
            raise UnsafeDirectoryError(f"{path} is a symbolic link") from error
        raise


def _check_directory(fd: int, path: str) -> None:
    status = os.fstat(fd)
    if status.st_uid != os.geteuid():
        raise UnsafeDirectoryError(f"{path} belongs to another user (uid {status.st_uid})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeDirectoryError(f"other users may write to {path} (its mode is {mode:o})")


def _check_file(fd: int, path: str) -> None:
    status = os.fstat(fd)
    # A file of the user's that has another name, too, is not one that was made here.
    if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise UnsafeDirectoryError(f"{path} is not a lock file of this user")


def is_at(fd: int, path: str) -> bool:
    """Whether an open file is the one of a name."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
