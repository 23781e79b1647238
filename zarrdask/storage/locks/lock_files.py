"""The directory of lock files; its files are opened safely, without following links.

Every user has one directory. By default it is in the directory for temporary files, where other
users may create files, too: one of the same name, or links to files of the user. So the directory
and the files in it are used only if they belong to the user, and no symbolic link is followed.
On Windows, the directory for temporary files is the user's own.

``XDG_RUNTIME_DIR`` is not used, though other users can't write there: a daemon or a batch job may
lack it, and two processes that lock in different directories do not exclude each other.
"""

import os
import stat
import tempfile
import uuid
from contextlib import suppress
from functools import cache

from zarrdask import config
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.file_calls import flags

_DIRECTORY = flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW")
_FILE = flags("O_RDWR", "O_CREAT", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")


class UnsafeDirectoryError(PermissionError):
    """Other users could change the lock files."""


def lock_directory() -> str:
    """Return the path of the directory of lock files, which is the same in all processes."""
    chosen = config.get("lock-directory")
    if chosen:
        # With a slash at its end, a link would be followed.
        return str(chosen).rstrip("/")
    name = "zarrdask" if IS_WINDOWS else f"zarrdask-{os.geteuid()}"
    return os.path.join(tempfile.gettempdir(), name)


def lock_place() -> str:
    """Return an identifier of the lock directory: processes with the same one share their locks.

    The path does not suffice: machines and containers have directories of the same path.
    """
    directory = lock_directory()
    try:
        if not IS_WINDOWS:
            os.close(_open_directory(directory))
        status = os.stat(directory)
    except OSError:
        return directory  # Locking files in it fails, with an error that says why.
    return f"{_machine()}-{status.st_dev:x}-{status.st_ino:x}"


@cache
def _machine() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return f"{uuid.getnode():x}"


def open_lock_file(directory: str, name: str) -> int:
    """Return the descriptor of a file, creating the file and its directory if necessary.

    Raises
    ------
    UnsafeDirectoryError
        If the directory or the file belongs to another user, other users may write to the
        directory, or one of them is a symbolic link.
    OSError
        If the file can't be created.
    """
    path = f"{directory}/{name}"
    if IS_WINDOWS:
        check_lock_file(path)
        return os.open(path, _FILE, 0o600)
    directory_fd = _open_directory(directory)
    try:
        _check_directory(directory_fd, directory)
        try:
            fd = os.open(name, _FILE, 0o600, dir_fd=directory_fd)
        except OSError as error:
            if os.path.islink(path):
                raise UnsafeDirectoryError(f"{path} is a symbolic link") from error
            raise
        try:
            _check_file(fd, path)
        except BaseException:
            os.close(fd)
            raise
        return fd
    finally:
        os.close(directory_fd)


def check_private(directory: str) -> None:
    """Create a directory if necessary, and check that no other user may write to it.

    Raises
    ------
    UnsafeDirectoryError
        As in `open_lock_file`.
    """
    if IS_WINDOWS:
        check_lock_file(f"{directory}/")
        return
    fd = _open_directory(directory)
    try:
        _check_directory(fd, directory)
    finally:
        os.close(fd)


def swappable_above(path: str) -> str | None:
    """Return a directory above a path in which other users may rename what is there, if any.

    That is one that they own or may write to, without the sticky bit; links are followed.
    """
    if IS_WINDOWS:
        return None
    try:
        trusted = {0, os.geteuid(), os.stat("/").st_uid}
        above = os.path.realpath(os.path.dirname(path))
        while True:
            with suppress(FileNotFoundError):  # it is created, by this user
                status = os.stat(above)
                is_writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                is_open = is_writable and not status.st_mode & stat.S_ISVTX
                if is_open or status.st_uid not in trusted:
                    return above
            if above == (above := os.path.dirname(above)):
                return None
    except (OSError, ValueError):
        return None  # Creating the directory fails, with an error that says why.


def check_lock_file(path: str) -> None:
    """Check a path where files have no owner to check: it must not be a link, nor lie in one.

    The directory is created if necessary. A link is an `UnsafeDirectoryError`.
    """
    directory = os.path.dirname(path)
    for place in (directory, path):
        if os.path.islink(place):
            raise UnsafeDirectoryError(f"{place} is a symbolic link")
    os.makedirs(directory, exist_ok=True)


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
    # A file that has a second name was not created here, though it belongs to the user.
    if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise UnsafeDirectoryError(f"{path} is not a lock file of this user")


def is_at(fd: int, path: str) -> bool:
    """Whether an open file is the file of a path, which may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
