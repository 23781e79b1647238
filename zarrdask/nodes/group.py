"""Groups: nodes that hold nodes."""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import replace
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from zarrdask.compliance import strictness
from zarrdask.display.tree import Tree
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    NodeTypeError,
    ReadOnlyError,
    ZarrdaskError,
)
from zarrdask.hierarchy.change import erase_node, write_node
from zarrdask.hierarchy.create import create_node
from zarrdask.hierarchy.find import (
    find_node,
    is_implicit_group,
    node_exists,
    read_node,
    search_below,
)
from zarrdask.hierarchy.members import child_nodes, member_names
from zarrdask.hierarchy.path import inherited_strictness, join_path, locate_node, node_location
from zarrdask.metadata.create import new_attributes, plan_array
from zarrdask.metadata.detect import Search
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.metadata.options import ArrayOptions
from zarrdask.nodes.array import Array
from zarrdask.nodes.attributes import Attributes
from zarrdask.nodes.info import Info, group_info
from zarrdask.nodes.open import check_mode, create_array
from zarrdask.nodes.options import suggests_arguments
from zarrdask.storage.base import Store

MODES = ("r", "r+", "a", "w", "w-")
T = TypeVar("T")
#: Characters that lengths of chunks may take in a line of a tree.
_LONGEST_LENGTHS = 60


class _Listing(Iterator[T], Generic[T]):
    """An iterator over what a listing found, which knows their number before the first one.

    ``list(group)`` asks for an iterator and then for the length of the group: both come from one
    listing of the store.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = list(items)
        self._next = 0

    @property
    def count(self) -> int | None:
        """The number of items, or None after the first one was taken."""
        return len(self._items) if self._next == 0 else None

    def __next__(self) -> T:
        self._next += 1
        if self._next > len(self._items):
            raise StopIteration
        return self._items[self._next - 1]


class _Items(ItemsView[str, "Array | Group"]):
    """The members of a group by name, each document read once."""

    _mapping: "Group"

    def __iter__(self) -> Iterator[tuple[str, "Array | Group"]]:
        return self._mapping._listed(self._mapping._members())


class _Values(ValuesView["Array | Group"]):
    """The members of a group, each document read once."""

    _mapping: "Group"

    def __iter__(self) -> Iterator["Array | Group"]:
        return self._mapping._listed(member for _, member in self._mapping._members())


class Group(Mapping[str, "Array | Group"]):
    """A mapping of names to arrays and groups. Make one with `open_group` or `create_group`.

    A name may be a path: ``group["a/b"]``.

    Parameters
    ----------
    store : Store
    path : str
        In the store, in normal form; "" is the root.
    metadata : GroupMetadata
    mode : {"r", "r+"}
        Whether it and its members may be changed.
    strict : bool, optional
        As in `open_group`; it holds for what is read below, too.
    search : Search, optional
        Which formats its members may have: by default they are expected to be of its own, and
        documents of others are requested only where there are none of it.
    """

    #: The iterator that was made last, while it is in use.
    _latest: "ReferenceType[_Listing[Any]] | None" = None

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: GroupMetadata,
        mode: str = "r",
        *,
        strict: bool | None = None,
        search: Search | None = None,
    ) -> None:
        self.store = store
        self.path = path
        self.metadata = metadata
        self.mode = mode
        self.strict = strict
        self.search = search or Search(metadata.zarr_format)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_latest"}

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format it is stored in: 2, 3, or a dialect of the draft of 3."""
        return self.metadata.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user's attributes; changes are stored at once."""
        return Attributes(lambda: self.metadata.attributes, self._save_attributes)

    def _save_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.check_writable()
        # What there was to allow, or to say, was where it was opened.
        with strictness(strict=False, quiet=True):
            before = open_group(
                self.store, self.path, zarr_format=self.zarr_format, consolidated=False
            ).metadata
        metadata = replace(before, attributes=dict(attributes))
        write_node(self.store, self.path, metadata, before=before)
        self.metadata = metadata

    def check_writable(self) -> None:
        """Check that the group was opened for changes.

        Raises
        ------
        ReadOnlyError
            If it was not.
        """
        if self.mode == "r":
            raise ReadOnlyError(
                "the group was opened for reading",
                key=node_location(self.store, self.path),
                expected='mode="r+"',
            )

    # ---- members

    def _node(self, path: str, metadata: Metadata) -> "Array | Group":
        search = self.search if self.search.only else None
        return node(self.store, path, metadata, self.mode, strict=self.strict, search=search)

    def __getitem__(self, name: str) -> "Array | Group":
        path = self._below(name)
        with strictness(self.strict):
            metadata = None if path is None else read_node(self.store, path, self.search)
        if path is None or metadata is None:
            raise self._missing(name)
        return self._node(path, metadata)

    def _below(self, name: object) -> str | None:
        """Return the path of a name, or None if nothing below can have it."""
        try:
            path = join_path(self.path, name) if isinstance(name, str) else self.path
        except MetadataError:
            return None
        return None if path == self.path else path

    def _missing(self, name: str) -> NodeNotFoundError:
        return NodeNotFoundError(
            "there is no array or group here",
            key=f"{node_location(self.store, self.path)}/{name}",
        )

    def __contains__(self, name: object) -> bool:
        path = self._below(name)
        return path is not None and (
            node_exists(self.store, path, self.search)
            or (self.search.accepts(3) and is_implicit_group(self.store, path))
        )

    def _children(self) -> list[tuple[str, Metadata | ZarrdaskError]]:
        """Return the metadata of the members by name; for one that is not valid, the error."""
        with strictness(self.strict):
            return list(child_nodes(self.store, self.path, self.search))

    def _members(self) -> list[tuple[str, "Array | Group"]]:
        members = []
        for name, metadata in self._children():
            if isinstance(metadata, ZarrdaskError):
                raise metadata
            members.append((name, self._node(join_path(self.path, name), metadata)))
        return members

    def _listed(self, items: Iterable[T]) -> _Listing[T]:
        listing = _Listing(items)
        self._latest = ref(listing)
        return listing

    def __iter__(self) -> Iterator[str]:
        return self._listed(member_names(self.store, self.path, self.search))

    def __len__(self) -> int:
        latest = self._latest and self._latest()
        self._latest = None
        count = latest.count if latest else None
        if count is None:
            count = len(member_names(self.store, self.path, self.search))
        return count

    def items(self) -> ItemsView[str, "Array | Group"]:
        """Return a view of name and node of each member."""
        return _Items(self)

    def values(self) -> ValuesView["Array | Group"]:
        """Return a view of the members."""
        return _Values(self)

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield name and array of each array right below."""
        return ((name, found) for name, found in self._members() if isinstance(found, Array))

    def groups(self) -> Iterator[tuple[str, "Group"]]:
        """Yield name and group of each group right below."""
        return ((name, found) for name, found in self._members() if isinstance(found, Group))

    def walk(self) -> Iterator[tuple[str, "Array | Group"]]:
        """Yield path (from here) and node of everything below, parents first."""
        for name, found in self._members():
            yield name, found
            if isinstance(found, Group):
                yield from ((f"{name}/{path}", below) for path, below in found.walk())

    @property
    def info(self) -> Info:
        """The properties of the group as a table, which prints: it lists the members."""
        return group_info(node_location(self.store, self.path), self.metadata, self)

    def tree(self, depth: int | None = None) -> Tree:
        """Return a drawing of everything below, which prints; notebooks show it, too.

        Parameters
        ----------
        depth : int, optional
            How many levels are drawn; all by default.

        Returns
        -------
        Tree
            A line for each node: arrays with shape, data type, chunks and shards; nodes that
            can't be opened with the reason.
        """
        return Tree(self.path or "/", self._branches(depth))

    def _branches(self, depth: int | None) -> tuple[Tree, ...]:
        if depth == 0:
            return ()
        branches = []
        for name, metadata in self._children():
            if isinstance(metadata, ZarrdaskError):
                branches.append(Tree(f"{name}  can't be opened: {metadata}"))
                continue
            member = self._node(join_path(self.path, name), metadata)
            if isinstance(member, Group):
                branches.append(Tree(name, member._branches(depth and depth - 1)))
            else:
                branches.append(array_tree(name, member))
        return tuple(branches)

    def __delitem__(self, name: str) -> None:
        self.check_writable()
        self._latest = None
        if name not in self:
            raise self._missing(name)
        erase_node(self.store, join_path(self.path, name))

    # ---- making members

    def create_array(self, name: str, **options: Any) -> Array:
        """Create an array below; options as in `zarrdask.create_array`."""
        self.check_writable()
        self._latest = None
        options.setdefault("zarr_format", self.zarr_format)
        return create_array(self.store, join_path(self.path, name), **options)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> "Group":
        """Create a group below."""
        self.check_writable()
        self._latest = None
        metadata = GroupMetadata(self.zarr_format, new_attributes(attributes))
        path = join_path(self.path, name)
        return _create(self.store, path, metadata, overwrite=overwrite, strict=self.strict)

    def require_group(self, name: str) -> "Group":
        """Return the group below, created if there is none.

        Raises
        ------
        NodeTypeError
            If it is an array.
        """
        found = self.get(name)
        if found is None:
            return self.create_group(name)
        if isinstance(found, Array):
            raise NodeTypeError("an array is here", key=found.path, found="array", expected="group")
        return found

    def require_array(self, name: str, *, shape: Any, dtype: Any, **options: Any) -> Array:
        """Return the array below, created if there is none.

        Raises
        ------
        NodeTypeError
            If it is a group.
        MetadataError
            If its shape or data type are others.
        """
        found = self.get(name)
        if found is None:
            return self.create_array(name, shape=shape, dtype=dtype, **options)
        if isinstance(found, Group):
            raise NodeTypeError("a group is here", key=found.path, found="group", expected="array")
        wanted = plan_array(
            ArrayOptions(shape=shape, dtype=dtype, zarr_format=found.zarr_format, chunks=-1)
        )
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise MetadataError(
                "the array that is here is another one",
                key=found.path,
                found=(found.shape, str(found.dtype)),
                expected=f"{wanted.shape} of {wanted.dtype}",
            )
        return found

    def __repr__(self) -> str:
        return f"<zarrdask.Group {node_location(self.store, self.path)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self.store, self.path) == (other.store, other.path)

    __hash__ = None  # type: ignore[assignment]


def array_tree(name: str, array: Array) -> Tree:
    """Return the tree of an array: one line with its shape, data type, chunks and shards."""
    shards = f" in shards {_shortened(array.shards)}" if array.shards else ""
    chunks = _shortened(array.chunks)
    return Tree(f"{name} {array.shape} {array.dtype}, chunks {chunks}{shards}")


def _shortened(lengths: Any) -> str:
    text = str(lengths)
    return text if len(text) <= _LONGEST_LENGTHS else f"{text[:_LONGEST_LENGTHS]}..."


def node(
    store: Store,
    path: str,
    metadata: Metadata,
    mode: str,
    *,
    strict: bool | None = None,
    search: Search | None = None,
) -> Array | Group:
    """Return the array or group that metadata describes."""
    if isinstance(metadata, ArrayMetadata):
        return Array(store, path, metadata, mode)
    return Group(store, path, metadata, mode, strict=strict, search=search)


# --------------------------------------------------------------------------------------------
# Verbs


@suggests_arguments
def open(  # noqa: A001
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
) -> Array | Group:
    """Open whatever node is stored there: an array or a group, of any format.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        Where it is: a path, any fsspec URL, a mapping of keys to bytes, a store.
    component : str, optional
        The node's path within.
    mode : {"r", "r+"}
        Whether it may be changed.
    storage_options : dict, optional
        For fsspec.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The only format whose documents are requested, of the node and of all below it; by
        default any.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        Whether a group's consolidated metadata are used: by default if there are any, of the
        group itself. True demands them, of the node or of a group above it; False reads each
        node's own documents.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    MetadataError, UnsupportedError
        If its metadata is wrong, or needs what isn't there.
    """
    check_mode(mode, ("r", "r+"))
    strict, search = inherited_strictness(url, strict), search_below(url, zarr_format)
    store, path = locate_node(url, component, storage_options)
    with strictness(strict):
        store, metadata = find_node(store, path, consolidated=consolidated, search=search)
    own = search if search.only else None
    return node(store, path, metadata, mode, strict=strict, search=own)


@suggests_arguments
def open_group(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
) -> Group:
    """Open a group.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    mode : {"r", "r+", "a", "w", "w-"}
        Read; change; create if there is none; replace; create, or fail if there is one.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        As in `open`; a group that is created has this format, or 3 by default.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        As in `open`.

    Raises
    ------
    NodeNotFoundError
        If nothing is there and the mode does not create.
    NodeTypeError
        If it is an array.
    """
    check_mode(mode, MODES)
    strict, search = inherited_strictness(url, strict), search_below(url, zarr_format)
    new = GroupMetadata(3 if zarr_format is None else zarr_format)
    store, path = locate_node(url, component, storage_options)
    if mode in ("w", "w-"):
        return _create(store, path, new, overwrite=mode == "w", strict=strict)
    try:
        with strictness(strict):
            store, metadata = find_node(store, path, consolidated=consolidated, search=search)
    except NodeNotFoundError:
        if mode != "a":
            raise
        return _create(store, path, new, overwrite=False, strict=strict)
    if isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "an array is here", key=node_location(store, path), found="array", expected="group"
        )
    own = search if search.only else None
    return Group(store, path, metadata, "r" if mode == "r" else "r+", strict=strict, search=own)


@suggests_arguments
def create_group(
    url: Any,
    component: str | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: ZarrFormat = 3,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Group:
    """Create a group, and groups above it where there are none.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    attributes : mapping, optional
        The user's attributes.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}
    overwrite : bool
        Whether a node that is there is removed first, with all that it holds; it is an error
        otherwise.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false.
    """
    store, path = locate_node(url, component, storage_options)
    metadata = GroupMetadata(zarr_format, new_attributes(attributes))
    strict = inherited_strictness(url, None)
    return _create(store, path, metadata, overwrite=overwrite, strict=strict)


def _create(
    store: Store, path: str, metadata: GroupMetadata, *, overwrite: bool, strict: bool | None
) -> Group:
    store = create_node(store, path, metadata, overwrite=overwrite)
    return Group(store, path, metadata, "r+", strict=strict)
