"""Groups: nodes that hold arrays and other groups."""

from collections.abc import Generator, ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import replace
from inspect import GEN_CREATED, getgeneratorstate, signature
from typing import Any, TypeVar
from weakref import ReferenceType, ref

from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.lookup import Lookup
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import check_options
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.create import create_array
from zarrdask.arrays.nodes.info import Info, group_info, member_label
from zarrdask.arrays.nodes.many import read_many
from zarrdask.arrays.nodes.node import (
    Change,
    Node,
    as_group,
    check_writable,
    is_array_error,
    is_group_error,
)
from zarrdask.arrays.nodes.open import array_at
from zarrdask.arrays.nodes.sections import html_of, rows_of
from zarrdask.display.other_names import GROUP
from zarrdask.display.tree import Tree
from zarrdask.errors import MetadataError, NodeNotFoundError, ZarrdaskError, printable
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.formats.metadata.new_metadata import new_attributes, plan_array

T = TypeVar("T")
#: The number of levels of members that a notebook shows: each group is another request.
_SHOWN_LEVELS = 3


class _Items(ItemsView[str, "Array | Group"]):
    """Names and members of a group; each document is read once."""

    _mapping: "Group"

    def __iter__(self) -> Iterator[tuple[str, "Array | Group"]]:
        return self._mapping._listed(self._mapping._members())


class _Values(ValuesView["Array | Group"]):
    """The members of a group; each document is read once."""

    _mapping: "Group"

    def __iter__(self) -> Iterator["Array | Group"]:
        return self._mapping._listed(member for _, member in self._mapping._members())


class Group(Node, Mapping[str, "Array | Group"]):
    """A stored group: a mapping of names to arrays and groups.

    It is returned by `open_group`, `create_group` and `open`. A name may be a path from the group:
    ``group["a/b"]``. Each access reads the store, so that changes by others are seen.

    Parameters
    ----------
    node_path : NodePath
        The store that the group is in, and its path there.
    metadata : GroupMetadata
        The parsed document of the group.
    mode : {"r", "r+"}
        Whether the group and its members may be changed ("r+") or only read ("r", the default).
    strict : bool, optional
        As in `open_group`; it applies to the nodes below the group, too.
    search : Search, optional
        How the group was found. If that was a search for one format only, nodes below the group
        may have no other. Otherwise they are expected to have the format of the group; see
        `Search`.
    """

    _kind = "group"
    _instead = "a member is group['name'], and attributes are in group.attrs"
    _other_names = GROUP
    #: The iterator over the members that was created last, and their number.
    _latest: "tuple[ReferenceType[Generator[Any]], int] | None" = None

    def __init__(
        self,
        node_path: NodePath,
        metadata: GroupMetadata,
        mode: str = "r",
        *,
        strict: bool | None = None,
        search: Search | None = None,
    ) -> None:
        self.node_path = node_path
        self.metadata = metadata
        self.mode = mode
        self.strict = strict
        self.search = search if search and search.only else Search(metadata.zarr_format)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_latest"}

    def _save_attributes(self, change: Change) -> None:
        check_writable(self)

        def update(stored: Metadata | None) -> GroupMetadata:
            if stored is None:
                raise self.node_path.not_found(Search(self.zarr_format, only=True))
            group = as_group(self.node_path, stored)
            return replace(group, attributes=change(group.attributes))

        self.metadata = self.node_path.update(self.zarr_format, update)

    # ---- members

    def _opened(self, node: NodePath, metadata: Metadata | ZarrdaskError) -> "Array | Group":
        if isinstance(metadata, ZarrdaskError):
            raise metadata
        return opened(node, metadata, self.mode, strict=self.strict, search=self.search)

    def __getitem__(self, name: str) -> "Array | Group":
        node = self._below(name)
        with strictness(self.strict):
            metadata = None if node is None else node.read(self.search)
        if node is None or metadata is None:
            raise self._missing(name)
        return self._opened(node, metadata)

    def _below(self, name: object) -> NodePath | None:
        """Return the member of a name, or None if no member can have that name."""
        if not isinstance(name, str):
            return None
        try:
            node = self.node_path.join(name)
        except MetadataError:
            return None
        return None if node.path == self.path else node

    def _missing(self, name: str) -> NodeNotFoundError:
        node = self._below(name)
        text = "no member can have this name" if node is None else node.why_missing()
        return NodeNotFoundError(text, key=f"{self.node_path.location}/{name}")

    def __contains__(self, name: object) -> bool:
        node = self._below(name)
        return node is not None and (
            node.exists(self.search)
            or (self.search.accepts(3) and node.implied_group() is not None)
        )

    def _children(self) -> list[tuple[str, Metadata | ZarrdaskError]]:
        """Return the names and metadata of the members; for an invalid member, the error."""
        with strictness(self.strict):
            return list(self.node_path.children(self.search))

    def _members(self) -> list[tuple[str, "Array | Group"]]:
        children = self._children()
        return [(name, self._opened(self.node_path.join(name), each)) for name, each in children]

    def _listed(self, items: Iterable[T]) -> Iterator[T]:
        """Return an iterator over the members whose number is known before its first step.

        ``list(group)`` calls ``iter`` and ``len``: one listing of the store answers both.
        """
        items = list(items)
        listing = (item for item in items)
        self._latest = ref(listing), len(items)
        return listing

    def __iter__(self) -> Iterator[str]:
        return self._listed(self.node_path.names(self.search))

    def __len__(self) -> int:
        latest, self._latest = self._latest, None
        listing = latest and latest[0]()
        if latest and listing and getgeneratorstate(listing) == GEN_CREATED:
            return latest[1]
        return len(self.node_path.names(self.search))

    def items(self) -> ItemsView[str, "Array | Group"]:
        """Return a view of the members as pairs of a name and an array or group."""
        return _Items(self)

    def values(self) -> ValuesView["Array | Group"]:
        """Return a view of the members: arrays and groups."""
        return _Values(self)

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield the name and the array of each member that is an array."""
        return ((name, member) for name, member in self._members() if isinstance(member, Array))

    def groups(self) -> Iterator[tuple[str, "Group"]]:
        """Yield the name and the group of each member that is a group."""
        return ((name, member) for name, member in self._members() if isinstance(member, Group))

    def walk(
        self, group_filter: str | Iterable[str] | None = None
    ) -> Iterator[tuple[str, "Array | Group"]]:
        """Yield every array and group below this group with its path from here.

        Each group comes before its members.

        Parameters
        ----------
        group_filter : str or iterable of str, optional
            Patterns such as ``"/*/sweep_0"``: only groups whose paths match one are visited, with
            their arrays, and the groups above them. ``**`` stands for any number of names.
        """
        for path, metadata in self._walk(group_filter):
            yield path, self._opened(self.node_path.join(path), metadata)

    def read_many(self, regions: Iterable[Any], out: Mapping[str, Any] | None = None) -> Any:
        """Read the same regions of all arrays of the group; see `zarrdask.read_many`.

        Parameters
        ----------
        regions : iterable of index
            The regions.
        out : mapping of str to (ndarray or sequence of ndarray), optional
            The memory for the result of each array, by its name.

        Returns
        -------
        dict of str to (list of ndarray, or the value of `out`)
            The elements of each region, by the names of the arrays.

        Raises
        ------
        NodeTypeError, SelectionError, CodecError, StoreError
            As in `zarrdask.read_many`.
        """
        return read_many(self, regions, out)

    @property
    def info(self) -> Info:
        """The properties of the group as a table, which prints. It lists the members."""
        location, package = self.node_path.location, self.store.identity.opened_by
        return group_info(location, self.metadata, self._children(), package, rows_of(self))

    def _walk(
        self, group_filter: str | Iterable[str] | None, depth: int | None = None
    ) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
        chosen = None if group_filter is None else GroupFilter.of(group_filter)
        return self.node_path.walk(
            search=self.search, strict=self.strict, depth=depth, chosen=chosen
        )

    def tree(
        self, depth: int | None = None, *, group_filter: str | Iterable[str] | None = None
    ) -> Tree:
        """Return a drawing of all nodes below the group, which prints and shows in notebooks.

        Parameters
        ----------
        depth : int, optional
            The number of levels to draw; by default all.
        group_filter : str or iterable of str, optional
            Patterns of the groups to draw, as in `walk`.

        Returns
        -------
        Tree
            A line for each node: an array with its shape, data type, chunks and shards; a node
            that can't be opened with the error.
        """
        nodes = self._walk(group_filter, depth)
        rows = [(0, self.path or "/")]
        for path, metadata in nodes:
            *above, name = path.split("/")
            rows.append((len(above) + 1, member_label(name, metadata)))
        return Tree.of_outline(rows)

    def __delitem__(self, name: str) -> None:
        check_writable(self)
        self._latest = None
        if name not in self:
            raise self._missing(name)
        self.node_path.join(name).erase()

    # ---- creating members

    def create_array(self, name: str, **options: Any) -> Array:
        """Create an array below the group.

        Parameters
        ----------
        name : str
            The name of the array, or its path from the group.
        **options
            The arguments of `zarrdask.create_array`. The format is the group's by default.

        Returns
        -------
        Array

        Raises
        ------
        ReadOnlyError
            If the group was opened for reading only.
        NodeExistsError, MetadataError, UnsupportedError
            As in `zarrdask.create_array`.
        """
        check_writable(self)
        self._latest = None
        options.setdefault("zarr_format", self.zarr_format)
        return create_array(*self.node_path.join(name), **options)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> "Group":
        """Create a group below this one, in the same format.

        Parameters
        ----------
        name : str
            The name of the new group, or its path from this one.
        attributes : mapping, optional
            The user's attributes, of JSON values.
        overwrite : bool
            Whether an existing node is removed first, with everything below it. If False (default),
            raise `NodeExistsError` when there is one.

        Returns
        -------
        Group
            The new group, opened for writing.

        Raises
        ------
        ReadOnlyError
            If the group was opened for reading only.
        NodeExistsError
            If the node exists and `overwrite` is False.
        """
        check_writable(self)
        self._latest = None
        of_new = new_attributes(attributes)
        lookup = Lookup(self.node_path.join(name), self.search, self.strict)
        return new_group(lookup, self.zarr_format, of_new, overwrite=overwrite)

    def require_group(self, name: str) -> "Group":
        """Return the group of a name, created if it does not exist.

        Parameters
        ----------
        name : str
            The name of the group, or its path from this one.

        Returns
        -------
        Group

        Raises
        ------
        ReadOnlyError
            If the group has to be created, and this one was opened for reading only.
        NodeTypeError
            If there is an array of this name.
        """
        member = self.get(name)
        if member is None:
            return self.create_group(name)
        if isinstance(member, Array):
            hint = "an array of this name exists; choose another name for the group"
            raise is_array_error(hint, member.path)
        return member

    def require_array(self, name: str, *, shape: Any, dtype: Any, **options: Any) -> Array:
        """Return the array of a name, created if it does not exist.

        Parameters
        ----------
        name : str
            The name of the array, or its path from the group.
        shape, dtype
            As in `zarrdask.create_array`. An existing array must have both.
        **options
            The other arguments of `zarrdask.create_array`; an existing array may differ in them.

        Returns
        -------
        Array

        Raises
        ------
        ReadOnlyError
            If the array has to be created, and the group was opened for reading only.
        NodeTypeError
            If there is a group of this name.
        MetadataError
            If the array exists with another shape or data type.
        """
        check_options(options, self.require_array, others=signature(create_array).parameters)
        member = self.get(name)
        if member is None:
            return self.create_array(name, shape=shape, dtype=dtype, **options)
        if isinstance(member, Group):
            hint = "a group of this name exists; choose another name for the array"
            raise is_group_error(hint, member.path)
        new = ArrayOptions(shape=shape, dtype=dtype, zarr_format=member.zarr_format, chunks=-1)
        required = plan_array(new)
        if (member.shape, member.dtype) != (required.shape, required.dtype):
            raise MetadataError(
                "the array exists with another shape or data type; replace it by create_array "
                "with overwrite=True, or choose another name",
                key=member.path,
                found=(member.shape, str(member.dtype)),
                expected=f"{required.shape} of {required.dtype}",
            )
        return member

    def _repr_html_(self) -> str:
        from zarrdask.arrays.nodes.html import group_html

        tree = self.tree(_SHOWN_LEVELS)
        return group_html(self.node_path.location, tree) + html_of(self)

    def __repr__(self) -> str:
        return printable(f"<zarrdask.Group {self.node_path.location}>")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.node_path == other.node_path

    __hash__ = None  # type: ignore[assignment]


def opened(
    node: NodePath,
    metadata: Metadata,
    mode: str,
    *,
    strict: bool | None = None,
    search: Search | None = None,
) -> Array | Group:
    """Return the array or group that metadata describes."""
    if isinstance(metadata, ArrayMetadata):
        return array_at(node, metadata, mode)
    return Group(node, metadata, mode, strict=strict, search=search)


def new_group(
    lookup: Lookup,
    zarr_format: ZarrFormat | None,
    attributes: Mapping[str, Any],
    *,
    overwrite: bool,
) -> Group:
    """Write a new group, and return it, opened for writing.

    If the format is None, it follows from the groups above.
    """
    node = lookup.node if zarr_format is not None else lookup.node.prefetched(None)
    metadata = GroupMetadata(node.format_of_new(zarr_format), attributes)
    node = node.create(metadata, overwrite=overwrite)
    return Group(node, metadata, "r+", strict=lookup.strict)
