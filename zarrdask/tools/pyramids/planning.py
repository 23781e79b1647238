"""Plans of pyramids: the arrays of all levels, and the passes that compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Literal

from zarrdask.arrays.hierarchy.changes.recorded import check_begun
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.parallel.execution.executor import Workers
from zarrdask.parallel.plan.strategies import Costs, Grids, Scheme, Stage
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.tools.conventions.pyramids import parse_multiscales
from zarrdask.tools.pyramids.changed import whole_bounds
from zarrdask.tools.pyramids.conventions import Convention
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.labels import image_levels, is_label
from zarrdask.tools.pyramids.level_blocks import Blocks, Bounds, Sizes
from zarrdask.tools.pyramids.level_factors import Steps
from zarrdask.tools.pyramids.levels import Borders, Level
from zarrdask.tools.pyramids.missing_values import default_method, find_missing
from zarrdask.tools.pyramids.plan import PyramidPlan
from zarrdask.tools.pyramids.pyramid_changes import is_adding
from zarrdask.tools.pyramids.record import PyramidRecord
from zarrdask.tools.pyramids.sources import PyramidSource


@dataclass(frozen=True, kw_only=True)
class PyramidOptions:
    """The options of a pyramid; see `zarrdask.pyramid`."""

    levels: int | None
    factors: Any
    method: str | None
    skipna: bool | Literal["fill"]
    borders: Borders
    has_level_0: bool
    name: str | None
    convention: Convention
    details: Mapping[str, Any]
    memory: int
    overwrite: bool
    on: Workers


def plan_pyramid(source: PyramidSource, node: NodePath, options: PyramidOptions) -> PyramidPlan:
    """Return the plan to write the levels of an array to a group."""
    inside = source.path_in(node)
    if inside is None:
        source.check_apart(node)
    style, details = options.convention, options.details
    of_label = options.name == "ome" and is_label(node)
    if of_label:
        details = {"image_label": {}, "name": node.path.rpartition("/")[2], **details}
    first = style.adapted(source.metadata, details.get("axes"))
    method = options.method or default_method(first, source.location, node.path)
    Reduction.check(method, first.dtype)
    steps = Steps.parse(options.levels, options.factors, first.shape, first.dimension_names)
    if of_label and steps.number is None:
        steps = replace(steps, number=image_levels(node))
    name = "0" if inside is None else inside
    chunk_shape = first.read_grid.chunk_shape
    levels = steps.levels(first.shape, name, options.borders, chunk_shape)
    arrays = _arrays(first, levels)
    is_written = options.has_level_0 and inside is None
    if not is_written:
        del arrays[0]
    if inside is not None and source.is_cast:
        raise MetadataError(
            "levels in the group of the source have the data type of the source; omit dtype, or "
            "write to another group",
            key="dtype",
            found=first.dtype,
        )
    _check_apart(name, [levels[n].path for n in arrays if n])
    if not arrays:
        raise MetadataError(
            "there is no level to write: the array fits into one chunk; pass levels= to write some",
            key="levels",
            found=options.levels,
        )
    described = levels if is_written or inside is not None else levels[1:]
    attributes = style.attributes(
        described,
        first.dimension_names,
        first.dtype,
        zarr_format=first.zarr_format,
        method=method,
        **details,
    )
    group, view = _group(node, first, attributes, options, levels, inside)
    targets = {
        number: Destination.new(
            node.join(levels[number].path), view.join(levels[number].path), metadata
        )
        for number, metadata in arrays.items()
    }
    if inside is not None and not options.overwrite and not is_adding(node):
        node.discard_dead_claim()
        view.check_members({levels[n].path: metadata for n, metadata in arrays.items()})
    missing = find_missing(first, method, skipna=options.skipna)
    reductions = tuple(
        Reduction(method, one.factors_to(other), options.borders, missing)
        for one, other in pairwise(levels)
    )
    record = PyramidRecord(
        method, options.borders, missing, levels, is_written or inside is not None,
        options.name, details,
    )  # fmt: skip
    resources = Resources(options.memory, options.on, whole_bounds(first.shape))
    return plan_passes(
        source,
        view,
        levels,
        targets,
        reductions,
        resources,
        node=node,
        group=group,
        overwrite=options.overwrite,
        is_inside=inside is not None,
        record=record,
    )


def _check_apart(source: str, paths: Sequence[str]) -> None:
    """Check that no new level would replace the source, or a group that the source is in."""
    for path in paths:
        if f"{source}/".startswith(f"{path}/"):
            raise NodeExistsError(
                "a new level would replace the source; rename the source, or write the pyramid to "
                "another group",
                key=path,
                found=f"the source at {source!r}",
            )


def _check_described(before: Mapping[str, Any], levels: Sequence[Level], location: str) -> None:
    """Check that the attributes of a group describe no other arrays as a pyramid."""
    paths = {level.path for level in levels}
    for pyramid in parse_multiscales(before, location):
        if others := [level.path for level in pyramid.levels if level.path not in paths]:
            raise NodeExistsError(
                "the group describes another pyramid already; write to another group, or replace "
                "the description by overwrite=True",
                key=location,
                found=f"levels {', '.join(others)}",
            )


def _arrays(first: ArrayMetadata, levels: tuple[Level, ...]) -> dict[int, ArrayMetadata]:
    """Return the metadata of the array of each level."""
    coarse = first
    if not first.grid.is_regular:  # the lengths of its chunks do not fit another shape
        lengths = tuple(min(axis.longest, 2**31) for axis in first.grid.axes)
        coarse = convert(first, chunks=lengths)
    arrays = {n: coarse.resized(level.shape) for n, level in enumerate(levels)}
    return {**arrays, 0: first}


def _group(
    node: NodePath,
    first: ArrayMetadata,
    attributes: Mapping[str, Any],
    options: PyramidOptions,
    levels: tuple[Level, ...],
    inside: str | None,
) -> tuple[GroupMetadata, NodePath]:
    """Return the group with the attributes of the convention, and as its hierarchy sees it."""
    if inside is None:
        group = GroupMetadata(first.zarr_format, dict(attributes))
        return group, check_begun(node, group, overwrite=options.overwrite)[1]
    view, before = node.find(consolidated="own")
    if not isinstance(before, GroupMetadata) or before.zarr_format != first.zarr_format:
        raise NodeExistsError(
            "levels are added to a group of the format of the array",
            key=node.location,
            found=f"format {before.zarr_format}",
            expected=f"format {first.zarr_format}",
        )
    if attributes and not options.overwrite:
        _check_described(before.attributes, levels, node.location)
    return GroupMetadata(first.zarr_format, dict(attributes)), view.fresh


@dataclass(frozen=True)
class Resources:
    """The memory and the workers for a pyramid, and the bounds of what is computed."""

    memory: int
    on: Workers
    bounds: Bounds


def _unit(metadata: ArrayMetadata) -> Shape:
    """Return the lengths of chunks or shards; all of an axis along which they differ."""
    axes = metadata.grid.axes
    return tuple(a.lengths[0] if len(a.lengths) == 1 else max(a.size, 1) for a in axes)


def plan_passes(
    source: PyramidSource,
    view: NodePath,
    levels: tuple[Level, ...],
    targets: Mapping[int, Destination],
    reductions: tuple[Reduction, ...],
    resources: Resources,
    **others: Any,
) -> PyramidPlan:
    """Return the plan with the passes that compute the levels, and with other attributes."""
    arrays = {n: target.metadata for n, target in targets.items()}
    first = source.metadata
    none = (1,) * len(first.shape)
    sizes = Sizes(
        levels=levels,
        units=tuple(_unit(arrays[n]) if n in arrays else none for n in range(len(levels))),
        pieces=source.pieces,
        chunk_bytes=source.chunk_bytes,
        itemsize=max(source.itemsize, 1),
        memory=resources.memory,
        threads=resources.on.threads,
        processes=resources.on.processes,
        bounds=resources.bounds,
        packs=not first.dtype.hasobject,
    )
    blocks = Blocks.plan(sizes)
    costs = Costs(resources.memory, sizes.threads, sizes.processes)
    costs = costs.for_stores([*source.stores, view.store])
    return PyramidPlan(
        grids=Grids(max(first.dtype.itemsize, 1), source.axes, first.grid.axes),
        costs=costs,
        schemes=(_scheme(blocks, sizes, costs, arrays),),
        source=source,
        levels=levels,
        targets=targets,
        reductions=reductions,
        blocks=blocks,
        temp=view.workspace(),
        **others,
    )


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
