"""Values as another data type: what they lose is told, and what does not fit is an error."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.errors import CodecError, MetadataError, SelectionError, UnsupportedError
from zarrdask.formats.metadata.losses import cast_loss


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
        Casting.EXACT.cast(values, z.dtype, z.node_path)


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
    found = Casting.EXACT.cast(np.array(values), z.dtype, z.node_path)
    np.testing.assert_array_equal(found, np.array(expected, name), strict=True)


def test_values_of_the_type_are_taken_as_they_are():
    z = zarrdask.create_array({}, shape=1, dtype="i4")
    values = np.arange(3, dtype="i4")
    assert Casting.EXACT.cast(values, z.dtype, z.node_path) is values


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


VERBS = {
    "z[...]": lambda x, z: z.__setitem__(..., x),
    "points": lambda x, z: z.vindex.__setitem__([0, 1, 2, 3], x),
    "z.append": lambda x, z: z.append(x),
    "append": zarrdask.append,
    "append later": lambda x, z: zarrdask.append(x, z, compute=False),
    "to_zarr": zarrdask.to_zarr,
    "several": lambda x, z: zarrdask.to_zarr([(z, x)]),
    "region": lambda x, z: zarrdask.to_zarr(x, z.store, region=slice(0, 4), compute=False),
    "new": lambda x, z: zarrdask.to_zarr(x, z.store, dtype=z.dtype, overwrite=True),
    "rechunk": lambda x, z: zarrdask.rechunk(
        stored(x), z.store, chunks=1, dtype=z.dtype, overwrite=True
    ),
    "rechunk Dask": lambda x, z: zarrdask.rechunk(
        da.from_array(x), z.store, chunks=1, dtype=z.dtype, overwrite=True
    ),
    "rechunk append": lambda x, z: zarrdask.rechunk(stored(x), z.store, append=0),
    "copy": lambda x, z: zarrdask.copy(stored(x), z.store, dtype=z.dtype, overwrite=True),
}


def stored(values):
    z = zarrdask.create_array({}, shape=values.shape, dtype=values.dtype)
    z[...] = values
    return z


@for_each("verb", VERBS)
def test_all_verbs_refuse_the_same_casts_before_they_change_anything(verb):
    store = {}
    z = zarrdask.create_array(store, shape=4, dtype="i1", chunks=2)
    z[...] = 7
    before, values = dict(store), np.array([1.0, 2, 3, 300])
    for casting, dtype in [("safe", "i8"), ("same_kind", "f8")]:
        with (
            dask.config.set({"zarrdask.casting": casting}),
            pytest.raises(CodecError, match=rf"zarrdask\.casting .*{casting!r}") as caught,
        ):
            VERBS[verb](values.astype(dtype), z)
        assert "dict" in caught.value.key
        assert caught.value.found == np.dtype(dtype).name
        assert "int8" in caught.value.expected
        assert store == before
    with dask.config.set({"zarrdask.casting": "safe"}):
        VERBS[verb](np.arange(4, dtype="i1"), z)


@for_each("verb", [*VERBS.keys() - {"rechunk", "rechunk append", "copy"}])
def test_all_verbs_refuse_masked_values_before_they_change_anything(verb):
    z = zarrdask.create_array(store := {}, shape=4, dtype="i1", chunks=2)
    z[...] = 7
    before, masked = dict(store), np.ma.masked_equal(np.arange(4, dtype="i1"), 2)
    with pytest.raises(UnsupportedError, match=r"numpy\.ma\.filled"):
        VERBS[verb](masked, z)
    assert store == before
    if verb != "rechunk Dask":
        VERBS[verb](masked[:2].repeat(2), z)  # nothing is masked


@for_each("fused", [0, 8])
def test_a_block_that_is_masked_is_an_error(fused):
    def block():
        return np.ma.masked_equal(np.arange(4), 2)

    x = da.concatenate([da.from_delayed(dask.delayed(block)(), (4,), "i8")] * 2)
    z = zarrdask.create_array({}, shape=8, dtype="i8", chunks=4)
    with (
        dask.config.set({"zarrdask.fuse-blocks": fused}),
        pytest.raises(UnsupportedError, match=r"numpy\.ma\.filled"),
    ):
        zarrdask.to_zarr(x, z)
    assert not z.nchunks_stored()


REWRITES = {
    "rechunk": lambda z, to: zarrdask.rechunk(z, to, chunks=2, dtype="i1").execute(progress=False),
    "direct": lambda z, to: zarrdask.rechunk(
        zarrdask.from_zarr(z) + 0, to, chunks=2, dtype="i1"
    ).execute(progress=False),
    "crossing": lambda z, to: zarrdask.rechunk(
        zarrdask.from_zarr(z, chunks="stored") + 0, to, chunks=(2, 8), dtype="i1", max_mem=600
    ).execute(progress=False),
    "copy": lambda z, to: zarrdask.copy(z, to, dtype="i1"),
}


@for_each("rewrite", REWRITES)
def test_rewrites_refuse_values_out_of_range_unless_the_setting_is_set(rewrite):
    z = zarrdask.create_array({}, shape=(8, 8), dtype="i8", chunks=(8, 1))
    z[...] = np.arange(296, 360).reshape(8, 8)
    with pytest.raises(CodecError, match="out of the range of int8"):
        REWRITES[rewrite](z, {})
    for casting in ("numpy", "same_kind"):
        with dask.config.set({"zarrdask.casting": casting}):
            REWRITES[rewrite](z, target := {})
        np.testing.assert_array_equal(zarrdask.open_array(target)[...], z[...].astype("i1"))


@for_each("verb", [verb for verb in VERBS if "rechunk" not in verb and verb != "copy"])
@for_each(
    ("values", "dtype"),
    [
        ([1, 2, 3, 300], "i1"),
        ([1, 2, 3, np.nan], "i4"),
        ([1, 2, 3, 4j], "f8"),
        ([0, 1, 0, 2], "?"),
        (["a", "b", "c", "abcd"], "U3"),
        (["a", "b", "c", "\N{LATIN SMALL LETTER E WITH ACUTE}"], "S1"),
        ([b"a", b"b", b"c", b"abcd"], "S3"),
        (np.array([1, 2, 3, "NaT"], "m8[s]"), "i8"),
        (np.array([1, 2, 3, 4], "m8[s]"), "f8"),
        (np.array([1, 2, 3, 4], "M8[s]"), "m8[s]"),
        (np.array([1, 2, 3, 4], "u1"), "M8[s]"),
        ([1, 2, 3, 4], "m8[s]"),
        (np.array([1, 2, 3, 90], "m8[m]"), "m8[h]"),
    ],
)
def test_all_verbs_refuse_values_that_would_change_before_they_change_anything(verb, values, dtype):
    z = zarrdask.create_array(store := {}, shape=4, dtype=dtype, chunks=2)
    before = dict(store)
    with pytest.raises(CodecError, match=r"zarrdask\.casting = 'numpy' permits"):
        VERBS[verb](np.array(values), z)
    assert store == before


def test_numpy_casts_if_the_setting_says_so():
    z = zarrdask.create_array({}, shape=2, dtype="i1", chunks=2)
    with dask.config.set({"zarrdask.casting": "numpy"}):
        z[...] = np.array([300, 1])
        assert z[...].tolist() == [44, 1]
        z.append(np.array([300]))
        zarrdask.append(np.array([300]), z)
    assert z[2:].tolist() == [44, 44]


@for_each("dtype", ["i1", "u2", "int4"])
def test_numbers_of_python_must_be_in_range(dtype):
    z = zarrdask.create_array({}, shape=2, dtype=dtype)
    for write in (lambda: z.__setitem__(0, 10**6), lambda: z.append([1, -(10**6)])):
        with pytest.raises(SelectionError, match="out of bounds"):
            write()
    assert z[...].tolist() == [0, 0]


@for_each(
    ("value", "dtype", "refused"),
    [
        (1, "i1", ()),
        ([1, 2], "u1", ()),
        (1, "f2", ()),
        (0.1, "f4", ()),
        (0.1, "bfloat16", ()),
        (True, "i1", ()),
        (1.5, "i4", ("same_kind", "safe")),
        (1, "?", ("same_kind", "safe")),
        (np.float64(0.1), "f4", ("safe",)),
        ([np.int64(1), 2], "i1", ("safe",)),
        ([np.array(300), np.array(1)], "u1", ("same_kind", "safe")),
        ("text", "T", ()),
        (np.array(["text"], object), "T", ()),
        (np.array(["text"]), "U2", ("safe",)),
        ("text", "U2", ("safe",)),
        (np.datetime64(1, "ms"), "M8[s]", ("safe",)),
        (np.array([1], ">i4"), "<i4", ()),
    ],
)
def test_which_values_are_refused(value, dtype, refused):
    z = zarrdask.create_array({}, shape=2, dtype=str if dtype == "T" else dtype)
    for casting in ("numpy", "same_kind", "safe"):
        with dask.config.set({"zarrdask.casting": casting}):
            if casting in refused:
                with pytest.raises(CodecError):
                    z[:] = value
            else:
                z[:] = value


def test_the_setting_has_three_values():
    z = zarrdask.create_array({}, shape=2, dtype="i1")
    with (
        dask.config.set({"zarrdask.casting": "unsafe"}),
        pytest.raises(MetadataError, match=r"zarrdask\.casting: .*'same_kind'"),
    ):
        z[...] = np.ones(2)


@for_each(
    "verb", [verb for verb in VERBS if "rechunk" not in verb and verb not in ("copy", "points")]
)
def test_numbers_of_python_have_no_size_but_a_range(verb):
    def array():
        z = zarrdask.create_array({}, shape=4, dtype="i1", chunks=2)
        z[...] = 7
        return z

    for casting in ("numpy", "safe"):
        with dask.config.set({"zarrdask.casting": casting}):
            VERBS[verb]([1, 2, 3, 4], array())
            with pytest.raises(SelectionError, match="does not fit"):
                VERBS[verb]([1, 2, 3, 300], z := array())
    np.testing.assert_array_equal(z[...], [7] * 4)
    with dask.config.set({"zarrdask.casting": "safe"}), pytest.raises(CodecError):
        VERBS[verb]([1.5, 2, 3, 4], z)
