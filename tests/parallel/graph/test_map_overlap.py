"""`map_overlap`: the results are those of Dask, from one task for each block."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.cases import same
from tests.parallel.graph.counting import stored
from zarrdask.errors import MetadataError, NodeTypeError


@for_each(
    "options",
    [
        {"trim": True},
        {"boundary": "reflect", "drop_axis": 0},
        {"boundary": "periodic", "new_axis": 1},
        {"boundary": 5, "trim": False, "chunks": ((18,) * 4, (18,) * 3)},
        {"boundary": ("nearest", "none"), "align_arrays": False, "dtype": "i4"},
        {"depth": 0, "boundary": "reflect"},
        {"depth": {0: (1, 2)}},
    ],
)
def test_map_overlap_is_that_of_dask(options):
    options = {"depth": 4} | options

    def func(values, block_info=None):
        values = values + values.shape[0]
        values = values.sum(options["drop_axis"]) if "drop_axis" in options else values
        return np.expand_dims(values, 1) if "new_axis" in options else values

    z = stored()
    x = da.map_overlap(func, zarrdask.from_zarr(z, chunks="stored"), **options)
    y = zarrdask.map_overlap(func, z, blocks="stored", **options)
    assert y.chunks == x.chunks
    same(y.compute(), x.compute())


def test_an_axis_that_a_function_adds_is_not_trimmed():
    z = stored()
    options = {"depth": {0: 2, 1: 3}, "boundary": "reflect", "new_axis": [2]}
    x = zarrdask.map_overlap(lambda v: v[..., None], z, blocks="stored", **options)
    same(x.compute(), zarrdask.open_array(z)[...][..., None])


def test_a_function_that_trims_its_results_itself():
    z = stored()
    options = {"depth": 2, "boundary": "reflect", "trim": False}
    y = zarrdask.map_overlap(lambda v: v[2:-2, 2:-2], z, blocks="stored", **options)
    assert y.chunks == zarrdask.from_zarr(z, chunks="stored").chunks
    same(y.compute(), zarrdask.open_array(z)[...])


def test_a_block_that_is_shorter_than_the_depth_may_be_an_error():
    with pytest.raises(MetadataError, match="shorter"):
        zarrdask.map_overlap(abs, stored(), depth=11, blocks="stored", allow_rechunk=False)


def test_a_dask_array_is_mapped_by_dask():
    x = zarrdask.from_zarr(stored())
    with pytest.raises(NodeTypeError, match=r"dask\.array\.map_overlap"):
        zarrdask.map_overlap(abs, x, depth=1)
