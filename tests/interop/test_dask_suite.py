"""Dask's own tests of `from_zarr` and `to_zarr`, which are ours while they run."""

import dask.array.tests.test_array_core as dask_tests
import pytest

from zarrdask.compat.dask import installed

# One has `pytest.mark.slow`.
globals().update(
    {n: t for n, t in vars(dask_tests).items() if n.startswith("test") and "zarr" in n}
)
unknown = dask_tests.unknown

_BLOCKS = "a shard is one block, not the chunks in it; whole chunks are written, in one task"
_DELAYED = "compute=False returns a Delayed"
_WARNS = "blocks are aligned, so that they may be irregular and cross chunks: nothing is warned of"
_TEXT = "the error has another text"
#: Tests that must fail here, by name, and why: docs/from-dask-array.md lists these differences. The
#: list is strict: a pass is an error.
EXPECTED_FAILURES = {
    "test_zarr_sharding_roundtrip": _BLOCKS,
    "test_zarr_return_stored[True]": "the stored array has the blocks of from_zarr",
    "test_zarr_inline_array[False]": "the array is part of each task if it is small",
    "test_to_zarr_unknown_chunks_raises": _TEXT,
    "test_zarr_irregular_chunks[shape0-chunks0-True]": _WARNS,
    "test_zarr_irregular_chunks[shape1-chunks1-True]": _WARNS,
    "test_zarr_irregular_chunks[shape4-chunks4-True]": _WARNS,
    "test_zarr_to_zarr_shards": _DELAYED,
    "test_zarr_risky_shards_warns": _WARNS,
    "test_zarr_nocompute": _DELAYED,
    "test_zarr_regions": _WARNS,
    "test_compute_chunk_sizes_warning_fixes_to_zarr": _WARNS,
}


@pytest.fixture(autouse=True)
def verbs():
    with installed(chunks="stored"):
        yield
