"""The data: one smooth and noisy field, stored in every layout. Made once, then reused."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import zarrdask
from benchmarks.rows import LAYOUTS, Layout, Shape

# Temperatures in kelvin. The smooth part changes the upper two bytes of a float32 rarely, and
# the noise fills the lowest and half of the next: blosc-lz4 has something to find, and gets to
# about half of the size.
NOISE = 0.003


def field(shape: Shape) -> np.ndarray:
    """Return the field: waves along three axes, and noise."""
    found = np.random.default_rng(0).standard_normal(shape, np.float32)
    found *= np.float32(NOISE)
    y, x = np.ogrid[: shape[1], : shape[2]]
    for z, plane in enumerate(found):
        plane += 285 + 10 * np.sin(z / 60) * np.cos(y / 200) + 5 * np.cos(x / 100 + y / 400)
    return found


def values(root: Path, shape: Shape) -> np.ndarray:
    """Return what an array of that shape holds; of the array of row 8, the first 10 rows."""
    if len(shape) == 2:
        return np.arange(10 * shape[1], dtype=np.float32).reshape(10, -1)
    return np.load(root / "field.npy", mmap_mode="r")[tuple(map(slice, shape))]


def total(store: Path) -> float:
    """Return the sum of an array's elements, as its attributes tell."""
    return float(json.loads((store / "zarr.json").read_bytes())["attributes"]["sum"])


def made(path: Path, make: Callable[[Path], object]) -> Path:
    """Return a path, at which something is made unless it is there.

    It has another name until it is complete: what an interrupted run leaves is not taken for data.
    """
    if not path.exists():
        part = path.with_name(f"{path.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        make(part)
        part.rename(path)
    return path


def saved(path: Path, elements: Callable[[], np.ndarray]) -> Path:
    """Return a path, at which elements are saved for `numpy.load` unless they are there."""

    def save(part: Path) -> None:
        with part.open("wb") as file:  # to the path, NumPy would append ".npy"
            np.save(file, elements())

    return made(path, save)


def make(root: Path, layout: Layout) -> None:
    """Write an array, unless it is there."""

    def write(path: Path) -> None:
        given = values(root, layout.shape)
        about = {"sum": float(given.sum(dtype=np.float64))}
        options = {"attributes": about, **layout.options()}
        z = zarrdask.create_array(path, shape=layout.shape, dtype=given.dtype, **options)
        z[: len(given)] = given
        size = sum(file.stat().st_size for file in filter(Path.is_file, path.rglob("*")))
        print(f"{layout.name}: {given.nbytes >> 20} MiB, compressed {given.nbytes / size:.2f}-fold")

    made(root / layout.name, write)


def main(root: Path, planes: int, names: list[str]) -> None:
    """Make what isn't there."""
    root.mkdir(parents=True, exist_ok=True)
    # Tiny arrays have 64 planes, whatever the others have.
    saved(root / "field.npy", lambda: field((max(planes, 64), 1024, 1024)))
    for layout in LAYOUTS:
        if layout.name in names:
            make(root, layout.tiny())
            make(root, layout.sized(planes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
