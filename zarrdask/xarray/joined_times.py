"""Times of many groups in different units, as one coordinate in the units of the first."""

import numpy as np
import xarray.coding.times

from zarrdask.arrays.chunks.members.concatenation import Concatenation
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.nodes.concatenations.joined_metadata import common_attributes
from zarrdask.arrays.nodes.concatenations.member_table import MemberTable, in_memory
from zarrdask.arrays.nodes.create import create_array
from zarrdask.errors import MetadataError


def joined_times(name: str, table: MemberTable, dims: tuple[str, ...]) -> Concatenation | None:
    """Return times with different units as one array in memory, in the units of the first member.

    None if the array is not a coordinate of times along one axis, or its attributes differ by
    more than the units.
    """
    attributes = table.first.attributes
    is_time = all(" since " in str(each.attributes.get("units")) for each in table.metadata)
    if dims != (name,) or not is_time or len(table.counts) != 1:
        return None
    calendars = {str(each.attributes.get("calendar", "standard")) for each in table.metadata}
    others = ("scale_factor", "add_offset", "_FillValue", "missing_value")
    if len(calendars) > 1 or any(
        key in each.attributes for each in table.metadata for key in others
    ):
        return None
    units, calendar = attributes["units"], calendars.pop()
    parts = []
    for member, metadata in zip(table.members, table.labelled, strict=True):
        if member is None or metadata is None:
            return None
        # Scalar coordinates are stacked along a new dimension.
        stored = read_region(member.chunks(table.storage_options), member.region).reshape(-1)
        parts.append(_in_units(name, stored, metadata.attributes["units"], units, calendar))
    values = np.concatenate(parts)
    values = values.astype(np.result_type(*(each.dtype for each in parts)))
    array = create_array(
        {},
        shape=values.shape,
        dtype=values.dtype,
        chunks=max(len(values), 1),
        dimension_names=dims,
        attributes=common_attributes(
            {**each.attributes, "units": units} for each in table.metadata
        ),
    )
    array[...] = values
    return in_memory(array)


def _in_units(name: str, values: np.ndarray, units: str, target: str, calendar: str) -> np.ndarray:
    """Return times in other units, if these represent them exactly."""
    if units == target:
        return values
    times = xarray.coding.times
    dates = times.decode_cf_datetime(values, units, calendar)
    # As floats, which xarray does not round.
    encoded = np.asarray(times.encode_cf_datetime(dates, target, calendar, np.dtype("f8"))[0])
    again = times.decode_cf_datetime(encoded, target, calendar)
    whole = encoded.astype(np.int64)
    if values.dtype.kind in "iu" and np.array_equal(whole, encoded):
        encoded = whole
    if not np.array_equal(again, dates) or (
        values.dtype.kind in "iu" and encoded.dtype.kind == "f"
    ):
        raise MetadataError(
            "the units of times differ, and the first group's do not represent these times "
            "exactly, without decoding each group by itself",
            key=f"{name}.attrs['units']",
            found=units,
            expected=target,
        )
    return encoded
