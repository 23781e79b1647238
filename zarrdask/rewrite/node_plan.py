"""What a copy of an array or a hierarchy will be: each node as it is to be, and what is lost."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from zarrdask.chunks.stored import StoredChunks
from zarrdask.display.words import byte_size as bytes_in_words
from zarrdask.display.words import counted
from zarrdask.errors import MetadataError, ZarrdaskError
from zarrdask.hierarchy import draft
from zarrdask.hierarchy.members import check_new_path, child_nodes
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.metadata import detect
from zarrdask.metadata.convert import convert, convert_group
from zarrdask.metadata.losses import group_losses, losses
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain

#: How an array's values came to the copy.
Way = Literal["moved", "moved within shards", "recoded", "metadata only"]


@dataclass(frozen=True)
class Node:
    """An array or a group that is to be copied.

    Attributes
    ----------
    path : str
        From the root of the copy, "" for that itself.
    before, after : ArrayMetadata or GroupMetadata
        As it is, and as it is to be.
    notes : tuple of str
        What is not kept.
    """

    path: str
    before: Metadata
    after: Metadata
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Which nodes of a hierarchy are copied.

    Attributes
    ----------
    include : tuple of str, optional
        Patterns of the paths of arrays (``"*"`` is any text, with slashes too); all, if absent.
    exclude : tuple of str
        Patterns of the paths of arrays and groups that are not copied, nor what is below them.
    """

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    def has(self, path: str, *, array: bool) -> bool:
        """Whether a node is copied, if the group above it is."""
        if path and any(fnmatchcase(path, pattern) for pattern in self.exclude):
            return False
        included = self.include is None or any(fnmatchcase(path, p) for p in self.include)
        return not array or not path or included


@dataclass(frozen=True)
class CopiedArray:
    """What was done for one array.

    Attributes
    ----------
    path : str
        From the root of the copy.
    way : {"moved", "moved within shards", "recoded", "metadata only"}
        Encoded bytes were moved, or inner chunks of shards; values were decoded and encoded; or
        only metadata were written.
    units : int
        How many were stored.
    bytes_read, bytes_written : int
        As they were stored; of what was recoded, of the decoded values.
    notes : tuple of str
        What could not be kept.
    """

    path: str
    way: Way
    units: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.path or '/'}: {self.way}"
        if self.way != "metadata only":
            read, written = map(bytes_in_words, (self.bytes_read, self.bytes_written))
            text += f", {counted(self.units, 'unit')}, {read} read, {written} written"
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class CopyReport:
    """What `zarrdask.copy` did. It prints.

    Attributes
    ----------
    source, target : str
        Where from and where to.
    arrays : tuple of CopiedArray
    groups : int
        How many groups were written.
    skipped : tuple of (str, str)
        The paths of what could not be copied, each with the reason.
    notes : tuple of str
        What could not be kept of groups.
    """

    source: str
    target: str
    arrays: tuple[CopiedArray, ...]
    groups: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def units(self) -> int:
        """How many units were stored."""
        return sum(array.units for array in self.arrays)

    @property
    def bytes_written(self) -> int:
        """How many bytes."""
        return sum(array.bytes_written for array in self.arrays)

    def __str__(self) -> str:
        counts = f"{counted(len(self.arrays), 'array')}, {counted(self.groups, 'group')}"
        lines = [f"{self.source} -> {self.target}: {counts}", *map(str, self.arrays)]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"skipped {path or '/'}: {reason}" for path, reason in self.skipped]
        return "\n".join(lines)


# --------------------------------------------------------------------------------------------
# Planning


def plan_copy(
    store: Store,
    path: str,
    metadata: Metadata,
    become: Callable[[Metadata], Metadata],
    *,
    select: Selection,
    skip: bool,
) -> tuple[list[Node], list[tuple[str, str]]]:
    """Return the nodes of a copy, groups before what is in them, and what can't be copied.

    Parameters
    ----------
    store, path, metadata
        Of the source.
    become : callable
        Gives the metadata of a node as they are to be; see `converted`.
    select : Selection
    skip : bool
        Whether what can't be copied is passed over; it is an error otherwise.

    Raises
    ------
    ZarrdaskError
        If a node can't be read, or can't be written in the other format. It names the node.
    """
    nodes, skipped = [], []
    for below, found in _walk(store, path, metadata, select):
        try:
            if isinstance(found, ZarrdaskError):
                raise found
            nodes.append(_node(below, found, become(found)))
        except ZarrdaskError as error:
            if not skip or not below:
                where = node_location(store, join_path(path, below))
                raise error if error is found else error.within(where) from error.__cause__
            skipped.append((below, str(error)))
    return _rooted(nodes, skipped), skipped


def _rooted(nodes: list[Node], skipped: list[tuple[str, str]]) -> list[Node]:
    """Return the nodes that are not below one that is skipped."""
    gone = tuple(f"{path}/" for path, _ in skipped)
    return [node for node in nodes if not node.path.startswith(gone)] if gone else nodes


def _walk(
    store: Store, path: str, metadata: Metadata, select: Selection
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield every node that is copied, by its path from the root, or why it can't be read."""
    left: list[tuple[str, Metadata | ZarrdaskError]] = [("", metadata)]
    while left:
        below, found = left.pop(0)
        if not select.has(below, array=isinstance(found, ArrayMetadata)):
            continue
        yield below, found
        if isinstance(found, GroupMetadata):
            members = child_nodes(store, join_path(path, below))
            left += [(join_path(below, name), member) for name, member in members]


def converted(found: Metadata, **changes: Any) -> Metadata:
    """Return the metadata of a node with changes, of which groups take the format.

    Raises
    ------
    ZarrdaskError
        As `zarrdask.metadata.convert.convert`.
    """
    if isinstance(found, ArrayMetadata):
        return convert(found, **changes)
    return convert_group(found, changes.get("zarr_format"))


def _node(path: str, before: Metadata, after: Metadata) -> Node:
    _check_path(path, after.zarr_format)
    detect.render(after)  # what can't be written must fail before anything is erased
    if isinstance(before, ArrayMetadata) and isinstance(after, ArrayMetadata):
        return Node(path, before, after, losses(before, after))
    notes = group_losses(before, after)  # type: ignore[arg-type]
    return Node(path, before, after, notes)


def _check_path(path: str, zarr_format: ZarrFormat) -> None:
    if path and draft.is_draft(zarr_format):
        draft.check_path(path)
    elif path:
        check_new_path(path, zarr_format)


def patterns(found: str | Iterable[str] | None, key: str) -> tuple[str, ...] | None:
    """Return what a user gives as patterns of paths.

    Raises
    ------
    MetadataError
        If it is none.
    """
    if found is None:
        return None
    items = (found,) if isinstance(found, str) else tuple(found)
    if not all(isinstance(item, str) for item in items):
        raise MetadataError("not patterns", key=key, found=found, expected="texts")
    return tuple(item.strip("/") for item in items)


def chunks_at(store: Store, path: str, metadata: ArrayMetadata) -> StoredChunks:
    """Return the units of an array at a path."""
    return StoredChunks(plain(store), key_prefix(path), metadata)
