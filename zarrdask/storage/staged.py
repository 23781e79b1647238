"""A directory in which something is made that is to take the place of another directory."""

import ctypes
import os
import shutil
from dataclasses import dataclass
from functools import cache
from typing import Any

from zarrdask.errors import StoreError
from zarrdask.storage.atomic import temporary
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.local import LocalStore
from zarrdask.storage.system import IS_WINDOWS, replace

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@dataclass(frozen=True)
class StagedStore(LocalStore):
    """A directory that is made once.

    When it is gone, what it was for is done or was given up. Tasks that still write to it, or do
    so again, must not make it again: what they write goes nowhere.
    """

    def _make_directory(self, path: str) -> None:
        if path == self.root:
            raise FileNotFoundError(path)
        try:
            os.mkdir(path)
        except FileExistsError:
            pass
        except FileNotFoundError:
            self._make_directory(os.path.dirname(path))
            self._make_directory(path)

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        except StoreError:
            if os.path.isdir(self.root):
                raise


def replace_directory(new: str, old: str) -> None:
    """Put a directory in the place of another one, or of a link to one, which is then removed.

    Where the system can, nobody sees a moment without either.

    Parameters
    ----------
    new, old : str
        Paths in one file system. If there is no old one, the new one is renamed.

    Raises
    ------
    OSError
        If it can't be done; both are then as they were, or the new one is in its place.
    """
    aside = new
    if not os.path.isdir(old):
        replace(new, old)
    elif not _exchanged(new, old):
        aside = beside(new)
        replace(old, aside)
        replace(new, old)
    remove_directory(aside)


def beside(path: str) -> str:
    """Return the name of a directory that no listing shows, beside another one."""
    return os.path.join(os.path.dirname(path), temporary())


def remove_directory(path: str) -> None:
    """Remove a directory, if there is one, also while others write to it; of a link, the link."""
    gone = beside(path)
    try:
        replace(path, gone)
    except FileNotFoundError:
        return
    if os.path.islink(gone):
        os.unlink(gone)
    else:
        # Nobody knows this name, so nothing is added.
        shutil.rmtree(gone)


def _exchanged(new: str, old: str) -> bool:
    """Exchange two directories at once, if the system can."""
    call = _renameat2()
    if call is None:
        return False
    paths = os.fsencode(new), os.fsencode(old)
    return bool(call(_HERE, paths[0], _HERE, paths[1], _EXCHANGE) == 0)


@cache
def _renameat2() -> Any:
    return None if IS_WINDOWS else getattr(ctypes.CDLL(None), "renameat2", None)
