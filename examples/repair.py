"""A damaged store: found out by `verify`, repaired from a backup that has other chunks."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import zarrdask


def terrain(size=384):
    """Return the heights of a hilly landscape, in metres."""
    y, x = np.mgrid[:size, :size] / size
    rng = np.random.default_rng(11)
    height = np.zeros((size, size))
    for octave in range(1, 7):
        a, b, c, d = rng.uniform(-1, 1, 4) * 2**octave
        height += np.sin(2 * np.pi * (a * x + b * y + c)) * np.cos(3 * d * (x - y)) / 1.6**octave
    return (900 + 500 * height).astype("f4")


def damage(path, rng):
    """Cut one chunk off, change a byte of four others, and write nonsense over another one."""
    files = sorted(p for p in path.glob("c/*/*") if p.is_file())
    for number, file in enumerate(rng.permutation(files)[:6]):
        values = bytearray(file.read_bytes())
        if number == 0:
            del values[len(values) // 2 :]
        elif number == 1:
            values = bytearray(b"nonsense")
        else:
            values[len(values) // 3] ^= 0xFF
        file.write_bytes(values)


def main(folder):
    """Write an array and a backup, damage the array, find the damage, and repair it."""
    height = terrain()
    z = zarrdask.create_array(
        folder / "height.zarr",
        shape=height.shape,
        dtype="f4",
        chunks=(48, 48),
        compressors=["zstd", "crc32c"],
    )
    z[...] = height
    zarrdask.copy(z, folder / "backup.zarr", chunks=(96, 96), compressors="gzip")

    damage(folder / "height.zarr", np.random.default_rng(4))
    report = zarrdask.verify(folder / "height.zarr")
    print(f"sound: {report.ok}; damaged chunks:")
    [chunks] = report.bad.values()
    for index in chunks:
        print("  ", index)

    repaired = report.repair(folder / "backup.zarr")
    print(f"sound: {repaired.ok}; the values are those of the backup: ", end="")
    print(zarrdask.compare(folder / "height.zarr", folder / "backup.zarr").ok)
    return height, chunks, z.chunks


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
