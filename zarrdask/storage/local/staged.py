"""Staging directories: a new version of a directory is completed, then it replaces the old one."""

import ctypes
import os
import shutil
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.file_calls import replace
from zarrdask.storage.local.atomic import beside, tidy
from zarrdask.storage.local.local_store import LocalStore

# Constants of Linux.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass(frozen=True)
class StagedStore(LocalStore):
    """A staging directory, which is created once.

    When it no longer exists, its content has replaced the old one, or the write was aborted. Tasks
    that still write to it must not create it again: their values are discarded.
    """

    #: The path of the directory that is replaced, by which messages and tasks name this one.
    replaces: str = field(default="", compare=False, repr=False)

    @classmethod
    def beside(cls, directory: str) -> Self:
        """Return a hidden staging directory beside the one that is to be replaced."""
        return cls(beside(directory), replaces=directory)

    def begin(self) -> None:
        """Create the directory, and remove the directories of killed processes."""
        tidy(os.path.dirname(self.replaces))
        os.mkdir(self.root)

    def commit(self) -> None:
        """Replace the other directory by this one; see `replace_directory`."""
        replace_directory(self.root, self.replaces)

    def remove(self) -> None:
        """Remove the directory, if it exists, even while other processes write to it."""
        remove_directory(self.root)

    @property
    def url(self) -> str:
        """The path of the directory that is replaced."""
        return self.replaces or self.root

    def _make_directory(self, path: str) -> bool:
        if path == self.root:
            if os.path.isdir(path):
                return False
            raise FileNotFoundError(path)
        try:
            os.mkdir(path)
        except FileExistsError:
            return False
        except FileNotFoundError:
            self._make_directory(os.path.dirname(path))
            return self._make_directory(path)
        return True

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        except StoreError:
            if os.path.isdir(self.root):
                raise


def replace_directory(new: str, old: str) -> None:
    """Replace a directory, or a link to one, by another directory, and remove the old one.

    Both are in one file system, and the old one need not exist. On Linux, one of them exists at
    every moment. After an `OSError`, either nothing was changed, or only removing the old one
    failed.
    """
    aside = new
    if not os.path.isdir(old):
        replace(new, old)
    elif not exchanged(new, old):
        aside = beside(new)
        replace(old, aside)
        try:
            replace(new, old)
        except OSError:
            replace(aside, old)
            raise
    remove_directory(aside)


def remove_directory(path: str) -> None:
    """Remove a directory, if it exists, even while other processes write to it.

    If it is a symbolic link, only the link is removed.
    """
    renamed = beside(path)
    try:
        replace(path, renamed)
    except FileNotFoundError:
        return
    if os.path.islink(renamed):
        os.unlink(renamed)
        return
    # Other processes write to the old name, so that they add nothing to this directory.
    try:
        shutil.rmtree(renamed)
    except BaseException:  # such as Ctrl-C: no later call has the new name
        shutil.rmtree(renamed, ignore_errors=True)
        raise


def exchanged(new: str, old: str) -> bool:
    """Exchange two directories in one step, if the system can, and return whether it did."""
    call = renameat2()
    if call is None:
        return False
    paths = os.fsencode(new), os.fsencode(old)
    return bool(call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)


@cache
def renameat2() -> Any:
    """Return the system call that can exchange two directories, or None if there is none."""
    return None if IS_WINDOWS else getattr(ctypes.CDLL(None), "renameat2", None)
