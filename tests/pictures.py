"""The pictures in the documentation, drawn by the library: ``python -m tests.pictures``."""

from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da

import zarrdask

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def unaligned():
    """Blocks of 50 on chunks of 64."""
    x = da.zeros((150, 150), chunks=50, dtype="f4")
    return zarrdask.plan_write(x, chunks=64, dimension_names=("y", "x"))


def region():
    """A region whose edges lie within chunks."""
    z = zarrdask.create_array(
        {}, shape=(320, 400), chunks=64, dtype="f4", dimension_names=("y", "x")
    )
    x = da.zeros((150, 250), chunks=(75, 50), dtype="f4")
    return zarrdask.plan_write(x, z, region=(slice(96, 246), slice(64, 314)))


def steps():
    """A block for each of many steps, and chunks of several: too many to draw all."""
    x = da.zeros((960, 180, 360), chunks=(4, 180, 360), dtype="f4")
    return zarrdask.plan_write(
        x, chunks=(10, 90, 90), dimension_names=("time", "latitude", "longitude")
    )


def reads():
    """Blocks of 400 x 700 on chunks of 256: chunks at their boundaries are decoded twice."""
    z = zarrdask.create_array(
        {}, shape=(1200, 2100), chunks=256, dtype="f4", dimension_names=("y", "x")
    )
    z[...] = 1
    return zarrdask.plan_read(zarrdask.from_zarr(z, chunks=(400, 700))[100:900, 300:1800])


class Drawn(NamedTuple):
    """A pass of a plan."""

    plan: Any
    number: int

    def svg(self):
        return self.plan.svg(self.number)


def rows_to_columns():
    """Chunks of rows become chunks of columns, in two passes."""
    z = zarrdask.create_array({}, shape=(3000, 4000), chunks=(100, 4000), dtype="f8")
    return zarrdask.rechunk(z, {}, chunks=(3000, 200), max_mem="28 MiB", scheduler="sync")


def packed():
    """The first of the two."""
    return Drawn(rows_to_columns(), 0)


def columns():
    """The second."""
    return Drawn(rows_to_columns(), 1)


PICTURES = {plan.__name__: plan for plan in (unaligned, region, steps, reads, packed, columns)}


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, plan in PICTURES.items():
        (IMAGES / f"{name}.svg").write_text(plan().svg())
