"""What values and metadata lose in another data type or format."""

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import CodecError
from zarrdask.formats.metadata.losses import cast_loss


def dtype(name):
    return zarrdask.create_array({}, shape=1, dtype=name).dtype


@for_each(
    ("before", "after", "text"),
    [
        ("f8", "f4", "float64 as float32: digits may be lost"),
        ("f4", "bfloat16", "float32 as bfloat16: digits may be lost"),
        ("float16", "bfloat16", "float16 as bfloat16: digits may be lost"),
        ("c16", "c8", "complex128 as complex64: digits may be lost"),
        ("i8", "f8", "int64 as float64: digits may be lost"),
        ("u4", "f4", "uint32 as float32: digits may be lost"),
        ("f8", "i8", "float64 as int64: fractions are cut off"),
        ("c8", "f4", "complex64 as float32: imaginary parts are dropped"),
        ("i4", "bool", "int32 as bool: all values but 0 become True"),
        ("S4", "S2", "|S4 as |S2: the end is cut off"),
        ("i4", "S2", "int32 as |S2: values may be changed"),
        ("M8[ns]", "M8[s]", "datetime64[ns] as datetime64[s]: values may be changed"),
    ],
)
def test_what_values_lose(before, after, text):
    assert cast_loss(dtype(before), dtype(after)) == text


@for_each(
    ("before", "after"),
    [
        (">f8", "<f8"),
        ("f4", "f8"),
        ("bfloat16", "f4"),
        ("c8", "c16"),
        ("f4", "c8"),
        ("i4", "f8"),
        ("u2", "f4"),
        ("int4", "float16"),
        ("bool", "i1"),
        ("i8", "i1"),  # what does not fit is an error
        ("S2", "S4"),
        ("M8[s]", "M8[ns]"),
    ],
)
def test_what_values_do_not_lose(before, after):
    assert cast_loss(dtype(before), dtype(after)) is None


@pytest.fixture
def source():
    z = zarrdask.create_array({}, shape=8, dtype="f8", chunks=2)
    z[...] = np.arange(8) * 100
    return z


def test_a_copy_tells_what_is_lost_and_what_does_not_fit(source):
    report = zarrdask.copy(source, {}, dtype="f4")
    assert "note: float64 as float32: digits may be lost" in str(report)
    target = {}
    with pytest.raises(CodecError, match=r"found 300\.0; expected -128 to 127"):
        zarrdask.copy(source, target, dtype="i1", chunks=4)
    assert "zarr.json" not in target


def test_a_rewrite_tells_only_what_is_no_error(source):
    texts = zarrdask.create_array({}, shape=4, dtype="U4")
    assert zarrdask.copy(texts, {}, dtype="U2").arrays[0].notes == ()
    assert "values" not in dict(zarrdask.rechunk(texts, {}, dtype="U2").facts())
    with dask.config.set({"zarrdask.casting": "same_kind"}):
        assert zarrdask.copy(texts, {}, dtype="U2").arrays[0].notes == (
            "<U4 as <U2: the end is cut off",
        )
        texts.resize(0)
        assert zarrdask.copy(texts, {}, dtype="U2").arrays[0].notes == ()


@for_each(
    ("dtype", "fill", "mask", "count"),
    [
        ("i4", 0, None, 1),
        ("i4", 0, -9, 1),
        ("i4", 0, "text", 1),
        ("i4", -9, -9, 0),
        ("f4", np.nan, "AAAAAAAA+H8=", 0),
        ("U3", "", None, 0),
    ],
)
@for_each("zarr_format", [2, 3])
def test_a_note_says_where_xarray_takes_other_elements_for_missing(
    zarr_format, dtype, fill, mask, count
):
    options = {"shape": 2, "dtype": dtype, "fill_value": fill, "zarr_format": zarr_format}
    attributes = {} if mask is None else {"_FillValue": mask}
    for names, expected in ((["x"], count), (None, 0)):
        z = zarrdask.create_array({}, dimension_names=names, attributes=attributes, **options)
        (report,) = zarrdask.copy(z, {}, zarr_format=5 - zarr_format, dry_run=True).arrays
        notes = [note for note in report.notes if "xarray reads other elements" in note]
        assert len(notes) == expected
