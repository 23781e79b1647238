"""``pyramid``: the levels of an array at lower resolutions, computed in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import count, pairwise
from math import prod
from typing import Any

from zarrdask import config
from zarrdask.errors import MetadataError, NodeTypeError, one_of
from zarrdask.execution.executor import workers
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.recorded import check_begun
from zarrdask.indexing.selection import axis_number
from zarrdask.metadata.convert import Changes, convert
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.open_group import open as open_node
from zarrdask.nodes.options import checks_booleans
from zarrdask.plan.strategies import FAR, NEAR, Costs, Grids, Scheme, Stage
from zarrdask.pyramids.blocks import Blocks, Sizes
from zarrdask.pyramids.conventions import Convention, find_convention
from zarrdask.pyramids.kernels import Method, Reduction, check_method
from zarrdask.pyramids.levels import Borders, Level
from zarrdask.pyramids.plan import PyramidPlan
from zarrdask.rewrite.destination import Destination
from zarrdask.rewrite.node_plan import check_apart, locate_target
from zarrdask.storage.resolve import options_of_each
from zarrdask.storage.upkeep import temporary_place


@checks_booleans
def pyramid(
    source: Any,
    target: Any,
    component: str | None = None,
    *,
    levels: int | None = None,
    factors: Any = 2,
    method: Method = "mean",
    borders: Borders | None = None,
    chunks: Any = None,
    shards: Any = None,
    convention: str | None = "ome",
    max_mem: int | str = "256 MiB",
    overwrite: bool = False,
    scheduler: Any = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    **details: Any,
) -> PyramidPlan:
    """Plan to store an array at several resolutions, each computed from the one before.

    Nothing is written before the plan is executed: ``plan.execute()``. Each chunk of the source is
    decoded once, and no level is read back.

    Parameters
    ----------
    source : URL, Store or Array
        The array to read.
    target : str, os.PathLike, MutableMapping, Store or Group
        The place of the new group.
    component : str, optional
        The path of the group below `target`.
    levels : int, optional
        The number of levels, with level 0. By default, as many as it takes until the smallest one
        fits into one chunk along the axes that are reduced.
    factors : int, sequence or mapping, default 2
        The cells of a window along each axis, which become one cell of the next level. An int is
        for the last two axes; a mapping is by axis number or dimension name, and keeps all other
        axes; a sequence has one number for each axis. A sequence of these has one item for each
        level after level 0.
    method : {"mean", "nearest", "min", "max", "sum", "mode", "median"}
        How the cells of a window become one. Integers are rounded half to even; sums that exceed
        the data type become its limit. "nearest" is the cell nearest to the centre, the first of
        several; "mode" the most frequent value, the least of several.
    borders : {"trim", "pad", "partial"}, optional
        What happens at the end of an axis whose length is no multiple of the factor: the last cells
        are left out, the last cell is repeated, or the last window has fewer cells. The default is
        that of the convention.
    chunks, shards : int, str, sequence or mapping, optional
        As in `zarrdask.rechunk`, for all levels. The default is that of the source.
    convention : {"ome", None}
        How the attributes of the group describe the levels.
    max_mem : int or str, default "256 MiB"
        The bytes by which each process may grow.
    overwrite : bool, default False
        Whether a node at the target is removed when the plan is executed. Otherwise it is an error.
    scheduler : str or Client, optional
        What the plan will be executed on, as in `PyramidPlan.execute`.
    storage_options : dict, optional
        Options of fsspec for `source` and `target`. A local path takes none, and is exempt.
    source_options, target_options : dict, optional
        Options of fsspec for one of the two, instead of `storage_options`.
    **details
        Other properties of the new arrays, as in `zarrdask.rechunk`; and what the convention takes.

    Returns
    -------
    PyramidPlan
        The plan prints, draws itself in notebooks, and has a method `execute`.

    Raises
    ------
    MetadataError
        If options do not fit together, or if `max_mem` is too small: the error names the smallest
        value that works.
    UnsupportedError
        If the method can't combine values of the array's data type.
    NodeExistsError
        If there is a node at the target, or if the target lies in the source or around it.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrdask
    >>> image = zarrdask.create_array({}, shape=(4, 4), dtype="u1", chunks=2)
    >>> image[...] = np.arange(16).reshape(4, 4)
    >>> group = zarrdask.pyramid(image, {}).execute(progress=False)
    >>> group["1"][...].tolist()
    [[2, 4], [10, 12]]
    """
    of_source, of_target = options_of_each(
        storage_options, (source, source_options), (target, target_options)
    )
    memory = config.parse_size(max_mem, "max_mem")
    style = find_convention(convention)
    array = open_node(source, storage_options=of_source, consolidated=False)
    if not isinstance(array, Array):
        raise NodeTypeError(
            "a pyramid is made of an array", key="source", found=array, expected="an array"
        )
    check_method(method, array.dtype)
    node = locate_target(target, component, of_target)
    check_apart(array.node_path, node, replaces=True)
    names = {field.name for field in fields(Changes)}
    changes = {name: details.pop(name) for name in names & details.keys()}
    first = _converted(array.metadata, chunks, shards, changes)
    cells = _levels(
        array,
        levels,
        factors,
        one_of(borders or style.borders, "borders", ("trim", "pad", "partial")),
        style,
        first.read_grid.chunk_shape,
    )
    arrays = {number: first.resized(level.shape) for number, level in enumerate(cells)}
    attributes = style.attributes(
        cells,
        first.dimension_names,
        array.dtype,
        zarr_format=first.zarr_format,
        method=method,
        **details,
    )
    group = GroupMetadata(first.zarr_format, attributes)
    _, view = check_begun(node, group, overwrite=overwrite)
    targets = {
        number: Destination.new(
            node.join(cells[number].path), view.join(cells[number].path), metadata
        )
        for number, metadata in arrays.items()
    }
    steps = [
        tuple(b // a for a, b in zip(one.factors, other.factors, strict=True))
        for one, other in pairwise(cells)
    ]
    border = borders or style.borders
    reductions = tuple(Reduction(method, each, border, None) for each in steps)
    with workers(scheduler) as on:
        sizes = Sizes(
            cells,
            tuple(arrays[n].grid.chunk_shape for n in range(len(cells))),
            _pieces(array.metadata),
            array.dtype.itemsize,
            memory,
            on.threads,
            on.processes,
        )
    blocks = Blocks.plan(sizes)
    near = not (array.store.capabilities.has_latency or node.store.capabilities.has_latency)
    costs = Costs(memory, sizes.threads, sizes.processes, NEAR if near else FAR)
    parent, prefix = view.beside()
    return PyramidPlan(
        grids=Grids(array.dtype.itemsize, array.metadata.read_grid.axes, first.grid.axes),
        costs=costs,
        schemes=(_scheme(blocks, sizes, costs, arrays),),
        source=array,
        node=node,
        group=group,
        levels=cells,
        targets=targets,
        reductions=reductions,
        blocks=blocks,
        temp=temporary_place(parent, f"{prefix}packed/"),
        overwrite=overwrite,
    )


def _converted(
    metadata: ArrayMetadata, chunks: Any, shards: Any, changes: Mapping[str, Any]
) -> ArrayMetadata:
    """Return the metadata of level 0."""
    if chunks is not None and shards is None and metadata.shard is not None:
        shards = False  # the old shards need not fit the new chunks
    return convert(metadata, chunks=chunks, shards=shards, **changes)


def _pieces(metadata: ArrayMetadata) -> Shape:
    """Return the lengths of the chunks that are read; 1 along an axis where they differ."""
    axes = metadata.read_grid.axes
    return tuple(axis.lengths[0] if len(axis.lengths) == 1 else 1 for axis in axes)


# --------------------------------------------------------------------------------------------
# Levels


def _levels(
    array: Array,
    number: int | None,
    factors: Any,
    borders: Borders,
    convention: Convention,
    chunk_shape: Shape,
) -> tuple[Level, ...]:
    """Return all levels."""
    steps = _steps(factors, array)
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise MetadataError("a number of levels is an int", key="levels", found=number)
    if number is not None and number < 1:
        raise MetadataError("there is one level at least", key="levels", found=number)
    several = _is_of_each_level(factors)
    if several and number not in (None, len(steps) + 1):
        raise MetadataError(
            "there are factors for another number of levels",
            key="levels",
            found=number,
            expected=str(len(steps) + 1),
        )
    cells = [Level(convention.path(0), array.shape, (1,) * array.ndim)]
    for at in count():
        if several or number is not None:
            is_over = at == (len(steps) if several else number - 1)  # type: ignore[operator]
        else:
            is_over = _is_small(cells[-1], steps[0], borders, chunk_shape)
        if is_over:
            break
        step = steps[at] if several else steps[0]
        cells.append(cells[-1].reduced(convention.path(at + 1), step, borders))
    return tuple(cells)


def _is_small(level: Level, factors: Shape, borders: Borders, chunk_shape: Shape) -> bool:
    """Whether there is no level after this one by default."""
    axes = [
        (length, factor, chunk)
        for length, factor, chunk in zip(level.shape, factors, chunk_shape, strict=True)
        if factor > 1
    ]
    is_short = borders == "trim" and any(length < factor for length, factor, _ in axes)
    return is_short or all(length <= max(chunk, 1) for length, _, chunk in axes)


def _is_of_each_level(factors: Any) -> bool:
    """Whether there are factors for each level after level 0."""
    is_sequence = isinstance(factors, Sequence) and not isinstance(factors, str)
    return is_sequence and any(isinstance(each, Sequence | Mapping) for each in factors)


def _steps(factors: Any, array: Array) -> list[Shape]:
    """Return the factors along all axes: of all levels, or one for each level after level 0."""
    if _is_of_each_level(factors):
        return [_step(each, array) for each in factors]
    return [_step(factors, array)]


def _step(factors: Any, array: Array) -> Shape:
    """Return the factor along each axis, from what a user passes."""
    ndim, step = array.ndim, [1] * array.ndim
    if isinstance(factors, int):
        step[-2:] = [factors] * min(ndim, 2)
    elif isinstance(factors, Mapping):
        for axis, factor in factors.items():
            step[axis_number(axis, ndim, array.dimension_names, "factors")] = factor
    elif isinstance(factors, Sequence) and not isinstance(factors, str) and len(factors) == ndim:
        step = list(factors)
    else:
        raise MetadataError(
            "these are no factors for the axes of the array",
            key="factors",
            found=factors,
            expected=f"an int, {ndim} ints, or a mapping from axes to ints",
        )
    for factor in step:
        if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
            raise MetadataError(
                "a factor is an int of at least 1",
                key="factors",
                found=factor,
                expected="such as 2",
            )
    return tuple(step)


# --------------------------------------------------------------------------------------------
# Passes


def _scheme(
    blocks: Blocks, sizes: Sizes, costs: Costs, arrays: Mapping[int, ArrayMetadata]
) -> Scheme:
    """Return the passes, for the text and the drawings of a plan."""
    stages, moved = list[Stage](), 0
    nbytes = [prod(level.shape) * sizes.itemsize for level in sizes.levels]
    for span in blocks.spans:
        numbers = range(span.first, span.last + 1)
        written = sum(nbytes[n] for n in numbers if n in arrays)
        written += nbytes[span.last + 1] if span.last + 1 < len(nbytes) else 0
        units = sum(arrays[n].grid.size for n in numbers if n in arrays)
        regions = blocks.grids[span.last].cutting(span.first)
        stages.append(
            Stage(
                regions=regions,
                reads="packed" if span.first else "source",
                writes="target",
                requests=units + regions.size,
                bytes_read=nbytes[span.first],
                bytes_written=written,
                peak=span.task_bytes,
                threads=max(sizes.threads // span.at_once, 1),
                costs=costs._replace(at_once=span.at_once),
            )
        )
        moved += nbytes[span.first] + written
    return Scheme("one pass" if len(stages) == 1 else f"{len(stages)} passes", tuple(stages), moved)
