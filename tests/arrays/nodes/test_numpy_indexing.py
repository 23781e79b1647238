"""What indices take from stored arrays, and where they write, is what NumPy's do: for every kind of
elements and every way to store them."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrdask
from tests import selections
from tests.covering import for_each
from zarrdask.errors import SelectionError

LISTS = [[], [1], [1, 2], [[3], "x"], {"a": [None]}, None, True, 2.5, "text"]
#: dtype, elements (the first is the fill value), formats, other options
FAMILIES = {
    "bool": ("?", [False, True], (2, 3), {}),
    "int8": ("i1", [0, 1, -128, 127], (2, 3), {}),
    "uint64": ("u8", [0, 7, 2**64 - 1], (2, 3), {}),
    "big-endian": (">i4", [0, 1, -(2**31)], (2,), {}),
    "float16": ("f2", [0.0, -0.0, 1.5, np.nan, np.inf], (2, 3), {}),
    "float64": ("f8", [0.0, -0.0, 1.5, np.nan, -np.inf], (2, 3), {}),
    "complex": ("c16", [0, 1j, complex(np.nan, -1)], (2, 3), {}),
    "datetime": ("M8[s]", [np.datetime64("NaT", "s"), datetime.datetime(2020, 1, 2)], (2, 3), {}),
    "timedelta": ("m8[ms]", [np.timedelta64(0, "ms"), np.timedelta64(-5, "ms")], (2, 3), {}),
    "fixed bytes": ("S3", [b"", b"a", b"a\0b"], (2, 3), {}),
    "fixed text": ("U3", ["", "a", "é\U0001f600x"], (2, 3), {}),
    "raw": ("V2", [np.void(b"\0\0"), np.void(b"a\xff")], (2, 3), {}),
    "fields": ([("a", "i2"), ("b", "f4")], [(0, 0.0), (1, -2.5)], (2, 3), {}),
    "text": ("string", ["", "a", "é\U0001f600" * 9, "\0"], (2, 3), {}),
    "bytes": ("bytes", [b"", b"a", b"\0\xff" * 9], (2, 3), {}),
    "json": (object, LISTS, (2,), {"filters": {"id": "json2"}}),
    "msgpack": (object, LISTS, (2,), {"filters": {"id": "msgpack2"}}),
}


def rows(elements, shape, dtype):
    """Return elements as an array; a list is one element, not an axis."""
    found = np.empty(len(elements), dtype)
    for at, element in enumerate(elements):
        found[at] = element
    return found.reshape(shape)


@st.composite
def cases(draw, min_dims=0):
    """A stored array of any kind, an ndarray with the same elements, and what makes values."""
    dtype, elements, formats, options = FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))]
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=3, min_side=0, max_side=5))
    chunks = tuple(draw(st.integers(1, 4)) for _ in shape)
    zarr_format = draw(st.sampled_from(formats))
    if zarr_format == 3 and draw(st.booleans()):
        options = {**options, "shards": tuple(n * draw(st.integers(1, 2)) for n in chunks)}
    z = zarrdask.create_array(
        {},
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=elements[0],
        order=draw(st.sampled_from("CF")),
        zarr_format=zarr_format,
        **options,
    )

    def values(shape):
        taken = draw(
            st.lists(
                st.sampled_from(elements), min_size=math.prod(shape), max_size=math.prod(shape)
            )
        )
        return rows(taken, shape, z.dtype)

    expected = rows([elements[0]] * z.size, shape, z.dtype)
    region = draw(selections.boxes(shape))
    written = values(expected[(*region, ...)].shape)
    expected[(*region, ...)] = written
    z[(*region, ...)] = written
    return z, expected, values


def identical(found, expected):
    """Check that two results are both arrays or both scalars, and equal in every bit."""
    assert type(found) is type(expected)
    if not isinstance(found, np.ndarray | np.generic):
        assert found == expected
        return
    assert found.shape == expected.shape
    assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    if found.dtype.hasobject:
        assert found.tolist() == expected.tolist()
        assert [type(a) for a in found.flat] == [type(b) for b in expected.flat]
    else:
        assert found.astype(expected.dtype).tobytes() == expected.tobytes()


def integers(size):
    found = st.integers(-size, size - 1)
    return found | found.map(np.int64) | found.map(np.array)


@st.composite
def numpy_indices(draw, shape):
    """Any of NumPy's indices that are understood: basic ones, with a list or a mask among them."""
    kind = draw(st.sampled_from(["basic", "scalar mask", "one list", "mask", "points"]))
    if kind == "basic" or not shape:
        found = draw(selections.basic(shape))
        entries = found if isinstance(found, tuple) else (found,)
        if kind == "scalar mask" or (not shape and draw(st.booleans())):
            entries = tuple(e for e in entries if not isinstance(e, int))
            at = draw(st.integers(0, len(entries)))
            mask = draw(st.booleans())
            mask = draw(st.sampled_from([mask, np.bool_(mask), np.array(mask)]))
            entries = (*entries[:at], mask, *entries[at:])
        return draw(st.sampled_from([entries, entries[0]])) if len(entries) == 1 else entries
    if kind == "scalar mask":
        mask = draw(st.booleans())
        before = tuple(draw(st.slices(n)) for n in shape[: draw(st.integers(0, len(shape)))])
        return (*before, draw(st.sampled_from([mask, np.bool_(mask), np.array(mask)])))
    if kind == "one list":
        axis = draw(st.integers(0, len(shape) - 1))
        entries = [draw(st.slices(n)) for n in shape]
        entries[axis] = draw(one_list(shape[axis]))
        return tuple(entries[: draw(st.integers(axis + 1, len(shape)))])
    if kind == "mask":
        return draw(hnp.arrays(bool, shape))
    if 0 in shape:
        return (np.empty(0, np.intp),) * len(shape)
    return draw(selections.points(shape))


@st.composite
def one_list(draw, size):
    if draw(st.booleans()):
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    found = draw(st.lists(st.integers(-size, size - 1), max_size=6)) if size else []
    return np.array(found, np.intp)


@given(cases(), st.data())
def test_reads_are_numpys(case, data):
    z, expected, _ = case
    index = data.draw(numpy_indices(z.shape))
    identical(z[index], expected[index])


@given(cases(), st.data())
def test_writes_are_numpys(case, data):
    z, expected, values = case
    index = data.draw(numpy_indices(z.shape))
    taken = expected[index]
    shape = taken.shape if isinstance(taken, np.ndarray) else ()
    # A value that is broadcast along some axes, or has fewer.
    shape = tuple(1 if data.draw(st.booleans()) else n for n in shape)
    shape = shape[data.draw(st.integers(0, len(shape))) :] if 0 not in shape else shape
    value = values(shape)
    z[index] = value
    if z.dtype.hasobject and not isinstance(taken, np.ndarray):
        value = value[()]  # NumPy would hold the array
    expected[index] = value
    identical(z[...], expected)


@given(cases(), st.data())
def test_points_are_numpys(case, data):
    z, expected, values = case
    if not z.shape:
        index = data.draw(st.sampled_from([(), ..., np.array(True), np.array(False)]))
    elif 0 in z.shape or data.draw(st.booleans()):
        index = data.draw(hnp.arrays(bool, z.shape))
    else:
        index = tuple(data.draw(integers(n)) for n in z.shape)
        index = data.draw(st.just(index) | selections.points(z.shape))
    identical(z.vindex[index], expected[index])
    taken = expected[index]
    value = values(taken.shape if isinstance(taken, np.ndarray) else ())
    z.vindex[index] = value
    if value.shape or isinstance(taken, np.ndarray):
        expected[index] = value
    else:
        expected[index] = value[()]
    identical(z[...], expected)


@given(cases(), st.data())
def test_outer_selections_are_numpys_of_a_grid(case, data):
    z, expected, values = case
    if not z.shape:
        index = data.draw(st.sampled_from([(), ..., np.array(True), np.array(False)]))
        identical(z.oindex[index], expected[index])
        return
    index = data.draw(selections.outer(z.shape))
    taken, grid = selections.take_outer(expected, index)
    identical(z.oindex[index], taken)
    if all(len(set(axis.ravel())) == axis.size for axis in grid):
        value = values(np.shape(taken) if isinstance(taken, np.ndarray) else ())
        z.oindex[index] = value
        expected[grid] = value.reshape(expected[grid].shape)
        identical(z[...], expected)


@given(cases(min_dims=1), st.data())
def test_blocks_are_regions(case, data):
    z, expected, values = case
    lengths = z.shards or z.chunks
    counts = [-(-size // length) for size, length in zip(z.shape, lengths, strict=True)]
    if 0 in counts:
        return
    index = tuple(data.draw(st.integers(0, count - 1)) for count in counts)
    region = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, lengths, strict=True))
    identical(z.blocks[index], expected[region])
    value = values(expected[region].shape)
    z.blocks[index] = value
    expected[region] = value
    identical(z[...], expected)


@given(cases(), st.data())
def test_what_numpy_refuses_is_refused(case, data):
    z, expected, _ = case
    entry = st.sampled_from([0, 1, 9, -9, None, ..., slice(1, None), 1.5, "x", {}, [0], [9], True])
    index = tuple(data.draw(st.lists(entry, max_size=4)))
    try:
        taken = expected[index]
    except (IndexError, ValueError, DeprecationWarning):
        # NumPy 2.0 only warns of indices beyond an axis if the result has no elements.
        with pytest.raises(SelectionError):
            z[index]
        return
    try:
        found = z[index]
    except SelectionError:
        # Several lists, or lists with integers or new axes, which NumPy puts in places of its own.
        entries = [e for e in index if isinstance(e, list | bool)]
        assert entries
        assert len(entries) > 1 or any(e is None or isinstance(e, int) for e in index)
    else:
        identical(found, taken)


# ---- 0-d, by hand


@for_each("zarr_format", [2, 3])
@for_each(("dtype", "element"), [("string", "abc"), ("bytes", b"a\0c")])
def test_a_text_without_axes_takes_its_own_value_and_arrays(dtype, element, zarr_format):
    z = zarrdask.create_array({}, shape=(), dtype=dtype, zarr_format=zarr_format)
    wrapped = np.array(element, object)
    for value in (element, wrapped, np.array(element)[()]):
        z[...] = type(element)()
        z[...] = value
        assert z[()] == element
        z[...] = z[...]
        assert z[()] == element
    z[()] = z[...]
    assert z[()] == element
    z.vindex[()] = z.oindex[...] = wrapped
    assert z.vindex[()] == z.oindex[()] == z[()] == element


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_without_axes_are_elements(zarr_format):
    z = zarrdask.create_array({}, shape=3, chunks=2, dtype="string", zarr_format=zarr_format)
    z[0] = np.array("a")
    z[1:] = [np.array("b", object), "c"]
    assert z[...].tolist() == ["a", "b", "c"]
    values = np.empty(3, object)
    values[0], values[1], values[2] = np.array("x"), "y", np.array("z", object)
    z[...] = values
    assert z[...].tolist() == ["x", "y", "z"]


@for_each("index", [True, np.True_, np.array(True), (..., True), (None, True)])
def test_a_mask_without_axes_adds_one(index):
    for shape in ((), (2,), (2, 3)):
        z = zarrdask.create_array({}, shape=shape, dtype="i4")
        expected = np.arange(z.size, dtype="i4").reshape(shape)
        z[...] = expected
        identical(z[index], expected[index])
        z[index] = 7
        assert (z[...] == 7).all()


@for_each("index", [False, np.False_, np.array(False), (..., False)])
def test_a_false_mask_without_axes_takes_and_writes_nothing(index):
    for shape in ((), (2,), (2, 3)):
        z = zarrdask.create_array({}, shape=shape, dtype="i4")
        expected = np.zeros(shape, "i4")
        identical(z[index], expected[index])
        z[index] = 7
        assert (z[...] == 0).all()
        with pytest.raises(SelectionError):
            z[index] = np.zeros((5, 5, 5, 5))


@for_each(
    "value",
    [
        [[1, 2], [3, 4]],
        [[1], [2]],
        [[], []],
        ([1], "a"),
        [None, {"a": 1}],
        "text",
        {"a": [1, 2]},
        [[1, 2, 3]],
        [1, 2, 3],
        np.array([["a", "b"]], object),
        np.array([1, 2], object),
    ],
)
def test_lists_are_elements_below_the_last_axis_as_in_numpy(value):
    options = {"dtype": object, "filters": "json2", "zarr_format": 2}
    for shape in ((2,), (2, 2)):
        z = zarrdask.create_array({}, shape=shape, **options)
        expected = np.full(shape, "", object)
        try:
            expected[...] = value
        except ValueError:
            with pytest.raises(SelectionError):
                z[...] = value
        else:
            z[...] = value
            assert z[...].tolist() == expected.tolist()


def test_stored_arrays_of_objects_are_values():
    z = zarrdask.create_array({}, shape=3, dtype="string")
    z[...] = ["a", "b", "c"]
    other = zarrdask.create_array({}, shape=(2, 3), dtype="string")
    other[...] = z
    assert other[...].tolist() == [["a", "b", "c"]] * 2
    scalar = zarrdask.create_array({}, shape=(), dtype="string")
    scalar[...] = "x"
    other[0, 0] = scalar
    assert other[0].tolist() == ["x", "b", "c"]
