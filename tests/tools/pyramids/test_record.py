"""The record of a pyramid is read as it was written, or an error says what to do."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.tools.pyramids.kernels import Missing
from zarrdask.tools.pyramids.levels import Level
from zarrdask.tools.pyramids.record import PyramidRecord

LEVELS = (Level("0", (8, 8), (1, 1)), Level("1", (4, 4), (2, 2)), Level("2", (2, 2), (4, 4)))


def record(**others):
    fields = {
        "method": "mean",
        "borders": "trim",
        "missing": None,
        "levels": LEVELS,
        "has_level_0": True,
        "convention": "ome",
        "details": {"name": "a"},
    }
    return PyramidRecord(**fields | others)


@pytest.fixture
def group():
    return zarrdask.create_group({})


@for_each(
    "others",
    [
        {},
        {"missing": Missing((-9, 2.5), has_nan=False, result=-9)},
        {"missing": Missing((1 + 2j,), has_nan=True, result=1 + 2j)},
        {"convention": None, "details": None, "borders": "partial", "method": "mode"},
    ],
)
def test_a_record_is_the_same_after_it_was_stored(others):
    node = zarrdask.create_group({}).node_path
    record(**others).write(node)
    assert PyramidRecord.read(node) == record(**others)


def test_nan_is_the_result_of_windows_without_values(group):
    record(missing=Missing((), has_nan=True, result=np.nan)).write(group.node_path)
    assert np.isnan(PyramidRecord.read(group.node_path).missing.result)


def test_details_that_json_can_not_represent_are_left_out(group):
    record(details={"scale": np.array([1.5, 2])}).write(group.node_path)
    assert PyramidRecord.read(group.node_path).details == {"scale": [1.5, 2]}
    record(details={"name": object()}).write(group.node_path)
    assert PyramidRecord.read(group.node_path).details is None


def test_a_group_without_a_record_says_what_to_do(group):
    with pytest.raises(MetadataError, match="build the pyramid again"):
        PyramidRecord.read(group.node_path)


@for_each(
    "name, value",
    [
        ("version", 99),
        ("method", "average"),
        ("levels", [["0", [8], [1]], ["1", [4, 4], [2, 2]]]),
        ("levels", [["0", [8], [2]], ["1", [4], [3]]]),
        ("has_level_0", 1),
        ("missing", {"values": ["a"], "has_nan": False, "result": 0}),
    ],
)
def test_a_damaged_record_is_an_error(name, value):
    group = zarrdask.create_group({})
    record().write(group.node_path)
    document = json.loads(group.store.get(PyramidDocument.KEY))
    group.store.set(PyramidDocument.KEY, json.dumps(document | {name: value}).encode())
    with pytest.raises(MetadataError, match="damaged"):
        PyramidRecord.read(group.node_path)
