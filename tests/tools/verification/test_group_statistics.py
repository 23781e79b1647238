"""The statistics of all arrays of a group, as text."""

from types import SimpleNamespace

import zarrdask
from zarrdask.tools.verification.group_statistics import GroupStatistics, group_statistics

FIELDS = ("count", "nan", "missing", "minimum", "maximum", "mean", "std", "units")


def statistics(*values):
    return SimpleNamespace(**dict(zip(FIELDS, values, strict=True)))


def test_there_is_a_row_for_each_array_and_a_reason_for_each_other():
    arrays = {
        "g/a": statistics(4, 1, 1, 1.0, 3.0, 2.0, 0.816496580927726, "K"),
        "b": statistics(0, 0, 0, None, None, None, None, None),
    }
    found = GroupStatistics("a.zarr", arrays, {"text": "<U3: no statistics"})
    header, first, second, skipped = str(found).splitlines()
    assert header.split()[:3] == ["array", "elements", "missing"]
    assert first.split() == ["g/a", "4", "50%", "1", "3", "2", "0.816497", "K"]
    assert second.split() == ["b", "0", "0%", "-", "-", "-", "-"]
    assert skipped == "text: <U3: no statistics"
    assert found.summary() == "a.zarr: 2 arrays"


def test_arrays_that_are_not_numeric_are_skipped():
    group = zarrdask.create_group({})
    group.create_array("g/text", shape=2, dtype=str)
    found = group_statistics(group)
    assert [*found.skipped] == ["g/text"]
    assert str(found).endswith("no statistics")


def test_a_group_without_arrays_says_so():
    assert str(group_statistics(zarrdask.create_group({}))).endswith("there are no arrays")
