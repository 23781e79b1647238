"""Times of groups in different units are one coordinate, in the units of the first."""

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

import zarrdask  # noqa: E402
from tests.covering import for_each  # noqa: E402
from zarrdask.arrays.nodes.concatenations.group_table import open_groups  # noqa: E402
from zarrdask.errors import MetadataError  # noqa: E402
from zarrdask.xarray.joined_times import joined_times  # noqa: E402


def table(*times, **attributes):
    """Return the members of coordinates, each with its units and values."""
    groups = []
    for units, values in times:
        group = zarrdask.create_group({})
        array = group.create_array(
            "time",
            shape=len(values),
            dtype=np.asarray(values).dtype,
            dimension_names=("time",),
            attributes={"units": units, **attributes},
        )
        array[...] = values
        groups.append(group)
    opened = open_groups(groups, (len(groups),), component=None, storage_options=None)
    return opened.table("time", (len(groups),), range(len(groups)))


def values_of(concatenation):
    (member,) = concatenation.members
    return zarrdask.arrays.chunks.read.read_region(member.chunks(), member.region).tolist()


DAYS, HOURS = "days since 2000-01-01", "hours since 2000-01-02"


def test_the_units_are_those_of_the_first_group():
    joined = joined_times("time", table((HOURS, [0, 6]), (DAYS, [2, 3])), ("time",))
    assert values_of(joined) == [0, 6, 24, 48]
    assert joined.metadata.attributes["units"] == HOURS


def test_units_that_do_not_represent_the_times_are_an_error():
    with pytest.raises(MetadataError, match="units of times differ"):
        joined_times("time", table((DAYS, [0]), (HOURS, [6])), ("time",))


@for_each(
    "times, attributes, dims",
    [
        (((DAYS, [0]), ("K", [1])), {}, ("time",)),
        (((DAYS, [0]), (HOURS, [1])), {"scale_factor": 2.0}, ("time",)),
        (((DAYS, [0]), (HOURS, [1])), {}, ("x",)),
    ],
)
def test_other_arrays_are_left_alone(times, attributes, dims):
    assert joined_times("time", table(*times, **attributes), dims) is None
