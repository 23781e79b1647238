"""Variables at a lower resolution are those of xarray."""

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

from tests.covering import for_each  # noqa: E402
from zarrdask.errors import ZarrdaskError  # noqa: E402
from zarrdask.xarray.rewriting.coarsen import coarsen, usual_method  # noqa: E402

VALUES = np.arange(35.0).reshape(5, 7)


@for_each("method", ["mean", "max"])
def test_windows_are_those_of_xarray(method):
    variable = xarray.Variable(("y", "x"), VALUES, {"units": "K"}).chunk({"y": 3, "x": 2})
    found = coarsen(variable, {"y": 2, "x": 3}, method, "trim", skipna=True)
    windows = VALUES[:4, :6].reshape(2, 2, 2, 3)
    expected = getattr(np, method)(windows, axis=(1, 3))
    np.testing.assert_allclose(found.data.compute(scheduler="sync"), expected)
    assert found.attrs == {"units": "K"}


@for_each(
    "dtype, attributes, method",
    [
        ("f4", {}, "mean"),
        ("i2", {"flag_values": [1]}, "mode"),
        ("?", {}, "mode"),
        ("S3", {}, "nearest"),
    ],
)
def test_the_usual_method_depends_on_what_the_values_are(dtype, attributes, method):
    assert usual_method(xarray.Variable("x", np.zeros(3, dtype), attributes)) == method


def test_a_method_that_can_not_combine_the_values_is_an_error():
    variable = xarray.Variable("x", np.zeros(4, "S3"))
    with pytest.raises(ZarrdaskError):
        coarsen(variable, {"x": 2}, "mean", "trim", skipna=True)
