"""The nodes of a copy or a rechunk: their metadata before and after, and what can't be kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.lookup import locate_node, look_up
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.node import check_writable
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    StoreError,
    UnsupportedError,
    ZarrdaskError,
    one_of,
)
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.convert import convert_group
from zarrdask.formats.metadata.losses import losses
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.parallel.graph.writing.write_job import is_labelled
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.storage.zarr.consolidated_store import drop_cache

#: Returns the metadata of a new array, from the path and the metadata of the old one.
ConvertArray = Callable[[str, ArrayMetadata], ArrayMetadata]
#: The paths of nodes that are left out, each with the reason.
Skipped = list[tuple[str, str]]


@dataclass(frozen=True)
class NodeCopy:
    """A node by its path from the root of the copy (""), and its new metadata.

    `notes` are properties of the source that the target can't keep, and `region` is the region of
    an array that is copied, or None for all of it.
    """

    path: str
    before: Metadata
    after: Metadata
    notes: tuple[str, ...] = ()
    region: Region | None = None

    @property
    def is_array(self) -> bool:
        """Whether the node is an array."""
        return isinstance(self.after, ArrayMetadata)

    @property
    def changes_format(self) -> bool:
        """Whether the copy has another format."""
        return self.before.format is not self.after.format


@dataclass(frozen=True)
class NodeFilter:
    """Which nodes of a hierarchy are copied, by patterns in which ``*`` also matches slashes.

    `include` matches the arrays to copy, by default all; `exclude` the arrays and groups that are
    left out, with everything below them. With `skip`, nodes that can't be read or converted are
    left out as well; otherwise they raise errors.
    """

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    skip: bool = False
    groups: GroupFilter | None = None

    @classmethod
    def parse(
        cls,
        include: str | Iterable[str] | None,
        exclude: str | Iterable[str] | None,
        on_unsupported: str,
        groups: str | Iterable[str] | None = None,
    ) -> "NodeFilter":
        """Return the filter for the arguments of `copy` and `upgrade` with these names."""
        one_of(on_unsupported, "on_unsupported", ("raise", "skip"))
        patterns = _parse_patterns(include, "include"), _parse_patterns(exclude, "exclude") or ()
        chosen = None if groups is None else GroupFilter.of(groups)
        return cls(*patterns, on_unsupported == "skip", chosen)

    def has(self, path: str, *, array: bool) -> bool:
        """Return whether a node is copied, provided that the group above it is."""
        if path and any(fnmatchcase(path, pattern) for pattern in self.exclude):
            return False
        included = self.include is None or any(fnmatchcase(path, p) for p in self.include)
        return not array or not path or included


class Origin(NamedTuple):
    """The node that is read, in the store as its hierarchy sees it."""

    node: NodePath
    metadata: Metadata
    consolidated: bool


def plan_nodes(
    origin: Origin,
    convert_array: ConvertArray,
    zarr_format: ZarrFormat | None,
    select: NodeFilter = NodeFilter(),
) -> tuple[list[NodeCopy], Skipped]:
    """Return the selected nodes with their new metadata, and those that are skipped.

    Groups come before their members, and only change their format. Nothing is written.
    """
    nodes, skipped = [], Skipped()
    for below, before in _walk(origin, select):
        try:
            if isinstance(before, ZarrdaskError):
                raise before
            nodes.append(_node(below, before, convert_array, zarr_format))
        except ZarrdaskError as error:
            if not select.skip or not below:
                where = origin.node.join(below).location
                raise error if error is before else error.within(where) from error.__cause__
            skipped.append((below, str(error)))
    if select.include is not None and not skipped and not any(node.is_array for node in nodes):
        raise MetadataError(
            "no array matches these patterns of whole paths, in which * also matches slashes",
            key="include",
            found=list(select.include),
            expected="such as '*/temperature'",
        )
    orphans = tuple(f"{path}/" for path, _ in skipped)
    return [node for node in nodes if not node.path.startswith(orphans)], skipped


def _walk(origin: Origin, select: NodeFilter) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield each selected node by its path below the root, or the error of reading it."""
    yield "", origin.metadata
    if isinstance(origin.metadata, GroupMetadata):
        is_copied = partial(select.has, array=False)
        for below, node in origin.node.walk(descend=is_copied, chosen=select.groups):
            if select.has(below, array=isinstance(node, ArrayMetadata)):
                yield below, node


def _node(
    path: str, before: Metadata, convert_array: ConvertArray, zarr_format: ZarrFormat | None
) -> NodeCopy:
    after: Metadata
    if isinstance(before, ArrayMetadata):
        after = convert_array(path, before)
    else:
        after = convert_group(PyramidDocument.removed_from(before), zarr_format)
    if path:
        after.format.check_path(path)
    after.render()  # metadata that can't be written must fail before anything is erased
    return NodeCopy(path, before, after, losses(before, after))


def documents_of(metadata: Metadata) -> Mapping[str, bytes | None]:
    """Return the documents of a node as they were read, or else as they are written."""
    return getattr(metadata, "documents", None) or metadata.render()


def _parse_patterns(value: str | Iterable[str] | None, key: str) -> tuple[str, ...] | None:
    """Return the patterns of paths that a user passes: one text, or several."""
    if value is None:
        return None
    items = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(item, str) for item in items):
        raise MetadataError(
            "patterns of paths are texts, such as '*/temperature'",
            key=key,
            found=value,
            expected="a text or a list of texts",
        )
    return tuple(item.strip("/") for item in items)


# --------------------------------------------------------------------------------------------
# Source and target


def find_origin(
    source: Any, storage_options: dict[str, Any] | None, component: str | None = None
) -> Origin:
    """Return the node that a user passes as the source."""
    check_stored(source)
    lookup = look_up(source, component, storage_options)
    node, metadata = replace(lookup, node=lookup.node.current).find(None, default="own")
    return Origin(node, metadata, node.is_cached)


def check_stored(source: Any) -> None:
    """Check that the source is none of xarray's objects: only what is stored can be copied."""
    if is_labelled(source):
        url = source.encoding.get("source")
        raise UnsupportedError(
            "an object of xarray may have changed since it was opened; pass the location of the "
            "stored dataset, or write the object itself by ds.zarrdask.to_zarr(...)",
            key="source",
            found=type(source).__name__,
            expected="a URL or a path" if url is None else repr(url),
        )


def locate_target(
    target: Any, component: str | None, storage_options: dict[str, Any] | None
) -> NodePath:
    """Return the node that a user passes as the target."""
    if isinstance(target, Array | Group):
        check_writable(target)
    node = locate_node(target, component, storage_options)
    drop_cache(node.store)
    return node.current


def check_apart(source: NodePath, target: NodePath, *, replaces: bool) -> None:
    """Check that the target does not lie in the source, nor (if it `replaces`) around it."""
    read, written = source.canonical_location, target.canonical_location
    if written.startswith(read) or (replaces and read.startswith(written)):
        raise NodeExistsError(
            "the target can't be the source itself, nor lie in it or around it; write to another "
            "location",
            key=target.location,
            found=source.location,
        )


def check_unchanged(source: Array) -> None:
    """Check that the source has not changed since the plan was made."""
    metadata = source.node_path.stored_metadata(source.zarr_format)
    elements = source.metadata.without_labels()
    if not isinstance(metadata, ArrayMetadata) or metadata.without_labels() != elements:
        raise StoreError(
            "the source has changed since the plan was made; plan it again",
            key=source.node_path.location,
            found=getattr(metadata, "shape", None),
            expected=f"{source.shape}",
        )
