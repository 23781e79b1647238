"""X-A: where v2's text is silent, or contradicts what is stored."""

import json
import struct

import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, same, stored, v2

VALUES = np.arange(16, dtype="<u2").reshape(4, 4)


def chunks(separator):
    return {
        f"{i}{separator}{j}": VALUES[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes()
        for i in range(2)
        for j in range(2)
    }


def array(**others):
    return v2((4, 4), (2, 2), **others)


# ---- X-A1


@pytest.mark.parametrize(("separator", "said"), [(None, None), (".", None), ("/", "/")])
def test_xa1_the_separator_is_written_if_it_is_a_slash(separator, said):
    store = {}
    zarrdask.create_array(
        store, shape=(4, 4), dtype="u2", chunks=2, zarr_format=2, separator=separator
    )
    assert json.loads(store[".zarray"]).get("dimension_separator") == said


@pytest.mark.parametrize("said", [{}, {"dimension_separator": "."}])
def test_xa1_without_a_separator_it_is_a_period(said):
    z = zarrdask.open_array(stored(array(**said), chunks(".")), strict=True)
    assert z[...].tolist() == VALUES.tolist()
    nested = zarrdask.open_array(stored(array(**said), chunks("/")))
    assert not nested[...].any()


def test_xa1_old_nested_stores_are_read_on_request(setting):
    setting({"zarrdask.v2-nested-legacy": True})
    store = stored(array(), chunks("/"))
    z = zarrdask.open_array(store)
    assert z[...].tolist() == VALUES.tolist()
    x = zarrdask.from_zarr(store, chunks="stored")
    assert x.compute(scheduler="sync").tolist() == VALUES.tolist()
    group = {f"g/a/{key}": value for key, value in store.items()}
    group["g/.zgroup"] = dump({"zarr_format": 2})
    assert zarrdask.open_group(group, "g")["a"][3, 3] == 15
    with refused("X-A1"):
        zarrdask.open_array(store, strict=True)


def test_xa1_what_is_written_to_an_old_nested_store_is_nested(setting):
    setting({"zarrdask.v2-nested-legacy": True})
    store = stored(array(), chunks("/"))
    zarrdask.open_array(store, mode="r+")[3, 3] = 99
    assert set(store) == {".zarray", *chunks("/")}
    assert zarrdask.open_array(store)[3].tolist() == [12, 13, 14, 99]


@pytest.mark.parametrize(
    "store",
    [
        stored(array(), chunks(".")),
        stored(array(), {**chunks("/"), "0.0": bytes(8)}),
        stored(array()),
        stored(array(dimension_separator="."), chunks("/")),
    ],
    ids=["period", "both", "empty", "said"],
)
def test_xa1_on_request_too_a_slash_needs_its_reasons(store, setting):
    before = zarrdask.open_array(store)[...].tolist()
    setting({"zarrdask.v2-nested-legacy": True})
    z = zarrdask.open_array(store)
    assert z[...].tolist() == before
    assert z.metadata.keys.separator == "."


@pytest.mark.parametrize("shape", [(), (2,)])
def test_xa1_on_request_too_arrays_below_two_dimensions_are_the_same(shape, setting):
    setting({"zarrdask.v2-nested-legacy": True})
    data = b"\7\0" * 2 if shape else b"\7\0"
    z = zarrdask.open_array(stored(v2(shape, shape), {"0": data}), strict=True)
    assert (z[...] == 7).all()


# ---- X-A2


def test_xa2_other_members_are_never_written_and_ignored_unless_strict():
    store = stored(array(units="K", extra={"a": 1}), chunks("."))
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].tolist() == VALUES.tolist()
    assert "units" not in z.attrs
    with refused("A-16"):
        zarrdask.open_array(store, strict=True)
    z.resize((4, 3))
    assert set(json.loads(store[".zarray"])) == set(array())


def test_xa2_strictness_is_a_setting_too(setting):
    store = stored(array(units="K"), chunks("."))
    group = {".zgroup": dump({"zarr_format": 2}), **{f"a/{k}": v for k, v in store.items()}}
    setting({"zarrdask.strict": True})
    for verb in (zarrdask.open, zarrdask.open_array, zarrdask.from_zarr):
        with refused("A-16"):
            verb(store)
    with refused("A-16"):
        zarrdask.open_group(group)["a"]
    assert zarrdask.open_array(store, strict=False)[3, 3] == 15


# ---- X-A3


@pytest.mark.parametrize(("order", "form"), [("<", "<4I"), (">", ">4I")])
def test_xa3_u4_is_four_code_points_of_four_bytes(order, form):
    data = struct.pack(form, ord("h"), 0x1F600, 0, 0)
    z = zarrdask.open_array(stored(v2((1,), (1,), f"{order}U4", ""), {"0": data}))
    assert z.dtype.itemsize == 16
    assert z[0] == "h\U0001f600"
    store = {}
    options = {"shape": 1, "zarr_format": 2, "compressors": []}
    zarrdask.create_array(store, dtype=f"{order}U4", **options)[0] = "h\U0001f600"
    assert store["0"] == data
    assert json.loads(store[".zarray"])["dtype"] == f"{order}U4"


# ---- X-A4


@for_each(
    ("dtype", "value", "fill"),
    [
        ("<c8", 1.5 - 2j, [1.5, -2.0]),
        ("<U4", "hé", "hé"),
        ("|V2", b"\1\2", "AQI="),
        ("<M8[D]", np.datetime64(5, "D"), 5),
        ("<m8[s]", np.timedelta64(-5, "s"), -5),
    ],
)
def test_xa4_fill_values_that_the_text_forgets_are_those_of_real_writers(dtype, value, fill):
    store = {}
    zarrdask.create_array(store, shape=2, dtype=dtype, fill_value=value, zarr_format=2)
    assert json.loads(store[".zarray"])["fill_value"] == fill
    same(zarrdask.open_array(store, strict=True)[:1], np.array([value], dtype))


@for_each(("fill", "value"), [("", ""), (0, ""), (None, ""), ("none", "none")])
def test_xa4_a_fill_value_of_objects_is_what_it_says(fill, value):
    filters = [{"id": "vlen-utf8"}]
    z = zarrdask.open_array(stored(v2((1,), (1,), "|O", fill, filters=filters)), strict=True)
    assert z[0] == value


# ---- X-A5


@for_each("dtype", ["<i4", "<f8", "|b1", "|S3", "<M8[s]"])
def test_xa5_a_null_fill_value_is_zeros(dtype):
    z = zarrdask.open_array(
        stored(v2((3,), (2,), dtype, None), {"1": bytes(2 * np.dtype(dtype).itemsize)})
    )
    assert z[2:].tobytes() == bytes(np.dtype(dtype).itemsize)
    if z.dtype.kind == "M":
        assert np.isnat(z[:2]).all()
    else:
        assert z[:2].tobytes() == bytes(2 * np.dtype(dtype).itemsize)


def test_xa5_without_dimensions_the_key_is_0():
    store = {}
    zarrdask.create_array(store, shape=(), dtype="<u2", zarr_format=2, compressors=[])[...] = 7
    assert store["0"] == b"\7\0"
    assert zarrdask.open_array(stored(v2((), ()), {"0": b"\7\0"}))[()] == 7


def test_xa5_filters_see_the_column_major_buffer():
    values = np.array([[1, 2], [4, 8]], "|u1")
    delta = {"id": "delta", "dtype": "|u1", "astype": "|u1"}
    # Column by column: 1 4 2 8, so 1 and the differences 3, -2, 6.
    data = b"\x01\x03\xfe\x06"
    store = {}
    options = {"shape": (2, 2), "dtype": "|u1", "chunks": -1, "zarr_format": 2, "compressors": []}
    zarrdask.create_array(store, filters=delta, order="F", **options)[...] = values
    assert store["0.0"] == data
    document = v2((2, 2), (2, 2), "|u1", filters=[delta], order="F")
    assert zarrdask.open_array(stored(document, {"0.0": data}))[...].tolist() == values.tolist()


# ---- X-A6


def test_xa6_delta_to_a_smaller_float_loses_digits_and_nothing_more():
    delta = {"id": "delta", "dtype": "<f8", "astype": "<f4"}
    store, values = {}, np.array([0.1, 0.3, 1e10])
    options = {"shape": 3, "dtype": "<f8", "zarr_format": 2, "compressors": []}
    z = zarrdask.create_array(store, filters=delta, **options)
    z[...] = values
    steps = np.array([0.1, 0.3 - 0.1, 1e10 - 0.3], "<f4")
    assert store["0"] == steps.tobytes()
    assert z[0] != 0.1
    np.testing.assert_allclose(z[...], values, rtol=1e-6)
