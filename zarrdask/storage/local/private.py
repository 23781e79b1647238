"""Files that only this user can read: temporary values, and files with credentials."""

import os
from dataclasses import dataclass
from typing import ClassVar

from zarrdask.storage.local.atomic import beside, tidy
from zarrdask.storage.local.local_store import LocalStore


@dataclass(frozen=True)
class PrivateStore(LocalStore):
    """Files and directories that no other user can read, for any umask of the process."""

    _file_mode: ClassVar[int] = 0o600

    @classmethod
    def in_folder(cls, folder: str) -> tuple["PrivateStore", str]:
        """Return a store and a prefix in it: a new hidden directory in a folder.

        Nothing is created before the first write, and erasing the prefix removes the directory.
        Directories that killed processes left in the folder are removed.
        """
        tidy(folder)
        return cls(folder), f"{os.path.basename(beside(f'{folder}/'))}/"

    def _make_directory(self, path: str) -> bool:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for each in reversed(missing):
            try:
                os.mkdir(each, 0o700)
            except FileExistsError:
                if not os.path.isdir(each):
                    raise
        return bool(missing)
