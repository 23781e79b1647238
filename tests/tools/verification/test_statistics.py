"""Statistics of stored arrays are those of NumPy."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.tools.verification import statistics as module
from zarrdask.tools.verification.statistics import statistics


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8", "?"])
@pytest.mark.parametrize("options", [{"chunks": (3, 4)}, {"chunks": (2, 2), "shards": (4, 4)}])
def test_statistics_are_those_of_numpy(monkeypatch, dtype, options):
    monkeypatch.setattr(module, "TASK_BYTES", 64)
    values = np.random.default_rng(0).integers(0, 50, (11, 10)).astype(dtype)
    z = zarrdask.create_array({}, shape=values.shape, dtype=dtype, **options)
    z[...] = values
    found = statistics(z, scheduler="sync")
    assert (found.count, found.fill) == (values.size, np.count_nonzero(values == 0))
    assert (found.minimum, found.maximum) == (values.min(), values.max())
    assert found.mean == pytest.approx(values.mean(dtype="f8"))
    assert found.std == pytest.approx(values.std(dtype="f8"))


def test_chunks_that_are_not_stored_count_as_the_fill_value():
    z = zarrdask.create_array({}, shape=100, dtype="f4", chunks=10, fill_value=2)
    z[:10] = 4
    found = statistics(z, scheduler="threads")
    assert (found.count, found.fill, found.mean, found.maximum) == (100, 90, 2.2, 4)
    assert found.std == pytest.approx(np.std([4] * 10 + [2] * 90))


@pytest.mark.parametrize("fill", [0, "NaN"])
def test_what_is_not_a_number_is_counted_and_left_out(fill):
    z = zarrdask.create_array({}, shape=8, dtype="f8", chunks=4, fill_value=float(fill))
    z[:3] = [np.nan, 1, 3]
    found = statistics(z)
    rest = 0 if fill == "NaN" else 5
    assert (found.nan, found.numbers) == (1 + 5 - rest, 2 + rest)
    assert found.mean == 4 / (2 + rest)
    assert "NaN" in str(found)


def test_squares_of_very_large_numbers_are_infinite(monkeypatch):
    monkeypatch.setattr(module, "TASK_BYTES", 16)
    z = zarrdask.create_array({}, shape=4, dtype="f8", chunks=2)
    z[:] = [1e200, 1e200, 3e200, 3e200]
    found = statistics(z, scheduler="sync")
    assert (found.maximum, found.mean, found.std) == (3e200, 2e200, np.inf)
    z[:] = [1, 1, 2, 2]
    z.attrs["scale_factor"] = 1e200
    assert statistics(z, scheduler="sync").std == np.inf


def test_nothing_has_no_mean():
    assert statistics(zarrdask.create_array({}, shape=0, dtype="f8")).mean is None
    empty = statistics(zarrdask.create_array({}, shape=4, dtype="f8", fill_value=np.nan))
    assert (empty.nan, empty.mean, empty.std) == (4, None, None)
    assert "mean        -" in str(empty)


def test_text_has_no_statistics():
    with pytest.raises(UnsupportedError, match="only arrays of real numbers"):
        statistics(zarrdask.create_array({}, shape=4, dtype=str))


def packed(zarr_format, **attributes):
    values = np.array([[-9, 0, 10], [20, -9, 30]], "i2")
    options = {"fill_value": -9, "zarr_format": zarr_format, "attributes": attributes}
    z = zarrdask.create_array({}, shape=(4, 3), chunks=(1, 3), dtype="i2", **options)
    z[:2] = values
    return z


@for_each(
    "z",
    [
        packed(3, _FillValue=-9, scale_factor=0.5, add_offset=-4, units="K"),
        packed(3, missing_value=[-9], scale_factor=[0.5], add_offset=-4.0, units="K"),
        packed(2, _ARRAY_DIMENSIONS=["y", "x"], scale_factor=0.5, add_offset=-4, units="K"),
    ],
)
def test_attributes_of_cf_are_obeyed(z):
    found = statistics(z)
    numbers = np.array([0, 10, 20, 30]) * 0.5 - 4
    assert (found.count, found.missing, found.numbers) == (12, 8, 4)
    assert (found.minimum, found.maximum, found.mean) == (-4, 11, numbers.mean())
    assert found.std == pytest.approx(numbers.std())
    assert "maximum     11 K\n" in str(found)
    assert sum(found.histogram["counts"]) == 4


def test_a_negative_factor_reverses_the_histogram():
    z = zarrdask.create_array({}, shape=3, dtype="i4", attributes={"scale_factor": -2})
    z[...] = [1, 1, 4]
    found = statistics(z)
    assert (found.minimum, found.maximum) == (-8, -2)
    assert found.histogram == {"start": -10.0, "width": 2.0, "counts": (1, 0, 0, 2)}
    assert str(found).splitlines()[-1].split("  ")[0] == "histogram"


def test_an_attribute_that_is_not_a_number_is_an_error():
    with pytest.raises(MetadataError, match="scale_factor"):
        statistics(packed(3, scale_factor="big"))
    with pytest.raises(MetadataError, match="_FillValue"):
        statistics(packed(3, _FillValue="none"))
