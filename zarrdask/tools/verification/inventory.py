"""``inventory``: which chunks and shards are stored, how large they are, and which are missing."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.info import dtype_name
from zarrdask.display.mosaic import mosaic_svg
from zarrdask.errors import SelectionError, TruncatedError, ZarrdaskError, one_of
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index
from zarrdask.formats.indexing.selection import Region, axis_number, find_region
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.progress import Show
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.storage.zarr.draft_store import layout_of
from zarrdask.tools.verification.check import BAD_KINDS, Problem, Tally
from zarrdask.tools.verification.inventory_report import ArrayInventory, Inventory, Span
from zarrdask.tools.verification.scan import find_nodes
from zarrdask.tools.verification.verify import check_scanned

#: The kinds of problems of metadata that keep an array out of the list.
_UNREAD = ("invalid", "unsupported", "unreadable")


@suggests_arguments
def inventory(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    per: Literal["chunk", "shard"] = "chunk",
    axis: int | str = 0,
    expect: Any = None,
    fill_only: bool = False,
    group_filter: str | Iterable[str] | None = None,
    scheduler: Any = None,
    progress: Show = False,
) -> Inventory:
    """Count the stored chunks of an array or a hierarchy, and find missing ones.

    The store is listed, and the indexes of shards are read; chunks are not. A chunk that is not
    stored reads as the fill value, and writers leave out chunks that hold only the fill value,
    unless the setting ``zarrdask.write-empty-chunks`` is on. So only `expect` defines which chunks
    should be stored.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        The array or group, as in `zarrdask.open`.
    component : str, optional
        The path of the node below `url`.
    storage_options : dict, optional
        Options of fsspec for a URL.
    per : {"chunk", "shard"}, default "chunk"
        Whether the chunks in shards are counted and expected, for which the index of each shard is
        read; or only shards, and the chunks of arrays without shards.
    axis : int or str, default 0
        The append dimension, by number or name. In a group, arrays that do not have it are counted
        along their first axis.
    expect : region, str or list of these, optional
        The chunks that should be stored: a region of the array, as slices, ``...``, or a dict of
        names of dimensions to slices; or a pattern for the paths of arrays that should be stored
        completely, such as ``"*/temperature"``. In a group, a region is ``...`` or a dict, and
        concerns the arrays that have all of its dimensions.
    fill_only : bool, default False
        Whether to decode stored chunks, to count the chunks and shards that hold only the fill
        value.
    group_filter : str or iterable of str, optional
        Patterns such as ``"/*/sweep_0"`` of the groups to count, as in `Group.walk`.
    scheduler : str or distributed.Client, optional
        The scheduler that decodes, as in `zarrdask.verify`.
    progress : bool, file or callable, default False
        Whether to show the progress of decoding, as in `zarrdask.verify`.

    Returns
    -------
    Inventory
        It prints, and notebooks show a drawing of the stored chunks. Its attribute `ok` is False if
        an expected chunk is missing.

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    SelectionError
        If no array has the append dimension, an expected region is not within an array, or nothing
        matches what is expected.
    UnsupportedError
        If the store can't be listed.

    See Also
    --------
    verify : Checks that all stored chunks can be read.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(6, 4), dtype="i4", chunks=(2, 2))
    >>> z[:4] = 7
    >>> report = zarrdask.inventory(z, expect=(slice(0, 5), slice(0, 2)))
    >>> report.ok, report.missing, report.arrays[0].stored, report.arrays[0].holes
    (False, 1, 4, ((slice(4, 6, 1), slice(0, 2, 1)),))
    """
    one_of(per, "per", ("chunk", "shard"))
    chosen = None if group_filter is None else GroupFilter.of(group_filter)
    scan = find_nodes(locate_node(url, component, storage_options), chosen)
    start = len(scan.root.prefix)
    arrays = [(path[start:], chunks) for path, chunks in scan.arrays()]
    metadata = {path: chunks.metadata for path, chunks in arrays}
    expected = expected_regions(metadata, expect)
    axes = append_axes(metadata, axis)
    counts = request_on_each(scan.base, partial(_count, per=per), [each for _, each in arrays])
    tallies: dict[str, Tally] = {}
    if fill_only:
        paths = [path for path, _ in scan.arrays()]
        scan.units = {path: each.rows for path, each in zip(paths, counts, strict=True)}
        tallies = check_scanned(scan, "inventory", scheduler=scheduler, show=progress)
    matching = [
        _report(
            path, each.metadata, count, axes[path], expected[path], tallies.get(each.prefix[:-1])
        )
        for (path, each), count in zip(arrays, counts, strict=True)
    ]
    problems = [problem for problem in scan.problems if problem.kind in _UNREAD]
    decoded = [p for tally in tallies.values() for p in tally.problems if p.kind in BAD_KINDS]
    keys = {problem.key for problem in decoded}
    problems += [p for count in counts for p in count.damaged if p.key not in keys]
    return Inventory(scan.root.location, tuple(matching), (*problems, *decoded))


# --------------------------------------------------------------------------------------------
# What is expected


def expected_regions(arrays: Mapping[str, ArrayMetadata], expect: Any) -> dict[str, list[Region]]:
    """Return the regions that should be stored of each array, by its path."""
    expected: dict[str, list[Region]] = {path: [] for path in arrays}
    for each in _listed(expect):
        paths = list(_concerned(arrays, each))
        if not paths:
            raise SelectionError(
                "no array or dimension has this name",
                key="expect",
                found=each,
                expected=f"arrays, or dimensions of them: {', '.join(arrays) or 'there are none'}",
            )
        for path in paths:
            metadata = arrays[path]
            region = ... if isinstance(each, str) else each
            names = metadata.dimension_names
            expected[path].append(find_region(region, metadata.shape, names, "expect"))
    return expected


def _listed(expect: Any) -> list[Any]:
    if expect is None:
        return []
    return expect if isinstance(expect, list) else [expect]


def _concerned(arrays: Mapping[str, ArrayMetadata], expect: Any) -> Iterator[str]:
    """Yield the paths of the arrays that an expectation is about."""
    is_array = list(arrays) == [""]
    for path, metadata in arrays.items():
        if isinstance(expect, str):
            is_concerned = fnmatchcase(path, expect)
        elif isinstance(expect, Mapping) and not is_array:
            is_concerned = set(expect) <= set(metadata.dimension_names or ())
        else:
            is_concerned = is_array or expect is ...
        if is_concerned:
            yield path


# --------------------------------------------------------------------------------------------
# The append dimension


def append_axes(arrays: Mapping[str, ArrayMetadata], axis: Any) -> dict[str, int | None]:
    """Return the number of the append dimension of each array, by its path.

    It is the first axis in arrays that do not have this dimension, and None in those without axes.
    """
    numbers: dict[str, int | None] = dict.fromkeys(arrays)
    shaped = {path: metadata for path, metadata in arrays.items() if metadata.shape}
    number_missing = 0
    for path, metadata in shaped.items():
        try:
            numbers[path] = axis_number(axis, len(metadata.shape), metadata.dimension_names)
        except SelectionError:
            numbers[path] = 0
            number_missing += 1
    if shaped and number_missing == len(shaped):
        names = {name for each in shaped.values() for name in each.dimension_names or () if name}
        raise SelectionError(
            "no array has such an axis",
            key="axis",
            found=axis,
            expected=f"one of {sorted(names)}" if names else "a number: the axes have no names",
        )
    return numbers


# --------------------------------------------------------------------------------------------
# What is stored


class Count(NamedTuple):
    """The counts of one array."""

    #: The index of each stored chunk or shard, a row each, and its size in bytes.
    rows: np.ndarray
    sizes: np.ndarray
    #: Which chunks are stored; in a sharded array whose shards alone are counted, which shards.
    is_stored: np.ndarray
    #: The grid of these chunks or shards.
    grid: ChunkGrid
    #: Whether these are all chunks, not shards alone.
    has_chunks: bool
    #: The shards whose indexes are damaged.
    damaged: tuple[Problem, ...] = ()


def _count(chunks: StoredChunks, *, per: Literal["chunk", "shard"]) -> Count:
    """List an array, and read the indexes of its shards unless only shards are counted."""
    rows, sizes = array("q"), array("q")
    for unit, size in StoredUnits(chunks).sizes():
        rows.extend(unit)
        sizes.append(size)
    metadata = chunks.metadata
    units = np.array(rows, np.int64).reshape(len(sizes), len(metadata.shape))
    grid = metadata.grid if per == "shard" else metadata.read_grid
    damaged: list[Problem] = []

    def report(unit: Index, error: ZarrdaskError) -> None:
        kind = "truncated" if isinstance(error, TruncatedError) else "corrupt"
        key = layout_of(chunks.store).real(chunks.key(unit))
        damaged.append(Problem(kind, chunks.prefix.rstrip("/"), key, str(error), unit))

    is_stored = StoredUnits(chunks).map(per, map(tuple, units.tolist()), report)
    has_chunks = per == "chunk" or metadata.shard is None
    lengths = np.array(sizes, np.int64)
    return Count(units, lengths, is_stored, grid, has_chunks, tuple(damaged))


def _report(
    path: str,
    metadata: ArrayMetadata,
    count: Count,
    axis: int | None,
    expected: list[Region],
    tally: Tally | None,
) -> ArrayInventory:
    """Return the counts of an array, and the missing parts of the expected regions."""
    names = metadata.dimension_names or (None,) * len(metadata.shape)
    shown = tuple(name or str(number) for number, name in enumerate(names))
    is_expected = np.zeros(count.is_stored.shape, bool)
    for region in expected:
        axes = zip(count.grid.axes, region, strict=True)
        numbers = [each.numbers(pick) for each, pick in axes]
        is_expected[tuple(slice(each.start, each.stop) for each in numbers)] = True
    is_missing = is_expected & ~count.is_stored
    stored = int(np.count_nonzero(count.is_stored))
    is_part = 0 < stored < count.is_stored.size
    return ArrayInventory(
        path,
        metadata.shape,
        dtype_name(metadata),
        metadata.grid.size,
        len(count.rows),
        metadata.read_grid.size,
        stored if count.has_chunks else None,
        int(count.sizes.sum()),
        None if tally is None else tally.fill_only,
        None if axis is None else shown[axis],
        () if axis is None else tuple(_spans(metadata, count, axis)),
        shown,
        int(np.count_nonzero(is_expected)),
        int(np.count_nonzero(is_missing)),
        tuple(_elements(count.grid, box) for box in boxes(is_missing)),
        "chunk" if metadata.shard is None else "shard",
        mosaic_svg(count.is_stored, shown) if is_part else "",
    )


def _spans(metadata: ArrayMetadata, count: Count, axis: int) -> Iterator[Span]:
    """Yield the parts of an axis along which equally many chunks or shards are stored."""
    grid, edges = metadata.grid, metadata.grid.axes[axis].edges
    lines = grid.counts[axis]
    if not lines:
        return
    stored = np.bincount(count.rows[:, axis], minlength=lines)
    sizes = np.bincount(count.rows[:, axis], count.sizes, lines).astype(np.int64)
    units = np.full(lines, grid.size // lines)
    others = tuple(each for each in range(count.is_stored.ndim) if each != axis)
    totals, nchunks, in_chunks = count.is_stored.sum(others), units, stored
    if count.has_chunks and metadata.shard is not None:
        first = edges[:-1] // metadata.read_grid.chunk_shape[axis]
        in_chunks = np.add.reduceat(totals, first)
        per_line = count.is_stored.size // len(totals)
        nchunks = np.diff(np.append(first, len(totals))) * per_line
    alike = np.stack([stored, in_chunks, nchunks], axis=1)
    begins = np.flatnonzero(np.append(True, (alike[1:] != alike[:-1]).any(axis=1)))
    for a, b in pairwise([*begins.tolist(), lines]):
        all_units, all_stored, all_chunks, chunks_stored, size = (
            int(each[a:b].sum()) for each in (units, stored, nchunks, in_chunks, sizes)
        )
        start, stop = int(edges[a]), min(int(edges[b]), metadata.shape[axis])
        if count.has_chunks:
            yield Span(start, stop, all_units, all_stored, all_chunks, chunks_stored, size)
        else:
            yield Span(start, stop, all_units, all_stored, None, None, size)


def _elements(grid: ChunkGrid, box: Region) -> Region:
    """Return the elements of the array in a box of chunks."""
    spans = [
        slice(axis.start(pick.start), min(axis.start(pick.stop), axis.size), 1)
        for axis, pick in zip(grid.axes, box, strict=True)
    ]
    return tuple(spans)


def boxes(mask: np.ndarray) -> list[Region]:
    """Return regions that do not overlap and cover the true elements of an array, in C order.

    Neighbouring elements are joined along the last axis first.

    >>> boxes(np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0]], bool)) == [
    ...     (slice(0, 2, 1), slice(1, 3, 1)),
    ...     (slice(2, 3, 1), slice(0, 1, 1)),
    ... ]
    True
    """
    if not mask.any():
        return []
    if not mask.ndim:
        return [()]
    rows = mask.reshape(-1, mask.shape[-1])
    steps = np.diff(np.pad(rows, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, begin = np.nonzero(steps == 1)
    above = np.unravel_index(row, mask.shape[:-1]) if mask.ndim > 1 else ()
    starts = np.stack([*above, begin], axis=1)
    stops = starts + 1
    stops[:, -1] = np.nonzero(steps == -1)[1]
    for axis in reversed(range(mask.ndim - 1)):
        others = [each for each in range(mask.ndim) if each != axis]
        sides = np.concatenate([starts[:, others], stops[:, others]], axis=1)
        order = np.lexsort((starts[:, axis], *sides.T))
        starts, stops, sides = starts[order], stops[order], sides[order]
        is_same = (sides[1:] == sides[:-1]).all(axis=1)
        is_joined = is_same & (starts[1:, axis] == stops[:-1, axis])
        ends = stops[np.append(~is_joined, True)[: len(stops)], axis]
        is_first = np.append(True, ~is_joined)[: len(starts)]
        starts, stops = starts[is_first], stops[is_first]
        stops[:, axis] = ends
    order = np.lexsort(starts.T[::-1])
    pairs = zip(starts[order].tolist(), stops[order].tolist(), strict=True)
    return [tuple(map(_unit_slice, start, stop)) for start, stop in pairs]


def _unit_slice(start: int, stop: int) -> slice:
    return slice(start, stop, 1)
