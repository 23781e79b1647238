"""Values as another data type: what they lose is told, and what does not fit is an error."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.chunks.cast import as_stored
from zarrdask.errors import CodecError
from zarrdask.metadata.losses import cast_loss
from zarrdask.nodes.array import chunks_of


def test_fields_are_compared_as_numpy_does():
    one, other = np.dtype([("a", "i4")]), np.dtype([("a", "i2")])
    assert cast_loss(one, other).endswith("values may be changed")
    assert cast_loss(other, one) is None


@for_each(
    ("values", "name"),
    [
        (np.array([0, 128]), "i1"),
        (np.array([-1, 0]), "u8"),
        (np.array([2**63], "u8"), "i8"),
        (np.array([2.0**63]), "i8"),
        (np.array([-129.0]), "i1"),
        (np.array([0, np.nan]), "i4"),
        (np.array([np.inf], "f4"), "u2"),
        (np.array([8]), "int4"),
        (np.array([1e300]), "f4"),
        (np.array([70_000]), "f2"),
    ],
)
def test_what_is_out_of_range_is_an_error(values, name):
    z = zarrdask.create_array({}, shape=1, dtype=name)
    with pytest.raises(CodecError, match=r"a value is out of the range of \w+\d"):
        as_stored(values, chunks_of(z))


@for_each(
    ("values", "name", "expected"),
    [
        ([-128, 127], "i1", [-128, 127]),
        ([-128.9, 127.9], "i1", [-128, 127]),
        ([1.5, np.inf, np.nan], "f4", [1.5, np.inf, np.nan]),
        ([], "i1", []),
    ],
)
def test_what_fits_is_cast_as_numpy_does(values, name, expected):
    z = zarrdask.create_array({}, shape=1, dtype=name)
    found = as_stored(np.array(values), chunks_of(z))
    np.testing.assert_array_equal(found, np.array(expected, name), strict=True)


def test_values_of_the_type_are_taken_as_they_are():
    z = zarrdask.create_array({}, shape=1, dtype="i4")
    values = np.arange(3, dtype="i4")
    assert as_stored(values, chunks_of(z)) is values


@pytest.fixture
def source():
    z = zarrdask.create_array({}, shape=8, dtype="f8", chunks=2)
    z[...] = np.arange(8) * 100
    return z


def test_a_plan_tells_what_is_lost_and_its_run_what_does_not_fit(source):
    plan = zarrdask.rechunk(source, {}, chunks=8, dtype="f4")
    assert dict(plan.facts())["values"] == "float64 as float32: digits may be lost"
    assert "values" not in dict(zarrdask.rechunk(source, {}, chunks=8).facts())
    target = {}
    with pytest.raises(CodecError, match=r"int8; .*found 700\.0; expected -128 to 127"):
        zarrdask.rechunk(source, target, chunks=8, dtype="i1").execute(progress=False)
    assert "zarr.json" not in target
