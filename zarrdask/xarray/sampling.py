"""Cubes around points of a dataset or data array: ``zarrdask.sample`` of objects of xarray."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask import array as da
from xarray import DataArray, Dataset, Variable

from zarrdask.errors import NodeTypeError, SelectionError
from zarrdask.parallel.graph.points.cube_positions import cube_positions
from zarrdask.parallel.graph.points.cube_requests import CubeRequest, sample_each
from zarrdask.xarray.lazy import LazyArray
from zarrdask.xarray.variable_blocks import DecodedRegion, decoded_region, source_of
from zarrdask.xarray.xarray_private import unwrap

#: The new dimension, unless the points have a name for theirs.
_POINT = "point"


@dataclass(frozen=True, eq=False)
class _DatasetCubes:
    """Where the cubes of a dataset are, by dimension."""

    #: The new dimension, and the coordinates that the points have along it.
    dim: Any
    labels: Mapping[Any, Variable]
    starts: Mapping[Any, np.ndarray]
    lengths: Mapping[Any, int]
    ends: Any

    def own(self, variable: Variable) -> list[Any]:
        """Return the dimensions of a variable that have positions."""
        return [dim for dim in variable.dims if dim in self.starts]


def sample(obj: Any, points: Any, size: Any, *, ends: Any) -> Any:
    """Return the cubes around points, as an object of the same class; see `zarrdask.sample`."""
    if isinstance(obj, DataArray):
        name = next(name for name in ("values", "_values", "__values") if name not in obj.coords)
        dataset = Dataset({name: obj.variable}, obj.coords)
        if not isinstance(points, Mapping):
            table = np.asarray(points)
            if table.ndim == 2 and table.shape[1] <= obj.ndim:
                points = dict(zip(obj.dims, table.T, strict=False))
        return _sample(dataset, points, size, ends)[name].rename(obj.name)
    if not isinstance(obj, Dataset):
        raise NodeTypeError(
            "a tree has datasets of different dimensions; pass the dataset of one of its nodes",
            key="arrays",
            found=type(obj).__name__,
            expected="a Dataset or a DataArray",
        )
    return _sample(obj, points, size, ends)


def _sample(dataset: Dataset, points: Any, size: Any, ends: Any) -> Dataset:
    cubes = _find_cubes(dataset, points, size, ends)
    requests, sampled = dict[Any, CubeRequest](), dict[Any, Variable]()
    for name, variable in dataset.variables.items():
        dims = cubes.own(variable)
        source = _source(variable) if dims else None
        if source is not None:
            numbers = {variable.get_axis_num(dim): dim for dim in dims}
            requests[name] = CubeRequest(
                source,
                {number: cubes.starts[dim] for number, dim in numbers.items()},
                {number: cubes.lengths[dim] for number, dim in numbers.items()},
                cubes.ends,
                is_lazy=isinstance(variable._data, da.Array),
            )
        elif dims:
            sampled[name] = _indexed(variable, cubes)
    for name, values in sample_each(requests).items():
        variable = dataset.variables[name]
        sampled[name] = Variable((cubes.dim, *variable.dims), values, variable.attrs)
    rest = dataset.drop_vars(sampled)
    coords = {name: sampled[name] for name in dataset.coords if name in sampled}
    result = rest.assign_coords({**coords, **cubes.labels})
    result = result.assign({name: v for name, v in sampled.items() if name not in coords})
    return result[list(dataset.data_vars)]


def _find_cubes(dataset: Dataset, points: Any, size: Any, ends: Any) -> _DatasetCubes:
    """Return where cubes are: the checked positions, without the cubes that are dropped."""
    if not isinstance(points, Mapping):
        raise SelectionError(
            "the dimensions of a dataset have no order; pass positions by dimension",
            key="points",
            found=type(points).__name__,
            expected=f"a dict of some of {list(dataset.sizes)} to positions",
        )
    positions = cube_positions(points, size)
    unknown = [dim for dim in positions.points if dim not in dataset.sizes]
    if unknown:
        raise SelectionError(
            "there is no such dimension",
            key="points",
            found=unknown[0],
            expected=f"some of {list(dataset.sizes)}",
        )
    sizes = dict(dataset.sizes)
    starts = {dim: positions.starts(dim, n, sizes[dim]) for n, dim in enumerate(positions.points)}
    dim, labels = _labels(points)
    if dim in sizes:
        raise SelectionError(
            "the new dimension has the name of one of the dataset; pass points as DataArrays "
            "with another dimension",
            key="points",
            found=dim,
        )
    if ends == "drop":
        inside = (positions.is_inside(each, start, sizes[each]) for each, start in starts.items())
        kept = np.all([*inside], axis=0)
        starts = {each: start[kept] for each, start in starts.items()}
        labels = {name: each.isel({dim: kept}) for name, each in labels.items()}
    return _DatasetCubes(dim, labels, starts, positions.lengths, ends)


def _labels(points: Mapping[Any, Any]) -> tuple[Any, dict[Any, Variable]]:
    """Return the dimension of the points, and their coordinates, which DataArrays have."""
    labelled = [each for each in points.values() if isinstance(each, DataArray)]
    dims = {each.dims[0] for each in labelled}
    if len(dims) > 1:
        raise SelectionError(
            "the positions have different dimensions",
            key="points",
            found=sorted(map(str, dims)),
            expected="the same one along each axis",
        )
    labels = {
        name: coordinate.variable
        for each in labelled
        for name, coordinate in each.coords.items()
        if coordinate.dims == each.dims and name not in points
    }
    return (dims.pop() if dims else _POINT), labels


def _source(variable: Variable) -> DecodedRegion | None:
    """Return the region of a stored array that a variable decodes, if nothing else was done."""
    data = variable._data
    if isinstance(data, da.Array):
        source = source_of(data)
        if source is not None:
            return source
        data = _array_of(data)
    parts = unwrap(data)
    if parts is None or not isinstance(parts.array, LazyArray) or parts.array.has_values:
        return None
    return decoded_region(parts)


def _array_of(x: da.Array) -> Any:
    """Return the lazy array whose blocks a Dask array of xarray's own chunk manager is, or None."""
    key = f"original-{x.name}"
    layers = x.dask.layers
    if layers.keys() != {key, x.name}:
        return None
    node = layers[key].get(key)
    return getattr(node, "value", node)


def _indexed(variable: Variable, cubes: _DatasetCubes) -> Variable:
    """Return the cubes of a variable in memory, or of another Dask array, by xarray's indexing."""
    index, mask = dict[Any, Variable](), None
    for dim in cubes.own(variable):
        every = cubes.starts[dim][:, None] + np.arange(cubes.lengths[dim])
        last = variable.sizes[dim] - 1
        index[dim] = Variable((cubes.dim, dim), np.clip(every, 0, max(last, 0)))
        is_within = Variable((cubes.dim, dim), (every >= 0) & (every <= last))
        mask = is_within if mask is None else mask & is_within
    sampled = variable.to_base_variable().isel(index).transpose(cubes.dim, *variable.dims)
    if cubes.ends == "pad" and mask is not None and not mask.values.all():
        sampled = sampled.where(mask)
    return sampled
