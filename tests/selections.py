"""Strategies: arrays, how they are stored, and selections of them."""

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrdask
from tests.documents import named, sharding

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)


@st.composite
def layouts(draw, min_dims=0, min_side=0):
    """Options of `create_array`: shape, chunks, perhaps shards, order, format, key encoding.

    Chunks or shards may be of several shapes.
    """
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=3, min_side=min_side, max_side=9))
    chunks = tuple(draw(st.integers(1, 5)) for _ in shape)
    options = {"shape": shape, "chunks": chunks, "order": draw(st.sampled_from("CF"))}
    kinds = ["plain", "shards", "transposed shards", "v2", "uneven", "uneven shards"]
    kind = draw(st.sampled_from(kinds))
    if kind == "transposed shards":
        reverse = named("transpose", order=[*range(len(shape))][::-1])
        shards = tuple(c * draw(st.integers(1, 3)) for c in chunks)
        return {"shape": shape, "chunks": shards, "codecs": [reverse, sharding(chunks[::-1])]}
    if kind == "shards":
        options["shards"] = tuple(c * draw(st.integers(1, 3)) for c in chunks)
    elif kind == "v2":
        options |= {"zarr_format": 2, "separator": draw(st.sampled_from("./"))}
    elif kind == "uneven":
        options["chunks"] = tuple(draw(lengths(size)) for size in shape)
    elif kind == "uneven shards":
        options["shards"] = tuple(draw(lengths(n, c)) for n, c in zip(shape, chunks, strict=True))
    options["compressors"] = draw(st.sampled_from([[], "zstd", "gzip"]))
    return options


@st.composite
def lengths(draw, size, unit=1):
    """Lengths of chunks that reach the end of an axis, perhaps beyond: multiples of a unit."""
    found = []
    while sum(found) < size:
        found.append(unit * draw(st.integers(1, 4)))
    return tuple(found + draw(st.lists(st.just(2 * unit), max_size=1)))


@st.composite
def stored_arrays(draw, min_dims=0, min_side=0):
    """A stored array, some of whose chunks are absent, and the same as an ndarray."""
    options = draw(layouts(min_dims=min_dims, min_side=min_side))
    dtype = draw(st.sampled_from(["<i4", "u1", ">f8" if "zarr_format" in options else "f8"]))
    z = zarrdask.create_array({}, dtype=dtype, fill_value=7, **options)
    expected = np.full(z.shape, 7, dtype)
    index = draw(boxes(z.shape))
    values = np.arange(math.prod(expected[index].shape)).reshape(expected[index].shape) % 200
    expected[index] = values
    z[index] = values
    return z, expected


@st.composite
def boxes(draw, shape):
    """A tuple of slices with step 1."""
    index = []
    for size in shape:
        start = draw(st.integers(0, size))
        index.append(slice(start, draw(st.integers(start, size))))
    return tuple(index)


def basic(shape, *, newaxis=True):
    """NumPy's basic indices."""
    return hnp.basic_indices(shape, allow_newaxis=newaxis, allow_ellipsis=True)


@st.composite
def positions(draw, size):
    """A list of positions, a mask, a slice or an integer, for one axis."""
    kinds = ["list", "mask", "slice"] + (["integer"] if size else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "list":
        most = 6 if size else 0
        return draw(st.lists(st.integers(-size, size - 1), max_size=most)) if most else []
    if kind == "mask":
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    if kind == "slice":
        return draw(st.slices(size))
    return draw(st.integers(-size, size - 1))


@st.composite
def outer(draw, shape):
    """An orthogonal index, one entry an axis."""
    return tuple(draw(positions(size)) for size in shape)


def take_outer(array, index):
    """Return what NumPy gives for an orthogonal index, and the index to assign with."""
    lists, finish = [], []
    for entry, size in zip(index, array.shape, strict=True):
        if isinstance(entry, int):
            lists.append([entry])
            finish.append(0)
        else:
            lists.append(
                np.arange(size)[np.array(entry, np.intp) if entry == [] else entry]
                if isinstance(entry, list)
                else np.arange(size)[entry]
            )
            finish.append(slice(None))
    grid = np.ix_(*lists)
    return array[grid][tuple(finish)], grid


@st.composite
def points(draw, shape):
    """A vectorised index: integer arrays that broadcast together."""
    result = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5))
    return tuple(
        draw(hnp.arrays(np.intp, result, elements=st.integers(-size, size - 1))) for size in shape
    )
