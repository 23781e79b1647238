"""Earthmover's opening of ARCO ERA5: 277 arrays in a store with latency."""

import asyncio
import atexit
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import zarrdask
from benchmarks.object_server import serving
from benchmarks.published.jobs import Timed
from benchmarks.timing import Job

IN_FLIGHT = 64
ARRAYS, TINY_ARRAYS = 277, 5
SECONDS = 0.05
AXES = {"time": 744, "latitude": 721, "longitude": 1440}


def bucket(url: str) -> Any:
    """Return the server's bucket in obstore."""
    from benchmarks.far import s3

    return s3(url)


def fill(url: str, arrays: int) -> None:
    """Create the arrays: coordinates, and variables along all of them."""
    root = zarrdask.create_group(bucket(url), "era5")
    for axis, length in AXES.items():
        root.create_array(axis, shape=length, dtype="f8", dimension_names=(axis,))[...] = range(
            length
        )
    for number in range(arrays - len(AXES)):
        root.create_array(
            f"variable_{number:03}",
            shape=tuple(AXES.values()),
            chunks=(1, 721, 1440),
            dtype="f4",
            dimension_names=tuple(AXES),
            attributes={"units": "K", "long_name": f"variable {number}"},
        )


def delay(url: str, seconds: float) -> None:
    """Let the server answer each request so late from now on."""
    from benchmarks.far import control

    control(url, f"set?delay={seconds}")


def prepare(case: str, tool: str, root: Path, *, tiny: bool) -> Job:
    """Return the opening of all arrays, in a server of its own that answers late."""
    arrays = TINY_ARRAYS if tiny else ARRAYS
    serves = ExitStack()
    atexit.register(serves.close)
    url = serves.enter_context(serving())
    fill(url, arrays)
    delay(url, SECONDS)
    return OPENERS[tool](url), lambda opened: len(opened) == arrays


def by_zarrdask(url: str) -> Callable[[], Any]:
    return lambda: dict(zarrdask.open_group(bucket(url), "era5").arrays())


def by_zarrista(url: str) -> Callable[[], Any]:
    from zarrista import AsyncGroup

    async def opened() -> Any:
        return await (await AsyncGroup.open(bucket(url), "/era5")).child_arrays()

    return lambda: asyncio.run(opened())


def by_zarr(url: str) -> Callable[[], Any]:
    store = _zarr_store(url)
    import zarr

    return lambda: dict(
        zarr.open_group(store, path="era5", mode="r", use_consolidated=False).arrays()
    )


def by_xarray_zarrdask(url: str) -> Callable[[], Any]:
    import xarray

    from zarrdask.xarray.engine import ZarrdaskBackendEntrypoint

    # The class, so that it works where zarrdask is not installed, but imported from this folder.
    engine, store = ZarrdaskBackendEntrypoint, bucket(url)
    return lambda: xarray.open_dataset(store, group="era5", engine=engine, chunks={}).variables


def by_xarray_zarr(url: str) -> Callable[[], Any]:
    import xarray

    store = _zarr_store(url)
    return lambda: xarray.open_zarr(store, group="era5", consolidated=False, chunks={}).variables


def _zarr_store(url: str) -> Any:
    import zarr

    zarr.config.set({"async.concurrency": IN_FLIGHT})
    return zarr.storage.ObjectStore(bucket(url), read_only=True)


OPENERS = {
    "zarrdask": by_zarrdask,
    "zarrista+obstore": by_zarrista,
    "zarr+obstore": by_zarr,
    "xarray+zarrdask": by_xarray_zarrdask,
    "xarray+zarr+obstore": by_xarray_zarr,
}

JOBS = (
    Timed(
        name="openings",
        title="Opening 277 arrays",
        source="https://earthmover.io/blog/xarray-open-zarr-improvements",
        definition="A dataset of 277 arrays without consolidated metadata, as many as ARCO ERA5"
        " has, is opened: all arrays by the library itself, or the dataset by xarray, which also"
        " reads its three coordinates.",
        scaled="the store is a server on loopback that answers each request 50 ms late, instead of"
        " a bucket of Google Cloud Storage; the number of arrays is the same. Earthmover reports 60"
        " to 200 s with zarr-python 2, and less than 15 s after its work on xarray and"
        " zarr-python 3.",
        cases={"50": "277 arrays, 50 ms for each request"},
        groups=(
            ("zarrdask", "zarrista+obstore", "zarr+obstore"),
            ("xarray+zarrdask", "xarray+zarr+obstore"),
        ),
        prepare=prepare,
        budget=40,
        remarks=("tensorstore has no groups: it opens arrays whose names it is told.",),
    ),
)
