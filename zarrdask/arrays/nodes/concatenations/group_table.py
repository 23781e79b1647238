"""The documents of many groups, and the arrays in them as members of concatenations."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from zarrdask.arrays.chunks.members.concatenation import ABOVE, Member
from zarrdask.arrays.hierarchy.find import node_of, read_documents
from zarrdask.arrays.hierarchy.members import child_nodes
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.concatenations.member_documents import (
    SharedMetadata,
    locate_nodes,
    on_each_node,
    read_stores,
    tag_of,
)
from zarrdask.arrays.nodes.concatenations.member_table import MemberTable
from zarrdask.errors import NodeNotFoundError, NodeTypeError, ZarrdaskError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.formats.metadata import consolidated_documents as forms
from zarrdask.formats.metadata.consolidated_index import ConsolidatedMetadata
from zarrdask.formats.metadata.detect import Search, parse
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata

#: The documents of a group, with consolidated metadata, by format.
_DOCUMENTS: dict[Any, tuple[str, ...]] = {3: ("zarr.json",), 2: (".zgroup", ".zattrs", forms.KEY)}


class OpenedGroup(NamedTuple):
    """A group, and the metadata of the arrays right below it."""

    node: NodePath
    metadata: GroupMetadata
    arrays: Mapping[str, ArrayMetadata]
    #: The ETags of the documents that the arrays were read from, by name of the array, and the
    #: names of these documents relative to the array.
    tags: Mapping[str, tuple[str, str]] = MappingProxyType({})


class GroupTable:
    """Groups of arrays of the same names, in C order."""

    def __init__(
        self, groups: Sequence[OpenedGroup], counts: Shape, options: Mapping[str, Any] | None
    ) -> None:
        self.groups = groups
        self.counts = counts
        self.options = options
        self.shared = SharedMetadata()

    @property
    def first(self) -> OpenedGroup:
        """The first group."""
        return self.groups[0]

    def names(self) -> list[str]:
        """Return the names of the arrays, which all groups have.

        Raises
        ------
        NodeNotFoundError
            If an array is not in all groups.
        """
        names = set(self.first.arrays)
        for group in self.groups:
            for name in names ^ set(group.arrays):
                where = group if name in names else self.first
                raise NodeNotFoundError(
                    "this array is not in all groups",
                    key=where.node.join(name).location,
                    expected="the same arrays in all groups; open_many has drop_variables",
                )
        return list(self.first.arrays)

    def table(self, name: str, counts: Shape, groups: Iterable[int]) -> MemberTable:
        """Return the arrays of a name in some groups, given by number, as a table."""
        members, labelled = [], []
        for number in groups:
            node, _, arrays, tags = self.groups[number]
            metadata = arrays[name]
            labelled.append(metadata)
            bare = self.shared.bare(metadata)
            axes = tuple(range(len(bare.shape)))
            prefix = f"{node.prefix}{name}/"
            region, stamp = whole_region(bare.shape), tags.get(name, ("", ""))
            members.append(Member(node.store, prefix, bare, region, axes, None, *stamp))
        return MemberTable(counts, members, labelled, self.options)


def open_groups(
    urls: Sequence[Any],
    counts: Shape,
    *,
    component: str | None,
    storage_options: dict[str, Any] | None,
    skip: Iterable[str] = (),
) -> GroupTable:
    """Open groups: the documents of all are requested together, and equal ones are parsed once.

    Raises
    ------
    NodeNotFoundError
        If there is no group at one of the URLs.
    """
    nodes = locate_nodes(urls, component, storage_options)
    skipped = frozenset(skip)
    first = _opened(nodes[0], skipped)
    names = _DOCUMENTS.get(first.metadata.zarr_format)
    groups = {0: first}
    reader = _Reader(first, skipped)
    left = list[int]() if names else list(range(1, len(nodes)))
    for numbers, documents, tags in read_stores(nodes, 1, Search(), names) if names else ():
        without = []
        for number, own in zip(numbers, documents, strict=True):
            group = reader.group(nodes[number], own, tags or {})
            if group is None:
                without.append(number)
            else:
                groups[number] = group
        groups.update(_without_consolidated(without, nodes, first, tags))
        left += [number for number in without if number not in groups]
    others = on_each_node(partial(_opened, skip=skipped), nodes, left)
    groups.update(zip(left, others, strict=True))
    return GroupTable([groups[number] for number in range(len(nodes))], counts, storage_options)


def _opened(node: NodePath, skip: frozenset[str]) -> OpenedGroup:
    """Open a group by itself."""
    located, metadata = node.find(consolidated="own")
    if not isinstance(metadata, GroupMetadata):
        raise NodeTypeError(
            "expected a group but found an array; zarrdask.concat joins arrays",
            key=node.location,
            found="array",
            expected="group",
        )
    arrays = {}
    for name, member in child_nodes(located, Search(metadata.zarr_format), skip=skip):
        if isinstance(member, ZarrdaskError):
            raise member
        if isinstance(member, ArrayMetadata):
            arrays[name] = member
    return OpenedGroup(located.current, metadata, arrays)


class _Reader:
    """Reads groups with consolidated metadata, which often have the documents of the last one."""

    def __init__(self, first: OpenedGroup, skip: frozenset[str]) -> None:
        self._skip = skip
        self._form = first.metadata.format
        #: By the names of arrays, documents and their metadata, the last ones first.
        self._known = dict[str, tuple[Any, ArrayMetadata | None]]()
        #: The documents of the last group, and the group: the next group often has equal documents.
        self._last: tuple[Any, OpenedGroup] | None = None

    def group(self, node: NodePath, documents: Any, tags: Mapping[str, str]) -> OpenedGroup | None:
        """Return a group; None if it has no consolidated metadata."""
        if self._last is None or self._last[0] != documents:
            group = self._parsed(node, documents)
            if group is None:
                return None
            self._last = documents, group
        has_own_key = documents.get(forms.KEY) is not None
        held_in = forms.KEY if has_own_key else self._form.documents[0]
        tag, (_, group) = tags.get(node.prefix + held_in, ""), self._last
        own_tags = dict.fromkeys(group.arrays, (tag, f"{ABOVE}{held_in}")) if tag else {}
        return group._replace(node=node, tags=own_tags)

    def _parsed(self, node: NodePath, documents: Any) -> OpenedGroup | None:
        try:
            own, held = forms.split_documents(documents)
        except ZarrdaskError as error:
            raise error.within(node.location) from error.__cause__
        metadata = node_of(node, own, None) if held is not None else None
        if held is None or not any(held.documents) or not isinstance(metadata, GroupMetadata):
            return None
        arrays = {}
        for name in held.members.get("", ()):
            array = None if name in self._skip else self._array(node, name, held)
            if array is not None:
                arrays[name] = array
        return OpenedGroup(node, metadata, arrays)

    def _array(self, node: NodePath, name: str, held: ConsolidatedMetadata) -> ArrayMetadata | None:
        documents = held.documents.get(name, {})
        known = self._known.get(name)
        if known is None or known[0] != documents:
            dumped = {key: held.dump(value) for key, value in documents.items()}
            metadata = node_of(node.join(name), dumped, None)
            array = metadata if isinstance(metadata, ArrayMetadata) else None
            self._known[name] = known = documents, array
        return known[1]


def _without_consolidated(
    numbers: Sequence[int],
    nodes: Sequence[NodePath],
    first: OpenedGroup,
    tags: dict[str, str] | None,
) -> dict[int, OpenedGroup]:
    """Open groups without consolidated metadata: the documents of all their arrays together.

    The arrays are taken from the first group; they are not listed. Groups without these are left.
    """
    if not numbers:
        return {}
    shared, names, store = SharedMetadata(), list(first.arrays), nodes[numbers[0]].store
    rounds = Search(first.metadata.zarr_format).rounds(nodes[numbers[0]].layout)
    paths = [nodes[number].join(name).path for number in numbers for name in ["", *names]]
    documents = iter(read_documents(store, paths, rounds, tags))
    opened = {}
    for number in numbers:
        node, arrays, own_tags = nodes[number], {}, {}
        own = parse(next(documents))
        for name in names:
            member = node.join(name)
            metadata = shared.parse(member, next(documents))
            if isinstance(metadata, ArrayMetadata):
                arrays[name] = metadata
                own_tags[name] = tag_of(member, metadata, tags), ""
        if isinstance(own, GroupMetadata) and len(arrays) == len(names):
            opened[number] = OpenedGroup(node, own, arrays, own_tags)
    return opened
