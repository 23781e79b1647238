"""Points and spans of time."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from tests.formats.dtypes.contract import check_fills, check_metadata
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.registry import find_data_type, of_dtype, parse_data_type

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"]
NAMES = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
kinds = pytest.mark.parametrize(("name", "kind"), NAMES.items())


def of(name="numpy.datetime64", unit="s", scale_factor=1, **others):
    settings = {"unit": unit, "scale_factor": scale_factor, **others}
    return {"name": name, "configuration": settings}


@kinds
def test_unit_and_factor_are_kept(name, kind):
    for unit, factor in product(UNITS, [1, 10, 2**31 - 1]):
        data_type = parse_data_type(of(name, unit, factor))
        assert data_type.dtype == np.dtype(f"{kind}[{factor}{unit}]")
        assert data_type.to_json() == of(name, unit, factor)
        assert of_dtype(data_type.dtype.newbyteorder(">")).to_json() == of(name, unit, factor)
        check_metadata(data_type)


@for_each(
    "configuration",
    [
        {},
        {"unit": "s"},
        {"scale_factor": 1},
        {"unit": "s", "scale_factor": 1, "endian": "little"},
        {"unit": "sec", "scale_factor": 1},
        {"unit": "", "scale_factor": 1},
        {"unit": None, "scale_factor": 1},
        {"unit": "s", "scale_factor": 0},
        {"unit": "s", "scale_factor": 2**31},
        {"unit": "s", "scale_factor": 1.0},
        {"unit": "s", "scale_factor": True},
    ],
)
def test_a_wrong_configuration_is_an_error(configuration):
    with pytest.raises(MetadataError, match="data_type"):
        parse_data_type({"name": "numpy.datetime64", "configuration": configuration})


@kinds
@pytest.mark.parametrize("unit", ["s", "generic"])
@given(ticks=st.integers(-(2**63), 2**63 - 1))
def test_every_count_survives_as_a_fill_value(name, kind, unit, ticks):
    data_type = parse_data_type(of(name, unit))
    value = np.array(ticks, "i8").view(data_type.dtype)[()]
    assert data_type.parse_fill(ticks).view("i8") == ticks
    check_fills(data_type, value)


@kinds
def test_not_a_time_is_a_word_or_the_least_count(name, kind):
    data_type = parse_data_type(of(name))
    assert np.isnat(data_type.parse_fill("NaT"))
    assert np.isnat(data_type.parse_fill(-(2**63)))
    assert data_type.render_fill(data_type.parse_fill(-(2**63))) == "NaT"
    assert data_type.render_fill(data_type.default) == 0


@for_each("value", [2**63, -(2**63) - 1, 1.0, "2020", "nat", True, None, [1]])
def test_what_is_no_count_is_an_error(value):
    with pytest.raises(MetadataError) as caught:
        parse_data_type(of()).parse_fill(value)
    assert (caught.value.key, caught.value.found) == ("fill_value", value)


def test_a_users_fill_value_is_a_date_a_count_or_a_text():
    data_type = find_data_type("M8[D]")
    for value in ("1970-01-03", 2, np.datetime64("1970-01-03"), np.datetime64("1970-01-03", "s")):
        assert data_type.render_fill(data_type.cast(value)) == 2
    assert np.isnat(data_type.cast("NaT"))
    assert find_data_type("m8[s]").cast(np.timedelta64(2, "m")) == np.timedelta64(120, "s")


@for_each("value", ["1970-01-03T01", np.datetime64(1, "s"), "soon", 1.5])
def test_a_users_date_is_not_cut_off(value):
    with pytest.raises(MetadataError):
        find_data_type("M8[D]").cast(value)
