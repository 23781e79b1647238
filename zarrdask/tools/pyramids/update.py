"""``update_pyramid``: compute again the parts of levels that a change of level 0 affects."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from zarrdask import config
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.errors import MetadataError
from zarrdask.formats.indexing.selection import Region, find_region
from zarrdask.parallel.execution.executor import workers
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.parallel.rewrite.node_plan import locate_target
from zarrdask.tools.pyramids.changed import ChangedUnits, changed_bounds, whole_bounds
from zarrdask.tools.pyramids.conventions import find_convention
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.level_blocks import Bounds
from zarrdask.tools.pyramids.levels import Level
from zarrdask.tools.pyramids.planning import Resources, plan_passes
from zarrdask.tools.pyramids.pyramid_changes import is_adding
from zarrdask.tools.pyramids.pyramid_update import PyramidUpdate
from zarrdask.tools.pyramids.record import PyramidRecord
from zarrdask.tools.pyramids.sources import PyramidSource


@checks_booleans
def update_pyramid(
    url: Any,
    component: str | None = None,
    *,
    region: Any = None,
    max_mem: int | str = "256 MiB",
    scheduler: Any = None,
    storage_options: dict[str, Any] | None = None,
) -> PyramidUpdate:
    """Plan to compute the levels of a pyramid again where level 0 has changed.

    Nothing is written before the plan is executed: ``plan.execute()``. Then only chunks and shards
    that the change reaches are written, and the levels equal the levels of a new pyramid. If the
    shape of level 0 has changed, the other levels are resized after their chunks are stored. After
    an interrupted update, repeat the call.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store or Group
        The location of the pyramid, which `zarrdask.pyramid` has written.
    component : str, optional
        The path of the group below `url`.
    region : tuple of slice, or dict of str to slice, optional
        The region of level 0 that has changed, by axis or by dimension name. The default is the
        smallest one with all chunks or shards that have another version (ETag, or time) than when
        the levels were computed. If these versions are unknown, as other software has copied the
        pyramid, it is the part that was appended, or all of level 0.
    max_mem : int or str, default "256 MiB"
        The bytes by which each process may grow.
    scheduler : str or Client, optional
        The scheduler that will execute the plan, as in `PyramidUpdate.execute`.
    storage_options : dict, optional
        Options of fsspec for `url`.

    Returns
    -------
    PyramidUpdate
        The plan. It prints, and its `execute` returns the group.

    Raises
    ------
    MetadataError
        If the group has no record of the pyramid, level 0 is not in the group, or `max_mem` is too
        small.
    SelectionError
        If the region does not fit level 0.

    Examples
    --------
    >>> import zarrdask
    >>> image = zarrdask.create_array({}, shape=(4, 4), dtype="u1", chunks=2)
    >>> group = zarrdask.pyramid(image, {}).execute(progress=False)
    >>> group["0"][:2, :2] = 8
    >>> plan = zarrdask.update_pyramid(group, region=(slice(0, 2), slice(0, 2)))
    >>> plan.execute(progress=False)["1"][...].tolist()
    [[8, 0], [0, 0]]
    """
    memory = config.parse_size(max_mem, "max_mem")
    node = locate_target(url, component, storage_options)
    group = open_group(*node, mode="r+", consolidated=False)
    node = group.node_path
    record = before = PyramidRecord.read(node)
    if not record.has_level_0:
        raise MetadataError(
            "level 0 is not in the group; build the pyramid again from its source",
            key=record.levels[0].path,
            found=node.location,
        )
    arrays = tuple(_member(group, level.path) for level in record.levels)
    first = arrays[0]
    levels = _levels(record, first)
    # Before level 0 is read, so that concurrent changes by other writers are noticed later.
    now = UnitVersions.of(chunks_of(first), record.versions)
    units = ChangedUnits.between(record.versions, now, first.metadata.grid)
    given = None if region is None else _bounds(region, first)
    changed = changed_bounds(record.levels[0].shape, first.shape, given, units)
    is_resized = [a.shape != b.shape for a, b in zip(arrays, record.levels, strict=True)]
    if any(is_resized[1:]):
        changed = whole_bounds(first.shape)  # other software has resized a level
    is_same = not any(is_resized) and any(start >= stop for start, stop in changed)
    is_unfinished = is_adding(node)
    if is_same and not is_unfinished:
        return PyramidUpdate(node, before, None, arrays, _whole(changed), None, {})
    versions = record.versions
    if changed == whole_bounds(first.shape):
        versions = now
    elif units is not None:
        versions = now.marked(units.outside(changed))
    record = replace(record, levels=levels, versions=versions)
    # An update that was interrupted may have stored all but the attributes.
    is_described = levels == before.levels and not is_unfinished
    attributes = {} if is_described else _attributes(record, first)
    if is_same or len(levels) == 1:
        return PyramidUpdate(node, before, record, arrays, _whole(changed), None, attributes)
    steps = [one.factors_to(other) for one, other in pairwise(levels)]
    reductions = tuple(Reduction(record.method, n, record.borders, record.missing) for n in steps)
    targets = {
        n: Destination.new(array.node_path, array.node_path, array.metadata.resized(level.shape))
        for n, (array, level) in enumerate(zip(arrays, levels, strict=True))
        if n
    }
    with workers(scheduler) as on:
        plan = plan_passes(
            PyramidSource(first.metadata, first),
            node,
            levels,
            targets,
            reductions,
            Resources(memory, on, _aligned(changed, levels)),
            node=node,
            group=group.metadata,
            overwrite=False,
            is_inside=True,
            record=record,
            changed={n: _reached(changed, level) for n, level in enumerate(levels)},
        )
    return PyramidUpdate(node, before, record, arrays, _whole(changed), plan, attributes)


def _whole(changed: Bounds) -> Region:
    """Return the bounds of a change as a region of level 0."""
    return tuple(slice(start, max(start, stop), 1) for start, stop in changed)


def _member(group: Group, path: str) -> Array:
    array = group[path]
    if not isinstance(array, Array):
        raise MetadataError("a level must be an array", key=path, found=array)
    return array


def _levels(record: PyramidRecord, first: Array) -> tuple[Level, ...]:
    """Return the levels of level 0 as it is now."""
    levels = [replace(record.levels[0], shape=first.shape)]
    for before, level in pairwise(record.levels):
        factors = before.factors_to(level)
        levels.append(levels[-1].reduced(level.path, factors, record.borders))
    return tuple(levels)


def _bounds(region: Any, array: Array) -> Bounds:
    """Return a region as a user passes it."""
    picks = find_region(region, array.shape, array.dimension_names, "region")
    return tuple((pick.start, pick.stop) for pick in picks)


def _aligned(changed: Bounds, levels: tuple[Level, ...]) -> Bounds:
    """Return bounds at the borders of cells of the coarsest level."""
    axes = zip(changed, levels[0].shape, levels[-1].factors, strict=True)
    return tuple(
        (start // n * n, min(-(-stop // n) * n, length)) for (start, stop), length, n in axes
    )


def _reached(changed: Bounds, level: Level) -> Region:
    """Return the cells of a level that depend on a region of level 0."""
    axes = zip(changed, level.shape, level.factors, strict=True)
    return tuple(
        slice(min(start // n, length), min(-(-stop // n), length), 1)
        for (start, stop), length, n in axes
    )


def _attributes(record: PyramidRecord, first: Array) -> dict[str, Any]:
    """Return the attributes of the group, which may depend on the shape of level 0."""
    if record.details is None:
        return {}
    # Display settings stay as they are stored: they do not depend on the shape.
    details = {name: value for name, value in record.details.items() if name != "omero"}
    return dict(
        find_convention(record.convention).attributes(
            record.levels,
            first.dimension_names,
            first.dtype,
            zarr_format=first.zarr_format,
            method=record.method,
            **details,
        )
    )
