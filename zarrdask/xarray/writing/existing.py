"""Datasets that are stored already: how their variables are encoded, and what fits them."""

from collections.abc import Container, Hashable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from xarray import Variable, conventions

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.stored_keys import trim
from zarrdask.arrays.hierarchy.changes.append import guarded
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import MetadataError
from zarrdask.formats.compliance import warn_compliance
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.storage.locks.leases import Lease
from zarrdask.xarray.coordinates import read_coordinates
from zarrdask.xarray.datastore import StoredGroup, ZarrdaskDataStore
from zarrdask.xarray.durations import (
    as_stored_durations,
    changes_reading,
    check_durations,
    check_kind,
)
from zarrdask.xarray.encoding import encode_values

#: Attributes by which values are decoded: two parts of one array must not differ in them.
_CODING = ("units", "calendar", "scale_factor", "add_offset", "dtype", "missing_value")


class StoredDataset:
    """A group that holds a dataset."""

    def __init__(self, group: StoredGroup) -> None:
        self.group = group

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The stored arrays by name."""
        return self.group.arrays

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format of the group."""
        return self.group.metadata.zarr_format

    @cached_property
    def _coordinates(self) -> dict[str, np.ndarray]:
        """The values of all small coordinates, read with one request."""
        return read_coordinates({"": self.group})[""]

    @cached_property
    def _encoded(self) -> dict[str, Variable]:
        return ZarrdaskDataStore(self.group, self._coordinates).get_variables()

    def dims(self, name: str) -> tuple[Hashable, ...]:
        """Return the dimensions of a variable."""
        return self._dimensions[name]

    @cached_property
    def _dimensions(self) -> dict[str, tuple[str, ...]]:
        return ZarrdaskDataStore(self.group, {}).dimensions()

    def sizes(self) -> dict[Hashable, int]:
        """Return the length of each dimension."""
        return {
            dim: n for v in self._encoded.values() for dim, n in zip(v.dims, v.shape, strict=True)
        }

    def lengths(self, dim: Hashable) -> dict[str, int]:
        """Return the length of each variable that has a dimension, along it."""
        return {
            name: array.shape[self.dims(name).index(dim)]
            for name, array in self.arrays.items()
            if dim in self.dims(name)
        }

    def before_append(self, dim: Hashable, added: int) -> "StoredDataset | None":
        """Return the dataset as before an append of so many elements, at least to a part of it.

        It is None if it is too short for that.
        """
        lengths = self.lengths(dim)
        length = max(lengths.values(), default=0) - added
        if length < 0:
            return None
        arrays = dict(self.arrays)
        for name, n in lengths.items():
            array = arrays[name]
            axis = self.dims(name).index(dim)
            shape = (*array.shape[:axis], min(n, length), *array.shape[axis + 1 :])
            arrays[name] = Array(array.node_path, array.metadata.resized(shape), "r+")
        return StoredDataset(replace(self.group, arrays=arrays))

    def roll_back_surplus(
        self,
        dim: Hashable,
        names: Container[str],
        visible: Mapping[str, int],
        lease: Lease | None,
    ) -> bool:
        """Give the variables with one of the names one length along a dimension again.

        An append writes the length of the index coordinate after the other variables' lengths, and
        consolidated metadata last. Variables that are longer than consolidated metadata or the
        index coordinate say are left from an interrupted append: their surplus was never part of
        the dataset. The caller holds a lock against concurrent appends.

        Parameters
        ----------
        dim : hashable
        names : container of str
        visible : mapping of str to int
            The lengths that readers see: those in the consolidated metadata, if there are any.
        lease : Lease, optional
            The lease that keeps other machines from appending.

        Returns
        -------
        bool
            Whether anything was changed.

        Raises
        ------
        MetadataError
            If the lengths differ, but nothing determines which is right, or a variable is shorter.
        """
        lengths = {name: n for name, n in self.lengths(dim).items() if name in names}
        # Shapes that are smaller than those in the consolidated metadata are from other software.
        complete = {name: min(n, visible.get(name, n)) for name, n in lengths.items()}
        if len({*lengths.values(), *complete.values()}) <= 1:
            return False
        is_clear = len({*complete.values()}) == 1
        length = min(complete.values()) if is_clear else complete.get(str(dim))
        if length is None or min(lengths.values()) < length:
            raise MetadataError(
                f"the stored variables have different lengths along {dim!r}, so nothing can be "
                "appended; resize them to one length, with zarrdask.open_array(...).resize",
                key="append_dim",
                found=lengths,
            )
        for name in lengths:
            self.arrays[name].node_path.discard_append(chunks_of(self.arrays[name]))
        longer = [self.arrays[name] for name, n in lengths.items() if n > length]
        for array in longer:
            axis = self.dims(array.name).index(dim)
            shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])
            trim(guarded(chunks_of(array), array.node_path, array.shape, lease), shape)
            # Consolidated metadata, if there is any, still has the shapes before the append.
            array.node_path.grow(array.zarr_format, array.shape, shape, is_member=True, lease=lease)
        warn_compliance(
            f"{self.group.location}: an append along {dim!r} was interrupted; {len(longer)} "
            f"variables that were longer than the dataset have its length {length} again"
        )
        return True

    def _decoded(self, name: str, *, durations: bool | None = None) -> Variable:
        """Return a variable as a user sees it, with its encoding; the values are lazy.

        `durations` is whether numbers with a unit of time, such as "days", are durations; by
        default as xarray's engine does it.
        """
        return _decode(name, self._encoded[name], durations=durations)

    def values(self, name: str) -> np.ndarray:
        """Return the values of a variable as a user sees them."""
        if name not in self._encoded:
            raise MetadataError(
                "the stored dataset has no such coordinate, so the region cannot be found by it; "
                "pass a slice",
                key="region",
                found=name,
            )
        return np.asarray(_decode(name, self._encoded[name].compute()).data)

    def last_values(self, name: str, count: int) -> np.ndarray:
        """Return the last values of a variable with one dimension as a user sees them."""
        last = self._encoded[name][max(self._encoded[name].size - count, 0) :]
        return np.asarray(_decode(name, last.compute()).data)

    def encode_as_stored(
        self,
        variable: Variable,
        name: str,
        region: Mapping[Hashable, slice],
        append_dim: Hashable | None,
    ) -> Variable:
        """Return a variable encoded exactly as the stored one, with its dimensions in that order.

        Raises a MetadataError if it cannot be: another dtype, other dimensions, other sizes than
        the region (except along `append_dim`), or values that the stored encoding does not
        represent.
        """
        is_duration = variable.dtype.kind == "m"
        stored = self._decoded(name, durations=True if is_duration else None)
        _check_dtype(name, stored, variable)
        check_kind(variable, stored, name)
        if is_duration:
            variable = as_stored_durations(variable, stored, name)
        elif variable.dtype.kind != "O":  # such as texts and dates, which are encoded one by one
            # Numbers beside times are times that were not decoded: their units are compared below.
            is_raw = stored.dtype.kind in "mM" and variable.dtype.kind != stored.dtype.kind
            dtype = self._encoded[name].dtype if is_raw else stored.dtype
            Casting.chosen().check(variable.dtype, dtype, self.arrays[name].node_path)
        variable = variable.copy(deep=False)
        variable.encoding = stored.encoding
        encoded = encode_values(variable, name, self.group.metadata.format)
        is_time = is_duration or stored.dtype.kind == "m"
        _check_coding(name, encoded, self._encoded[name], is_time=is_time)
        if is_duration:
            check_durations(variable, encoded, name)
        encoded = _in_stored_order(encoded, stored, name)
        _check_sizes(encoded, stored, name, region, append_dim)
        return encoded


def _decode(name: str, encoded: Variable, *, durations: bool | None = None) -> Variable:
    """Return a variable as a user sees it, with its encoding, also if it has no elements."""
    decode = partial(conventions.decode_cf_variables, attributes={}, decode_timedelta=durations)
    try:
        variable: Variable = decode({name: encoded})[0][name]
    except ValueError:
        if encoded.size:
            raise
        # xarray can't decode an array without dates of cftime, whose data type one date shows.
        zeros = np.zeros((1,) * encoded.ndim, encoded.dtype)
        sample = Variable(encoded.dims, zeros, encoded.attrs, encoded.encoding)
        one: Variable = decode({name: sample})[0][name]
        values = np.empty(encoded.shape, one.dtype)
        variable = Variable(encoded.dims, values, one.attrs, one.encoding)
    return variable


def _check_dtype(name: str, stored: Variable, new: Variable) -> None:
    """Check that values of a dtype can be written to a stored array without being cut."""
    kind = new.dtype.kind
    if kind in "biufcmM" or new.dtype == object:
        return
    if kind in "SUT" and stored.dtype.kind in "OT":
        return
    if new.dtype != stored.dtype:
        raise MetadataError(
            f"Mismatched dtypes for variable {name} between Zarr store on disk and dataset to "
            f"append. Store has dtype {stored.dtype} but dataset to append has dtype {new.dtype}.",
            key=f"variable {name!r}",
        )


def _check_coding(name: str, encoded: Variable, stored: Variable, *, is_time: bool) -> None:
    """Check that values are encoded by the same rule as those that are stored.

    xarray changes the units of times that the stored units cannot represent: read by the stored
    units, the new times would be others. `is_time` is whether the new or the stored values are
    durations.
    """
    for key in (*_CODING, FILL_VALUE):
        if key not in stored.attrs and key not in encoded.attrs:
            continue
        old, new = stored.attrs.get(key), encoded.attrs.get(key)
        if key == "units" and not (is_time or changes_reading(old, new)):
            continue  # the unit of a quantity: it does not change how values are read
        both = key in stored.attrs and key in encoded.attrs
        if (both or key == "units") and not _same(old, new):
            raise MetadataError(
                f"values of this variable are stored with the attribute {key}={old!r}, which does "
                "not represent the new values; convert them, or rewrite the stored variable with "
                "an encoding that does",
                key=f"variable {name!r}",
                found=new,
                expected=repr(old),
            )


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return _normal(str(old)) == _normal(str(new))
    try:
        return bool(np.array_equal(old, new, equal_nan=True))
    except TypeError:
        return bool(np.array_equal(old, new))


def _normal(text: str) -> tuple[Any, ...]:
    """Return a text in a form in which units of time are equal if they mean the same.

    >>> _normal("days since 2000-01-01 00:00") == _normal("days since 2000-01-01")
    True
    """
    unit, since, date = text.partition(" since ")
    try:
        return unit.rstrip("s"), pd.to_datetime(date, utc=True) if since else date
    except ValueError:
        return unit.rstrip("s"), date  # a year that pandas does not have


def _in_stored_order(variable: Variable, stored: Variable, name: str) -> Variable:
    if variable.dims == stored.dims:
        return variable
    if {*variable.dims} == {*stored.dims}:
        return variable.transpose(*stored.dims)
    raise MetadataError(
        f"variable {name!r} already exists with different dimension names {stored.dims} != "
        f"{variable.dims}, but changing variable dimensions is not supported by to_zarr()."
    )


def _check_sizes(
    variable: Variable,
    stored: Variable,
    name: str,
    region: Mapping[Hashable, slice],
    append_dim: Hashable | None,
) -> None:
    """Check that a variable fits the stored one, or the region of it that is written."""
    expected = {
        dim: len(range(*region.get(dim, slice(None)).indices(size)))
        for dim, size in stored.sizes.items()
        if dim != append_dim
    }
    sizes = {dim: size for dim, size in variable.sizes.items() if dim != append_dim}
    if sizes != expected:
        ends = {dim: region.get(dim, slice(None)).stop for dim in stored.sizes}
        beyond = [dim for dim, end in ends.items() if (end or 0) > stored.sizes[dim]]
        if beyond:
            end, size = ends[beyond[0]], stored.sizes[beyond[0]]
            advice = (
                f"the region along {beyond[0]!r} ends at {end}, beyond the stored length {size}: "
                "append_dim makes the dataset longer"
            )
        elif region:
            advice = "pass slices as long as the dataset"
        elif append_dim is None:
            advice = "append_dim makes the dataset longer, and region writes to a part of it"
        else:
            advice = f"an append along {append_dim!r} keeps all other dimensions"
        raise MetadataError(
            f"variable {name!r} already exists with different dimension sizes; {advice}",
            found=sizes,
            expected=expected,
        )
