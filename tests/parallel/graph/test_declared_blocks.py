"""Blocks that are not what Dask's array declares: of another data type or shape, or sparse."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import CodecError, SelectionError, UnsupportedError, ZarrdaskError


def computed(values, dtype, shape=None):
    """Return a Dask array of two blocks, which declares another data type than it has."""
    values = np.asarray(values)
    blocks = [da.from_delayed(dask.delayed(values), shape or values.shape, dtype)] * 2
    return da.concatenate(blocks)


def made(x, **options):
    return zarrdask.create_array({}, shape=x.shape, dtype=x.dtype, chunks=x.chunksize, **options)


def append(x):
    z = zarrdask.create_array({}, shape=(0, *x.shape[1:]), dtype=x.dtype, chunks=x.chunksize)
    zarrdask.append(x, z)
    return z[...]


def stored_by(verb):
    def store(x):
        target = {}
        verb(x, target)
        return zarrdask.open_array(target)[...]

    return store


def region(x):
    z = made(x)
    zarrdask.to_zarr(x, z, region=(slice(0, x.shape[0]), ...))
    return z[...]


def rechunk(x, target):
    zarrdask.rechunk(x, target, chunks=(1, *x.chunksize[1:])).execute(progress=False)


VERBS = {
    "to_zarr": stored_by(zarrdask.to_zarr),
    "append": append,
    "region": region,
    "later": stored_by(lambda x, to: dask.compute(zarrdask.to_zarr(x, to, compute=False))),
    "rechunk": stored_by(rechunk),
    "rechunked": lambda x: zarrdask.rechunked(x, (3, *x.chunks[1:])).compute(),
    "store": lambda x: da.store(x, z := made(x), lock=False) or z[...],
}
LIES = {
    "out of range": ([1, 300], "i1"),
    "NaN": ([1, np.nan], "i4"),
    "overflow": ([1, 1e300], "f4"),
    "text": (["a", "bb"], "U1"),
    "bytes": ([b"a", b"bb"], "S1"),
    "objects": (np.array([1, None], object), "i4"),
    "fine times": (np.array([60, 90], "m8[s]"), "m8[m]"),
}


@for_each(("verb", "lie"), [("to_zarr", "text"), ("append", "out of range")])
def test_blocks_of_another_dtype_are_checked(verb, lie):
    with pytest.raises(CodecError):
        VERBS[verb](computed(*LIES[lie]))


@pytest.mark.slow
@for_each("verb", VERBS)
@for_each("lie", LIES)
def test_blocks_of_another_dtype_lose_nothing(verb, lie):
    with pytest.raises(CodecError):
        VERBS[verb](computed(*LIES[lie]))


@pytest.mark.slow
@for_each("verb", VERBS)
def test_blocks_of_another_dtype_are_cast_if_nothing_is_lost(verb):
    found = VERBS[verb](computed(np.array([1, 2], ">i8"), "i1"))
    np.testing.assert_array_equal(found, np.array([1, 2, 1, 2], "i1"), strict=True)


def test_a_safe_rule_holds_for_what_is_computed():
    x = computed([1, 2], "i1")
    for casting in ("safe", "same_kind"):
        with dask.config.set({"zarrdask.casting": casting}):
            if casting == "safe":
                with pytest.raises(CodecError, match="by 'safe'"):
                    zarrdask.to_zarr(x, {})
            else:
                zarrdask.to_zarr(x, {})


@pytest.mark.slow
@for_each("verb", [verb for verb in VERBS if verb != "store"])
def test_a_block_of_another_shape_is_an_error(verb):
    for values, shape in (([[1, 2]], (2,)), ([1, 2], (2, 2)), ([1, 2, 3], (2,)), (7, (2,))):
        with pytest.raises((ZarrdaskError, IndexError, ValueError)) as caught:
            VERBS[verb](computed(values, "i8", shape))
        if verb in ("to_zarr", "region"):
            assert isinstance(caught.value, SelectionError)


class Sparse:
    """An array like those of sparse, which can't be converted to one of NumPy."""

    shape, ndim, dtype = (2,), 1, np.dtype("i8")

    def todense(self):
        return np.arange(2)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("cannot convert a sparse array")


def test_a_sparse_block_says_how_it_is_made_dense():
    x = da.from_delayed(dask.delayed(Sparse)(), (2,), "i8")
    with pytest.raises(UnsupportedError, match="todense"):
        zarrdask.to_zarr(x, {})
    with pytest.raises(UnsupportedError, match="todense"):
        zarrdask.create_array({}, shape=2, dtype="i8")[...] = Sparse()


def test_levels_of_a_pyramid_are_computed_from_blocks_as_declared():
    for values, dtype in (LIES["out of range"], LIES["NaN"]):
        x = computed(np.array([values] * 2), dtype)
        with pytest.raises(CodecError):
            zarrdask.pyramid(x, {}, axes=["y", "x"]).execute(progress=False)


def test_blocks_with_margins_are_checked_where_they_are_stored():
    z = zarrdask.create_array({}, shape=4, dtype="i8", chunks=2)
    z[...] = 300
    x = zarrdask.map_overlap(lambda b: b, z, depth=1, boundary="nearest", dtype="i1")
    with pytest.raises(CodecError, match="out of the range of int8"):
        zarrdask.to_zarr(x, {})
