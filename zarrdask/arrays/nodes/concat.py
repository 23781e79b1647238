"""The functions that show many stored arrays as one: `concat` and `stack`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from zarrdask.arrays.chunks.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.concatenation import Concatenation, Member
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.concatenated import ConcatenatedArray
from zarrdask.arrays.nodes.member_documents import SharedMetadata, find_nodes, locate_nodes
from zarrdask.arrays.nodes.member_table import MemberTable, join
from zarrdask.arrays.nodes.node import is_group_error
from zarrdask.arrays.nodes.source_table import Source, parse_sources
from zarrdask.errors import MetadataError, NodeNotFoundError, SelectionError, one_of
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import axis_number, basic, index_by_name, whole_region
from zarrdask.formats.metadata.concatenated import portable_names
from zarrdask.formats.metadata.model import ArrayMetadata


@suggests_arguments
def concat(
    sources: Any,
    axis: int | str | Sequence[int | str] = 0,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    missing: Literal["error", "fill"] = "error",
) -> ConcatenatedArray:
    """Return stored arrays, one after another along an axis, as one array.

    Only metadata is read: the documents of all arrays are requested together. The result is read
    as any stored array, also by `from_zarr`, where it is one symbolic layer. A slice reads only
    the arrays that it overlaps.

    Parameters
    ----------
    sources : str, list or nested lists
        The arrays: URLs, paths, stores, arrays, and pairs of one of these and a region of it (a
        basic index, or a dict by names of dimensions). A text may be a pattern
        (``"s3://bucket/era5-*.zarr"``), which is listed once and sorted naturally. Nested lists
        are a table in several dimensions, as for `dask.array.block`. None stands for a missing
        array, which is read as the fill value.
    axis : int, str or sequence of them, default 0
        The axis along which the arrays are joined, by number or by the name of the dimension; of
        nested lists, one for each level. By default, nested lists are joined along the last axes.
    component : str, optional
        The path of the array within each source that is no array.
    storage_options : dict, optional
        Options for fsspec, for all URLs.
    missing : {"error", "fill"}
        What is done if there is no array at one of the sources.

    Returns
    -------
    ConcatenatedArray
        The array, opened for reading only. Its fill value and its codecs are those of the first
        source, and its attributes those that all sources have in common. Different data types are
        promoted as by NumPy, as far as the setting ``zarrdask.casting`` permits it.

    Raises
    ------
    NodeNotFoundError
        If there is no array at one of the sources, or nothing matches a pattern.
    MetadataError
        If the shapes do not fit together.
    UnsupportedError, CodecError
        If the data types have none in common, or the setting does not permit the cast.

    See Also
    --------
    stack : Joins arrays along a new axis.

    Examples
    --------
    >>> import zarrdask
    >>> days = [zarrdask.create_array({}, shape=(24, 6), dtype="f4") for _ in range(3)]
    >>> concat(days).shape, concat([days, days]).shape
    ((72, 6), (48, 18))
    """
    table = _open(sources, component, storage_options, missing)
    names = portable_names(table.first)
    axes = _axes(axis, table.counts, table.ndim, names)
    return _as_array(join(table, axes, (), names))


@suggests_arguments
def stack(
    sources: Any,
    axis: int | Sequence[int] = 0,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    missing: Literal["error", "fill"] = "error",
    dimension_names: str | Sequence[str | None] | None = None,
) -> ConcatenatedArray:
    """Return stored arrays of one shape as one array with a new axis.

    Parameters
    ----------
    sources, component, storage_options, missing
        As in `concat`.
    axis : int or sequence of int, default 0
        The position of the new axis in the result; of nested lists, that of one for each level.
    dimension_names : str or sequence, optional
        The names of the new axes.

    Returns
    -------
    ConcatenatedArray
        The array, as `concat` returns it.

    Raises
    ------
    NodeNotFoundError, MetadataError, UnsupportedError, CodecError
        As `concat`.

    Examples
    --------
    >>> import zarrdask
    >>> runs = [zarrdask.create_array({}, shape=(24, 6), dtype="f4") for _ in range(3)]
    >>> stack(runs, axis=1).shape
    (24, 3, 6)
    """
    table = _open(sources, component, storage_options, missing)
    counts, ndim = table.counts, table.ndim
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    if len(given) == 1 < len(counts):
        given = [int(given[0]) + level for level in range(len(counts))]
    axes = _axes(given, counts, ndim + len(counts), None)
    labels = [dimension_names] if isinstance(dimension_names, str) else dimension_names
    names = portable_names(table.first)
    if labels is not None or names is not None:
        added = dict(zip(axes, labels or [None] * len(axes), strict=False))
        own = iter(names or [None] * ndim)
        names = tuple(added.get(i) if i in axes else next(own) for i in range(ndim + len(counts)))
    return _as_array(join(table, axes, axes, names))


def _open(
    sources: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    missing: str,
) -> MemberTable:
    one_of(missing, "missing", ("error", "fill"))
    table = parse_sources(sources, storage_options)
    nodes = _find(table.sources, component, storage_options)
    shared, labelled = SharedMetadata(), list[ArrayMetadata | None]()
    members = list[Member | None]()
    for source, (node, metadata, chunks_missing) in zip(table.sources, nodes, strict=True):
        if source is None:
            members.append(None)
            labelled.append(None)
            continue
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
        members.append(Member(node.store, node.prefix, bare, region, axes, chunks_missing))
    if not any(labelled):
        raise NodeNotFoundError(
            "there is no array at any of the sources", key="sources", found=len(members)
        )
    return MemberTable(table.counts, members, labelled, storage_options)


def _find(
    sources: list[Source | None], component: str | None, storage_options: dict[str, Any] | None
) -> list[tuple[Any, Any, Any]]:
    """Return the node, the metadata, and how missing chunks are read, of each source."""
    found: list[tuple[Any, Any, Any]] = [(None, None, None)] * len(sources)
    urls = list[int]()
    for number, source in enumerate(sources):
        if source is not None and isinstance(source.array, Array):
            array = source.array
            stored = chunks_of(array)
            found[number] = NodePath(stored.store, array.path), array.metadata, stored.missing
        elif source is not None:
            urls.append(number)
    nodes = locate_nodes(
        (sources[number].array for number in urls),  # type: ignore[union-attr]
        component,
        storage_options,
    )
    for number, node, metadata in zip(
        urls, nodes, find_nodes(nodes, SharedMetadata()), strict=True
    ):
        found[number] = node.current, metadata, "fill"
    return found


def _region(region: Any, metadata: ArrayMetadata) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return the region of a member, and the axes that it has."""
    if region is None:
        return whole_region(metadata.shape), tuple(range(len(metadata.shape)))
    if isinstance(region, Mapping):
        region = index_by_name(region, metadata.dimension_names)
    selection = basic(region, metadata.shape)
    if selection.turn is not None:
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


def _as_array(array: Concatenation) -> ConcatenatedArray:
    return ConcatenatedArray(NodePath(ConcatenatedStore({"": array}), ""), array.metadata)
