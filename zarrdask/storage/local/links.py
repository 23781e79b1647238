"""Access to files below a directory without following symbolic links.

Each directory on the way is opened by its name in the one above, so that no other process can
replace it by a link between a check and the access. Windows can't open directories: there, each
directory is checked by its path, which leaves a moment between the check and the access. Junctions
of Windows count as links.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOTDIR, ENOTEMPTY
from itertools import accumulate, islice

from zarrdask.errors import LinkError, StoreError
from zarrdask.storage.file_calls import flags, open_file
from zarrdask.storage.local.atomic import is_temporary
from zarrdask.storage.local.open_file import ABSENT

#: Whether a name can be looked up in an open directory, instead of by its path.
_BY_DESCRIPTOR = os.open in os.supports_dir_fd
# O_PATH, where the platform has it, opens directories that may be entered but not listed.
_DIRECTORY = flags("O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_DIRECTORY")
_NO_FOLLOW = flags("O_NOFOLLOW")
_REMOVAL_ATTEMPTS = 20
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)


def names_in(key: str) -> list[str]:
    """Return the names that a key or prefix consists of.

    >>> names_in("a/c/"), names_in("")
    (['a', 'c'], [])
    """
    return [name for name in key.split("/") if name]


@dataclass(frozen=True)
class Directory:
    """A directory that was reached without following a link.

    Parameters
    ----------
    path : str
        Its path.
    fd : int, optional
        Its descriptor, where the platform can look up names by it.
    """

    path: str
    fd: int | None

    def _name(self, name: str) -> str:
        return name if self.fd is not None else f"{self.path}/{name}"

    def _mode(self, name: str) -> int:
        try:
            status = os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return 0
        if getattr(status, "st_reparse_tag", 0) == _JUNCTION:
            return stat.S_IFLNK
        return status.st_mode

    def is_link(self, name: str) -> bool:
        """Whether a name in the directory is a symbolic link."""
        return stat.S_ISLNK(self._mode(name))

    def is_directory(self, name: str) -> bool:
        """Whether a name in the directory is a directory, and not a link to one."""
        return stat.S_ISDIR(self._mode(name))

    def open(self, name: str, flags: int) -> int:
        """Open a file in the directory, and return its descriptor.

        Raises
        ------
        LinkError
            If it is a symbolic link.
        OSError
            If the file can't be opened.
        """
        if self.fd is None:
            self._check_no_link(name, None)
            return open_file(self._name(name), flags)
        try:
            return os.open(name, flags | _NO_FOLLOW, dir_fd=self.fd)
        except OSError as error:
            self._check_no_link(name, error)
            raise

    def enter(self, name: str) -> "Directory":
        """Return a directory in this one, which is then closed.

        Raises
        ------
        LinkError
            If it is a symbolic link.
        OSError
            If it can't be opened, or is not a directory.
        """
        path = f"{self.path}/{name}"
        if self.fd is not None:
            below = Directory(path, self.open(name, _DIRECTORY))
            self.close()
            return below
        self._check_no_link(name, None)
        _check_directory(path)
        return Directory(path, None)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link, from the directory."""
        os.unlink(self._name(name), dir_fd=self.fd)

    def rmtree(self, name: str) -> None:
        """Remove a directory in this one, with all that is in it."""
        shutil.rmtree(self._name(name), dir_fd=self.fd)

    def close(self) -> None:
        """Close the descriptor, if there is one."""
        if self.fd is not None:
            os.close(self.fd)

    def _check_no_link(self, name: str, cause: OSError | None) -> None:
        if self.is_link(name):
            raise LinkError(
                "this is a symbolic link, which is not followed here; open the directory that it "
                "points to as a store of its own",
                key=f"{self.path}/{name}",
            ) from cause


@contextmanager
def opened_directory(root: str, names: Sequence[str]) -> Iterator[Directory]:
    """Open a directory below a root, by the names on the way, which must not be links.

    The root may itself be a symbolic link.

    Raises
    ------
    LinkError
        If one of the names is a symbolic link.
    OSError
        If a directory can't be opened, or is not a directory.
    """
    if _BY_DESCRIPTOR:
        directory = Directory(root, os.open(root or "/", _DIRECTORY))
    else:
        _check_directory(root)
        directory = Directory(root, None)
    try:
        for name in names:
            directory = directory.enter(name)
        yield directory
    finally:
        directory.close()


def open_unlinked(root: str, key: str, flags: int) -> int:
    """Open a file below a root; a link, at its end or on the way, raises `LinkError`."""
    *above, name = names_in(key)
    with opened_directory(root, above) as directory:
        return directory.open(name, flags)


def is_linked(root: str, key: str) -> bool:
    """Whether a file or directory below a root is, or is behind, a symbolic link."""
    steps = accumulate(names_in(key), lambda above, name: f"{above}/{name}", initial=root)
    return any(map(os.path.islink, islice(steps, 1, None)))


def entries_in(root: str, prefix: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of files, directories and links to a directory above, sorted.

    Temporary files are left out.
    """
    files, directories, loops = [], [], []
    with os.scandir(f"{root}/{prefix}") as entries:
        for entry in entries:
            if is_temporary(entry.name):
                continue
            if not entry.is_dir():
                files.append(entry.name)
            elif entry.is_symlink() and is_loop(root, prefix + entry.name):
                loops.append(entry.name)
            else:
                directories.append(entry.name)
    return sorted(files), sorted(directories), sorted(loops)


def is_loop(root: str, link: str) -> bool:
    """Whether a link is to a directory that contains one on the way to it, also by other links."""
    target = f"{os.path.realpath(f'{root}/{link}').rstrip('/')}/"
    way = accumulate(names_in(link)[:-1], lambda above, name: f"{above}/{name}", initial=root)
    return any(f"{os.path.realpath(above)}/".startswith(target) for above in way)


def remove_below(root: str, names: Sequence[str]) -> None:
    """Remove a directory below a root, or, without names, the root itself, if it exists.

    If a directory is a link, only the link is removed; a directory behind a link raises
    `LinkError`. A root that is a link or a mount point is emptied and kept.
    """
    path = "/".join([root, *names])
    for _ in range(_REMOVAL_ATTEMPTS):
        try:
            _remove(root, names)
        except (OSError, ValueError) as error:
            # The directory is missing, or another process erased or stored an entry concurrently.
            if not isinstance(error, ABSENT) and error.errno != ENOTEMPTY:
                raise
            if not os.path.isdir(path):
                return
        else:
            return
    raise StoreError(
        "other processes keep writing to this directory while it is removed; stop them first",
        key=path,
    )


def _remove(root: str, names: Sequence[str]) -> None:
    if not names:
        with opened_directory(root, []) as directory:
            for name in os.listdir(root):
                (directory.rmtree if directory.is_directory(name) else directory.unlink)(name)
        # This fails for a link or a mount point, and if the directory around it is read-only.
        with suppress(OSError):
            os.rmdir(root)
        return
    *above, name = names
    with opened_directory(root, above) as directory:
        if not directory.is_link(name):
            directory.rmtree(name)
        elif os.path.isdir("/".join([root, *names])):  # a link to a file is a key
            directory.unlink(name)


def _check_directory(path: str) -> None:
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), path)
