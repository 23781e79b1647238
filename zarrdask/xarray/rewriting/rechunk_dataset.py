"""The plan to write a dataset, data array or tree with other chunks.

A variable that is as it is stored is rewritten from its stored array: its elements are neither
decoded nor encoded. The values of all others are computed and encoded as `to_zarr` encodes them.
"""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import xarray
from dask import array as da
from xarray import Variable

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.recorded import check_begun
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import join_path
from zarrdask.arrays.nodes.array import Array
from zarrdask.errors import NodeExistsError
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.formats.metadata.convert import element_type
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.rewrite.array_plan import RechunkPlan
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.parallel.rewrite.group_plan import GroupPlan
from zarrdask.parallel.rewrite.node_plan import check_apart
from zarrdask.parallel.rewrite.planning import RechunkOptions, plan_blocks, plan_target
from zarrdask.xarray.conventions import variable_attributes
from zarrdask.xarray.lazy import LazyArray
from zarrdask.xarray.manager import ZarrdaskManager
from zarrdask.xarray.writing.plan import GroupWrite, VariableWrite, plan_group
from zarrdask.xarray.writing.request import WriteSettings, contents
from zarrdask.xarray.xarray_private import unwrap

#: The attributes on which the meaning of stored elements depends.
_DECODING = frozenset(
    {
        *("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"),
        *("dtype", "units", "calendar"),
    }
)


class _Stored(NamedTuple):
    """The region of a stored array that a variable shows."""

    array: Array
    region: Region


def plan_rechunk(obj: Any, target_node: NodePath, options: RechunkOptions) -> GroupPlan:
    """Return the plan to write a dataset, data array or tree to a new group."""
    datasets = {
        path: as_dask(content.dataset) for path, content in contents(obj, {}, inherit=False).items()
    }
    sources = {
        join_path(path, str(name)): stored
        for path, dataset in datasets.items()
        for name, variable in dataset.variables.items()
        if (stored := _find_stored(variable)) is not None
    }
    datasets = {path: _without_new_fill(each, path, sources) for path, each in datasets.items()}
    settings = WriteSettings("w-", zarr_format=_format(options, sources))
    writes = {
        path: plan_group(dataset, target_node.join(path), None, settings, {}, None)
        for path, dataset in datasets.items()
    }
    _check_sources(datasets.values(), sources, target_node)
    return _plan_writes(writes, sources, target_node, options)


def _plan_writes(
    writes: Mapping[str, GroupWrite],
    sources: Mapping[str, _Stored],
    target_node: NodePath,
    options: RechunkOptions,
) -> GroupPlan:
    root = writes[""].metadata
    begun, view = check_begun(target_node, root, overwrite=options.overwrite)
    variables = {
        join_path(path, variable.name): variable
        for path, write in writes.items()
        for variable in write.variables
    }
    options.check_members({path: each.array.metadata for path, each in variables.items()})
    targets = {
        path: options.of_member(path, each.array.metadata).converted(each.array.metadata)
        for path, each in variables.items()
    }
    if not (options.overwrite or begun):
        view.check_members(targets)
    plans = {
        path: _plan_variable(
            each,
            sources.get(path),
            Destination.new(target_node.join(path), view.join(path), targets[path]),
            options,
        )
        for path, each in variables.items()
    }
    groups = {path: write.metadata for path, write in writes.items()}
    consolidated = root.format.consolidated_key is not None
    return GroupPlan(groups, plans, *target_node, options.overwrite, consolidated)


def _plan_variable(
    variable: VariableWrite, source: _Stored | None, target: Destination, options: RechunkOptions
) -> RechunkPlan:
    metadata = variable.array.metadata
    if source is not None and _is_encoded_alike(source, metadata):
        return plan_target(source.array, source.region, target, options)
    blocks = variable.data if variable.is_dask else da.from_array(variable.data, chunks=-1)
    data_type = element_type(metadata)
    return plan_blocks(blocks, target, options, data_type)


def _format(options: RechunkOptions, sources: Mapping[str, _Stored]) -> ZarrFormat | None:
    """Return the format of the new group: by default the format of the arrays that are read."""
    chosen: ZarrFormat | None = options.changes.get("zarr_format")
    formats = [each.array.metadata.zarr_format for each in sources.values()]
    return chosen or (formats[0] if formats else None)


def _check_sources(datasets: Any, sources: Mapping[str, _Stored], target_node: NodePath) -> None:
    """Check that nothing is read that lies in the target."""
    for source in sources.values():
        check_apart(source.array.node_path, target_node, replaces=True)
    arrays = [
        variable.data
        for dataset in datasets
        for variable in dataset.variables.values()
        if isinstance(variable.data, da.Array)
    ]
    if Inputs(arrays).are_below(target_node.canonical_location):
        raise NodeExistsError(
            "the source reads the dataset that would be overwritten; write to another location",
            key=target_node.location,
        )


# --------------------------------------------------------------------------------------------
# Variables that are as they are stored


def as_dask(dataset: xarray.Dataset) -> xarray.Dataset:
    """Return a dataset whose lazy variables are Dask arrays; nothing is read yet."""
    lazy = {
        name: variable.chunk("auto", chunked_array_type=ZarrdaskManager())
        for name, variable in dataset.variables.items()
        # xarray examines objects to find their type, and would compute Dask arrays of objects
        # twice.
        if name not in dataset.xindexes and variable.ndim and variable.dtype.kind != "O"
        if variable.chunks is None
    }
    data = {name: lazy.pop(name) for name in dataset.data_vars if name in lazy}
    return dataset.assign(data).assign_coords(lazy)


def _find_stored(variable: Variable) -> _Stored | None:
    """Return the stored array that a variable shows, or None if it shows none."""
    if variable.chunks is None or not isinstance(x := variable.data, da.Array):
        return None
    original = f"original-{x.name}"
    layers = getattr(x.dask, "layers", {})
    if x.name not in layers or not layers.keys() <= {x.name, original}:
        return None
    arguments = [argument for argument, _ in getattr(layers[x.name], "indices", ())]
    arguments += dict(layers.get(original, {})).values()
    for argument in arguments:
        if isinstance(argument, ArrayRegion):
            stored = _Stored(_array_of(argument), argument.region)
        elif (parts := unwrap(argument)) is not None and isinstance(parts.array, LazyArray):
            stored = _Stored(parts.array.stored, parts.region)
        else:
            continue
        unit_steps = all(pick.step == 1 for pick in stored.region)
        return stored if unit_steps and region_shape(stored.region) == x.shape else None
    return None


def _array_of(region: ArrayRegion) -> Array:
    chunks = region.stored
    return Array(NodePath.of(chunks), chunks.metadata, missing=chunks.missing)


def _without_new_fill(
    dataset: xarray.Dataset, path: str, sources: Container[str]
) -> xarray.Dataset:
    """Return a dataset whose stored variables get no ``_FillValue`` that they don't have.

    xarray adds NaN to floating-point variables, which would then be encoded again.
    """
    dataset = dataset.copy()
    for name, variable in dataset.variables.items():
        if join_path(path, str(name)) in sources and "_FillValue" not in variable.attrs:
            variable.encoding.setdefault("_FillValue", None)
    return dataset


def _is_encoded_alike(source: _Stored, target: ArrayMetadata) -> bool:
    """Whether stored elements have the same meaning in a new array, decoded by its attributes."""
    stored = source.array.metadata
    return (
        region_shape(source.region) == target.shape
        and stored.dtype.newbyteorder("=") == target.dtype.newbyteorder("=")
        and _decoding(stored) == _decoding(target)
    )


def _decoding(metadata: ArrayMetadata) -> str:
    """Return the attributes that determine how elements are decoded as a text: NaN equals NaN."""
    attributes = variable_attributes(metadata, mask=metadata.format.fill_masks)
    return repr([(name, str(attributes[name])) for name in sorted(_DECODING & attributes.keys())])
