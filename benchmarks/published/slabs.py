"""The slabs of zarrista#63: an array is read in slabs of a few rows, which share chunks."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published.jobs import Timed, module
from benchmarks.published.zarr_benchmarks import COMPRESSED, store, values
from benchmarks.rows import Layout
from benchmarks.timing import Job

CUBES = replace(COMPRESSED, name="slabs", chunks=(64, 64, 64), shape=(512, 512, 512))
CACHE_BYTES = 2**26
#: Rows of a slab.
CASES = {"64": "64 rows", "16": "16 rows", "4": "4 rows"}


def sized(*, tiny: bool) -> Layout:
    """Return the layout of the array, or of the tiny one."""
    return CUBES.tiny() if tiny else CUBES


def make(root: Path, *, tiny: bool) -> None:
    """Store the arrays that are not there yet."""
    store(root, sized(tiny=True))
    store(root, sized(tiny=tiny))


def prepare(case: str, tool: str, root: Path, *, tiny: bool) -> Job:
    """Return the sums of all slabs, one after another."""
    layout, rows = sized(tiny=tiny), int(case)
    z = opened(tool, str(root / layout.name))
    starts = range(0, layout.shape[0], rows)

    def run() -> list[int]:
        return [int(z[start : start + rows].sum(dtype=np.int64)) for start in starts]

    def is_right(sums: list[int]) -> bool:
        return sum(sums) == int(values(root, layout).sum(dtype=np.int64))

    return run, is_right


def opened(tool: str, path: str) -> Any:
    """Return the open array, with a cache of decoded chunks where the contestant has one."""
    contestant = import_module(module(tool))
    if tool == "zarrdask":
        import dask

        dask.config.set({"zarrdask.cache-size": CACHE_BYTES})
    if tool == "tensorstore":
        pool = {"cache_pool": {"total_bytes_limit": CACHE_BYTES}}
        return contestant.eager(path, context=pool, recheck_cached_data="open")
    return contestant.eager(path)


JOBS = (
    Timed(
        name="slabs",
        title="Slabs",
        source="https://github.com/developmentseed/zarrista/issues/63",
        definition="An array of 512³ elements in chunks of 64³ (256 MiB) is read in slabs of 64, 16"
        " or 4 rows, one after another; each slab is added up. Without a cache of decoded chunks,"
        " each chunk is decoded 1, 4 or 16 times; the caches of zarrdask (`zarrdask.cache-size`)"
        " and of tensorstore (`cache_pool`) have 64 MiB.",
        scaled="nothing; the values are those of “Read all”, compressed by zstd, as the issue names"
        " none.",
        cases=CASES,
        groups=(
            (
                "zarrdask",
                "zarrdask+uncached",
                "tensorstore",
                "zarrista",
                "zarr+zarrs",
                "zarr",
                "zarr+fused",
            ),
        ),
        make=make,
        prepare=prepare,
        nbytes=2**26,
        budget=60,
    ),
)
