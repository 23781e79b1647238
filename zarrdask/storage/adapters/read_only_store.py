"""A view of a store that its user has opened for reading only."""

from collections.abc import Iterable

from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.refusals import not_writable
from zarrdask.storage.wrapper import WrappedStore

_WRITES = frozenset({"writable"})


class ReadOnlyStore(WrappedStore):
    """A store that is not written, though the store behind it could be."""

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return without(self.inner.capabilities, _WRITES)

    def above(self) -> Store | None:
        above = self.inner.above()
        return None if above is None else ReadOnlyStore(above)

    def for_chunks(self) -> Store:
        # Chunks are read from the store itself; nothing writes any after `check_writable`.
        return self.inner.for_chunks()

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        raise not_writable(self.url)

    def tidy(self, prefix: str, *, recursive: bool = False) -> None:
        """Leave temporary files where they are."""

    def set(self, key: str, value: Buffer) -> None:
        raise not_writable(self.url)

    def create(self, key: str, value: Buffer) -> bool:
        raise not_writable(self.url)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        raise not_writable(self.url)

    def erase(self, key: str) -> None:
        raise not_writable(self.url)

    def erase_values(self, keys: Iterable[str]) -> None:
        raise not_writable(self.url)

    def erase_prefix(self, prefix: str) -> None:
        raise not_writable(self.url)
