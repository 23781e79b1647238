"""The plan of a write of a dataset: everything is checked here, before anything is changed."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import dask
import dask.array
import numpy as np
import xarray
from xarray import Variable

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.hierarchy.changes.append import AppendedArray, appended, guarded
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.display.words import did_you_mean
from zarrdask.errors import MetadataError
from zarrdask.formats.indexing.selection import Region, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.parallel.graph.writing.write_job import as_dask_array
from zarrdask.storage.locks.leases import Lease
from zarrdask.xarray.conventions import dimensions
from zarrdask.xarray.coordinates import with_coordinates
from zarrdask.xarray.encoding import (
    encode_attributes,
    encode_values,
    plan_variable,
    write_empty_chunks,
)
from zarrdask.xarray.packing import without_shorter_text
from zarrdask.xarray.writing.append_checks import check_append
from zarrdask.xarray.writing.dataset_regions import find_region
from zarrdask.xarray.writing.existing import StoredDataset
from zarrdask.xarray.writing.request import ArgumentTypeError, WriteSettings

#: How xarray stores a variable without a name.
_NAMELESS = "__values__"


@dataclass(frozen=True)
class VariableWrite:
    """The values of one variable, and where they go."""

    #: The values, encoded: an array in memory, or a Dask array.
    data: Any
    #: The array as it is when the write is complete.
    array: Array
    #: The part of it that the values cover.
    region: Region
    is_new: bool = False
    #: The append of the values; None if the shape of the array does not change.
    append: AppendedArray | None = None
    #: Whether chunks that hold only the fill value are stored; by default as configured.
    write_empty: bool | None = None

    @property
    def name(self) -> str:
        """The name of the array."""
        return self.array.name

    @property
    def is_index(self) -> bool:
        """Whether it is an index coordinate, whose new shape is written last."""
        return dimensions(self.array.metadata) == (self.name,)

    @property
    def is_dask(self) -> bool:
        """Whether the values are computed by a Dask graph."""
        return isinstance(self.data, dask.array.core.Array)


@dataclass(frozen=True)
class GroupWrite:
    """A group, and what is written to it."""

    node: NodePath
    #: The group as it is when the write is complete.
    metadata: GroupMetadata
    #: The group before the write; None if it is created.
    before: GroupMetadata | None
    variables: tuple[VariableWrite, ...] = field(repr=False)

    @property
    def new_arrays(self) -> dict[str, ArrayMetadata]:
        """The metadata of the arrays that are created, by name."""
        return {each.array.name: each.array.metadata for each in self.variables if each.is_new}

    @property
    def appends(self) -> list[VariableWrite]:
        """The arrays that get longer."""
        return [variable for variable in self.variables if variable.append is not None]

    def without_values(self) -> Self:
        """Return the same without the values of the variables."""
        return replace(self, variables=tuple(replace(each, data=None) for each in self.variables))

    @property
    def changes_metadata(self) -> bool:
        """Whether any document is written."""
        return bool(self.before != self.metadata or self.new_arrays or self.appends)


def plan_group(
    dataset: xarray.Dataset,
    node: NodePath,
    stored: StoredDataset | None,
    settings: WriteSettings,
    encoding: Mapping[Any, Any],
    lease: Lease | None,
) -> GroupWrite:
    """Return the plan of a write of a dataset, or raise an error if it can't be stored.

    Parameters
    ----------
    dataset : xarray.Dataset
        What is written.
    node : NodePath
        The location of the group.
    stored : StoredDataset, optional
        What is there already; None if the group is created or replaced.
    settings : WriteSettings
        What the user said, with the format of the group.
    encoding : mapping
        Encodings for this write, by the names of variables.
    lease : Lease, optional
        The lease of an append, if it has one.
    """
    _check_names(dataset)
    region: dict[Hashable, slice] = {}
    if settings.region is not None and stored is not None:
        region = find_region(dataset, settings.region, stored, settings.mode)
        if settings.append_dim in region:
            raise MetadataError(
                "cannot list the same dimension in both ``append_dim`` and ``region`` with "
                f"to_zarr(), got {settings.append_dim} in both",
                key="region",
            )
        # The stored coordinates say which region it is: they are not changed.
        dataset = dataset.drop_vars(list(dataset.xindexes))
    _check_encoding(dataset, encoding, stored)
    variables, attributes = xarray.conventions.encode_dataset_coordinates(dataset)
    planner = _Planner(node, stored, settings, region, lease)
    planner.check({_array_name(name): variable for name, variable in variables.items()})
    writes = []
    for name, variable in variables.items():
        if name in encoding:
            variable.encoding = dict(encoding[name])
        write = planner.plan(name, variable, explicit=name in encoding)
        if write is not None:
            writes.append(write)
    before = None if stored is None else stored.group.metadata
    metadata = before or GroupMetadata(settings.format.version)
    if before is None or settings.mode != "r+":  # that mode changes values only
        if stored is not None:
            attributes = with_coordinates(attributes, dataset, variables, stored.group)
        metadata = replace(metadata, attributes=encode_attributes(attributes))
    return GroupWrite(node, metadata, before, tuple(writes))


def _check_names(dataset: xarray.Dataset) -> None:
    for name in dataset.variables:
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(
                f"Invalid name {name!r} for DataArray or Dataset key: must be either a string or "
                "None for serialization to netCDF or zarr files; rename the variable",
                key="name",
            )
        if name == "" or "/" in (name or ""):
            raise MetadataError(
                f"Invalid name {name!r} for DataArray or Dataset key: string must be length 1 or "
                'greater, and without "/", for serialization to netCDF or zarr files; rename the '
                "variable",
                key="name",
            )


def _check_encoding(
    dataset: xarray.Dataset, encoding: Mapping[Any, Any], stored: StoredDataset | None
) -> None:
    for name in encoding:
        if stored is not None and name in stored.arrays:
            raise MetadataError(
                f"variable {name!r} already exists, but encoding was provided; an array keeps the "
                "encoding that it was created with",
                key="encoding",
            )
        if not isinstance(encoding[name], Mapping):
            raise MetadataError(
                f"failed to set the encoding of {name!r}: it must be castable to a dict",
                key="encoding",
                found=encoding[name],
            )
        if name not in dataset.variables:
            hint = did_you_mean(str(name), map(str, dataset.variables))
            raise UnknownVariableError(
                f"the dataset has no such variable{hint}", key="encoding", found=name
            )


class UnknownVariableError(MetadataError, KeyError):
    """A name that no variable can have."""


@dataclass(frozen=True)
class _Planner:
    """Plans the variables of one dataset, one by one."""

    node: NodePath
    stored: StoredDataset | None
    settings: WriteSettings
    region: Mapping[Hashable, slice]
    lease: Lease | None

    def check(self, variables: Mapping[str, Variable]) -> None:
        """Check what concerns all variables together."""
        stored, append_dim = self.stored, self.settings.append_dim
        new = [name for name in variables if stored is None or name not in stored.arrays]
        if self.settings.mode == "r+" and new:
            raise MetadataError(
                f"dataset contains non-pre-existing variables {new!r}, which is not allowed in "
                "``xarray.Dataset.to_zarr()`` with ``mode='r+'``. To allow writing new variables, "
                "set ``mode='a'``.",
                key="mode",
            )
        if self.region and new:
            raise MetadataError(
                "a variable that is not stored yet has no region that could be written; create "
                "it first, in its full shape",
                key="region",
                found=new,
            )
        if append_dim is None or stored is None:
            return
        sizes = stored.sizes()
        if append_dim not in sizes:
            raise MetadataError(
                f"append_dim={append_dim!r} does not match any existing dataset dimensions {sizes}",
                key="append_dim",
            )
        _check_complete(stored, append_dim, variables)
        check_append(stored, append_dim, variables)

    def plan(self, name: Hashable, variable: Variable, *, explicit: bool) -> VariableWrite | None:
        """Return where a variable goes; None if it is not written."""
        if self.stored is None or _array_name(name) not in self.stored.arrays:
            return self._new(name, variable, explicit=explicit)
        return self._existing(_array_name(name), variable, self.stored)

    def _new(self, name: Hashable, variable: Variable, *, explicit: bool) -> VariableWrite:
        empty = write_empty_chunks(variable.encoding, self.settings, name)
        variable = variable if explicit else without_shorter_text(variable)
        encoded = encode_values(variable, name, self.settings.format)
        metadata = plan_variable(encoded, _array_name(name), self.settings, explicit=explicit)
        array = self._array(_array_name(name), metadata)
        region = whole_region(array.shape)
        return VariableWrite(_values(encoded, array), array, region, is_new=True, write_empty=empty)

    def _existing(
        self, name: str, variable: Variable, stored: StoredDataset
    ) -> VariableWrite | None:
        append_dim, empty = self.settings.append_dim, self.settings.write_empty_chunks
        encoded = stored.encode_as_stored(variable, name, self.region, append_dim)
        array = self._array(name, stored.arrays[name].metadata)
        if append_dim is not None and append_dim in encoded.dims:
            axis = encoded.dims.index(append_dim)
            grown, region = appended(chunks_of(array), encoded.shape, axis)
            longer = self._array(name, grown.metadata)
            node, old, lease = array.node_path, array.shape, self.lease
            chunks = guarded(chunks_of(longer), node, old, lease)
            append = AppendedArray(node, chunks, old, lease, is_member=True)
            values = _values(encoded, longer)
            return VariableWrite(values, longer, region, append=append, write_empty=empty)
        if self.settings.mode == "a-" and append_dim is not None:
            return None
        region = tuple(
            slice(*self.region.get(dim, slice(None)).indices(size))
            for dim, size in zip(encoded.dims, array.shape, strict=True)
        )
        return VariableWrite(_values(encoded, array), array, region, write_empty=empty)

    def _array(self, name: str, metadata: ArrayMetadata) -> Array:
        return Array(self.node.join(name), metadata, "r+")


def _check_complete(
    stored: StoredDataset, dim: Hashable, variables: Mapping[str, Variable]
) -> None:
    """Check that all variables along a dimension get longer together: others cannot be opened."""
    lengths = stored.lengths(dim)
    before = {lengths[name] for name in variables if name in lengths}
    short = [name for name, n in lengths.items() if n in before and name not in variables]
    if any(before):
        short += [name for name, v in variables.items() if dim in v.dims and name not in lengths]
    if short:
        raise MetadataError(
            f"these variables would be shorter than others along {dim!r}, and the dataset could "
            "not be opened; append to all stored variables at once, and create new ones in their "
            "full length first",
            key="append_dim",
            found=short,
        )


def _array_name(name: Hashable) -> str:
    return _NAMELESS if name is None else str(name)


def _values(variable: Variable, array: Array) -> Any:
    """Return the values of an encoded variable: a Dask array, or an array in memory as stored."""
    if variable.chunks is not None:
        return as_dask_array(variable.data)
    values = np.asarray(variable.to_numpy())
    # Encodings have been obeyed: whether a cast is "safe" was asked of the decoded values.
    return Casting.chosen().of_values.cast(values, array.dtype, array.node_path)
