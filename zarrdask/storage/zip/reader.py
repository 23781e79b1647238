"""Read the values below a prefix of a zip archive: the base of the stores in archives."""

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Entry, Range
from zarrdask.formats.store_keys import Names, check_prefix, right_below
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.zip.archive import Archive, Directory
from zarrdask.storage.zip.source import LocalFile


class ZipReader(Store):
    """The values below a prefix of an archive."""

    capabilities = Capabilities(stamps=True)

    prefix: str
    #: The stamp of the archive when another process pickled this store, or "" if it is unknown.
    _expected: str = ""

    @property
    @abstractmethod
    def _place(self) -> tuple[Any, ...]:
        """The arguments of the class, which identify the values."""

    @abstractmethod
    def _opened(self) -> Archive:
        """Return the current archive, which is empty if there is none."""

    def _archive(self) -> Archive:
        archive = self._opened()
        if self._expected and archive.stamp != self._expected:
            raise StoreError(
                "the zip archive was changed after this task was created; open it again",
                key=self.url,
            )
        return archive

    def stat(self, key: str) -> Entry | None:
        member = self._archive().members.get(self.prefix + key)
        if member is None:
            return None
        stamp = f"{member.CRC:x}-{member.file_size:x}-{member.header_offset:x}"
        return Entry(key, member.file_size, stamp)

    def get(self, key: str) -> bytes | None:
        return self._archive().get(self.prefix + key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        return self._archive().get_many((self.prefix + key for key in keys), scratch)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self._archive().get_range(self.prefix + key, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self._archive().get_ranges(self.prefix + key, ranges, scratch)

    def list_dir(self, prefix: str) -> Names:
        prefix = self.prefix + check_prefix(prefix)
        return right_below(prefix, self._archive().names(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        names = self._archive().names(self.prefix + check_prefix(prefix))
        return (name.removeprefix(self.prefix) for name in names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)


@cache
def no_archive() -> Archive:
    """Return an empty archive, which stands for one that does not exist."""
    return Archive(LocalFile(os.devnull), Directory({}, 0))
