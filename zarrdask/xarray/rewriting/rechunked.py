"""Other blocks of the variables of a dataset, data array or tree: lazily, in bounded memory."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from xarray import DataArray, Dataset, DataTree, Variable

from zarrdask.errors import MetadataError
from zarrdask.parallel.rewrite.rechunked import rechunked
from zarrdask.xarray.manager import ZarrdaskManager

#: The name of the values of a data array while it is a dataset.
_VALUES = "<values of the data array>"


def rechunked_object(obj: Any, chunks: Mapping[Any, Any], **options: Any) -> Any:
    """Return an object of xarray whose variables have other blocks; see `zarrdask.rechunked`."""
    nodes = obj.subtree if isinstance(obj, DataTree) else [obj]
    dimensions = {str(name): name for node in nodes for name in node.dims}
    if unknown := [name for name in chunks if name not in dimensions.values()]:
        raise MetadataError(
            "there are no such dimensions", key="chunks", found=unknown, expected=[*dimensions]
        )
    divide = partial(_dataset, chunks=chunks, options=options)
    if isinstance(obj, DataTree):
        return obj.map_over_datasets(divide)
    if isinstance(obj, DataArray):
        return divide(obj.to_dataset(name=_VALUES))[_VALUES].rename(obj.name)
    return divide(obj)


def _dataset(dataset: Dataset, chunks: Mapping[Any, Any], options: dict[str, Any]) -> Dataset:
    variables = {
        name: _variable(variable, chunks, options)
        for name, variable in dataset.variables.items()
        if name not in dataset.xindexes and not chunks.keys().isdisjoint(variable.dims)
    }
    data = {name: variables.pop(name) for name in dataset.data_vars if name in variables}
    return dataset.assign(data).assign_coords(variables)


def _variable(variable: Variable, chunks: Mapping[Any, Any], options: dict[str, Any]) -> Variable:
    lengths = {axis: chunks[name] for axis, name in enumerate(variable.dims) if name in chunks}
    if variable.dtype.hasobject:  # these can't be packed
        return variable.chunk({variable.dims[axis]: n for axis, n in lengths.items()})
    if variable.chunks is None:
        variable = variable.chunk("auto", chunked_array_type=ZarrdaskManager())
    return variable.copy(deep=False, data=rechunked(variable.data, lengths, **options))
