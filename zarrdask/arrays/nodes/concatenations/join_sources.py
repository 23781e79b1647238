"""Join the sources that a user passes: arrays, or groups by names of dimensions."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.members.concatenation import Member
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.concatenations.concat_groups import GroupJoin, Level, concat_groups
from zarrdask.arrays.nodes.concatenations.group_table import open_groups
from zarrdask.arrays.nodes.concatenations.joined_metadata import portable_names
from zarrdask.arrays.nodes.concatenations.member_documents import (
    FoundNode,
    SharedMetadata,
    find_nodes,
    locate_nodes,
)
from zarrdask.arrays.nodes.concatenations.member_table import MemberTable, join
from zarrdask.arrays.nodes.concatenations.source_table import Source, SourceTable, parse_sources
from zarrdask.arrays.nodes.node import is_group_error
from zarrdask.display.words import counted
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    SelectionError,
    ZarrdaskError,
    one_of,
)
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import axis_number, basic, index_by_name, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata

Options = dict[str, Any] | None
#: The modules with other verbs that make concatenations. Each has a function ``remake``, which
#: takes the concatenation, the arguments in its recipe and the storage options; it is imported when
#: such a concatenation is refreshed.
MAKERS = {"open_many": "zarrdask.xarray.many_stores"}


def concat_sources(
    sources: Any, axis: Any, component: str | None, options: Options, missing: str
) -> ConcatenatedStore:
    """Return sources joined along existing axes; see `zarrdask.concat`."""
    one_of(missing, "missing", ("error", "fill"))
    table = parse_sources(sources, options)
    recipe = recipe_of("concat", sources, axis=axis, component=component, missing=missing)
    if _are_groups(table, component, options):
        return _concat_groups(table, axis, component, options, recipe)
    members = _open(table, component, options, missing)
    names = portable_names(members.first)
    axes = _axes(axis, members.counts, members.ndim, names)
    return ConcatenatedStore({"": join(members, axes, (), names)}, recipe=recipe)


def stack_sources(
    sources: Any,
    axis: Any,
    component: str | None,
    options: Options,
    missing: str,
    dimension_names: Any,
) -> ConcatenatedStore:
    """Return sources joined along new axes; see `zarrdask.stack`."""
    one_of(missing, "missing", ("error", "fill"))
    members = _open(parse_sources(sources, options), component, options, missing)
    counts, ndim = members.counts, members.ndim
    if isinstance(axis, str):
        raise MetadataError(
            "the axis is the position of the new one; dimension_names gives it a name",
            key="axis",
            found=axis,
            expected="an integer",
        )
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    if len(given) == 1 < len(counts):
        given = [int(given[0]) + level for level in range(len(counts))]
    axes = _axes(given, counts, ndim + len(counts), None)
    labels = [dimension_names] if isinstance(dimension_names, str) else dimension_names
    if labels is not None and (not isinstance(labels, Sequence) or len(labels) != len(axes)):
        raise MetadataError(
            "there must be one name for each new axis",
            key="dimension_names",
            found=dimension_names,
            expected=f"{counted(len(axes), 'name')}; None stands for no name",
        )
    names = portable_names(members.first)
    if labels is not None or names is not None:
        added = dict(zip(axes, labels or [None] * len(axes), strict=True))
        own = iter(names or [None] * ndim)
        names = tuple(added[i] if i in axes else next(own) for i in range(ndim + len(counts)))
    recipe = recipe_of(
        "stack",
        sources,
        axis=given,
        component=component,
        missing=missing,
        dimension_names=dimension_names,
    )
    return ConcatenatedStore({"": join(members, axes, axes, names)}, recipe=recipe)


def remake(store: ConcatenatedStore, options: Options) -> ConcatenatedStore:
    """Return the concatenation that the recipe of another one makes now."""
    recipe = dict(store.recipe or {})
    verb = str(recipe.pop("verb", "concat"))
    try:
        if verb in MAKERS:
            made: ConcatenatedStore = import_module(MAKERS[verb]).remake(store, recipe, options)
            return made
        return (stack_sources if verb == "stack" else concat_sources)(**recipe, options=options)
    except (TypeError, KeyError) as error:
        if isinstance(error, ZarrdaskError):
            raise
        raise MetadataError(
            "the saved concatenation does not say how to make it again; save it anew",
            key=store.url,
            found=verb,
            expected="the arguments of concat, stack or open_many",
        ) from error


def recipe_of(verb: str, sources: Any, **arguments: Any) -> dict[str, Any] | None:
    """Return the arguments as JSON; None if the sources are not texts."""
    texts = _texts(sources)
    return None if texts is None else {"verb": verb, "sources": texts, **arguments}


def _texts(sources: Any) -> Any:
    if isinstance(sources, list):
        each = [_texts(source) for source in sources]
        return None if None in each else each
    if not isinstance(sources, str | os.PathLike):
        return None
    text = os.fsdecode(sources)
    return text if "://" in text or "::" in text else os.path.abspath(os.path.expanduser(text))


# --------------------------------------------------------------------------------------------
# Groups


def _are_groups(table: SourceTable, component: str | None, options: Options) -> bool:
    """Whether the first source is a group."""
    first = next((source for source in table.sources if source is not None), None)
    if first is None or isinstance(first.array, Array):
        return False
    try:
        metadata = locate_node(first.array, component, options).find(consolidated="own")[1]
    except NodeNotFoundError:
        return False
    return isinstance(metadata, GroupMetadata)


def _concat_groups(
    table: SourceTable, axis: Any, component: str | None, options: Options, recipe: Any
) -> ConcatenatedStore:
    dims = [axis] if isinstance(axis, str) else axis
    is_named = isinstance(dims, Sequence) and all(isinstance(dim, str) for dim in dims)
    if not is_named or len(dims) != len(table.counts):
        raise MetadataError(
            "groups are joined along named dimensions; pass axis='time', or component='path' to "
            "join an array of each",
            key="axis",
            found=axis,
            expected=f"{len(table.counts)} names",
        )
    if any(source is None or source.region is not None for source in table.sources):
        raise MetadataError(
            "sources that are groups are joined as a whole, and none may be missing",
            key="sources",
            expected="URLs, paths, stores or groups",
        )
    arrays = [source.array for source in table.sources if source is not None]
    groups = open_groups(arrays, table.counts, component=component, storage_options=options)
    store = concat_groups(groups, GroupJoin([Level(dim, is_new=False) for dim in dims]))
    store.recipe = recipe
    return store


# --------------------------------------------------------------------------------------------
# Arrays


def _open(
    table: SourceTable, component: str | None, storage_options: Options, missing: str
) -> MemberTable:
    nodes = _find(table.sources, component, storage_options)
    shared, labelled = SharedMetadata(), list[ArrayMetadata | None]()
    members = list[Member | None]()
    for source, (found, chunks_missing) in zip(table.sources, nodes, strict=True):
        if source is None or found is None:
            members.append(None)
            labelled.append(None)
            continue
        node, metadata, tag = found
        if metadata is None:
            if missing == "error":
                raise NodeNotFoundError(
                    'there is no array here; missing="fill" reads it as the fill value',
                    key=node.location,
                )
            members.append(None)
            labelled.append(None)
            continue
        if not isinstance(metadata, ArrayMetadata):
            raise is_group_error(
                "a group can't be joined as an array; pass component='path/to/array', the path "
                "of an array in each source",
                node.location,
            )
        labelled.append(metadata)
        bare = shared.bare(metadata)
        region, axes = _region(source.region, metadata)
        members.append(Member(node.store, node.prefix, bare, region, axes, chunks_missing, tag))
    if not any(labelled):
        raise NodeNotFoundError(
            "there is no array at any of the sources", key="sources", found=len(members)
        )
    return MemberTable(table.counts, members, labelled, storage_options)


def _find(
    sources: list[Source | None], component: str | None, storage_options: dict[str, Any] | None
) -> list[tuple[FoundNode | None, Any]]:
    """Return the node of each source, and how its missing chunks are read."""
    chosen: list[tuple[FoundNode | None, Any]] = [(None, None)] * len(sources)
    urls = list[int]()
    for number, source in enumerate(sources):
        if source is not None and isinstance(source.array, Array):
            array = source.array
            stored = chunks_of(array)
            node = NodePath(stored.store, array.path)
            chosen[number] = FoundNode(node, array.metadata), stored.missing
        elif source is not None:
            urls.append(number)
    nodes = locate_nodes(
        (sources[number].array for number in urls),  # type: ignore[union-attr]
        component,
        storage_options,
    )
    for number, found in zip(urls, find_nodes(nodes, SharedMetadata()), strict=True):
        chosen[number] = found, "fill"
    return chosen


def _region(region: Any, metadata: ArrayMetadata) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return the region of a member, and the axes that it has."""
    if region is None:
        return whole_region(metadata.shape), tuple(range(len(metadata.shape)))
    if isinstance(region, Mapping):
        region = index_by_name(region, metadata.dimension_names)
    selection = basic(region, metadata.shape)
    if selection.turn is not None or None in selection.finish:
        raise SelectionError(
            "a region of a source has no new axes, and its steps are positive",
            key="sources",
            found=region,
            expected="integers and slices",
        )
    return selection.slices, selection.kept


def _axes(
    axis: Any, counts: Shape, ndim: int, names: Sequence[str | None] | None
) -> tuple[int, ...]:
    """Return the axis of the result for each level of lists."""
    levels = len(counts)
    if isinstance(axis, str) or not isinstance(axis, Sequence):
        if levels > 1:
            if axis != 0:
                raise MetadataError(
                    "nested lists are joined along several axes; pass one for each level",
                    key="axis",
                    found=axis,
                    expected=f"{levels} axes",
                )
            axis = range(ndim - levels, ndim)
        else:
            axis = [axis]
    if len(axis) != levels:
        raise MetadataError(
            "there must be one axis for each level of lists",
            key="axis",
            found=list(axis),
            expected=f"{levels} axes",
        )
    if levels > ndim:
        raise MetadataError(
            "the sources have fewer axes than the lists have levels",
            key="sources",
            found=levels,
            expected=f"at most {ndim} levels",
        )
    numbers = tuple(axis_number(each, ndim, names) for each in axis)
    if len(set(numbers)) != levels:
        raise MetadataError("an axis is given twice", key="axis", found=list(axis))
    return numbers
