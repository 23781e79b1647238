"""Random writes: what is stored, what is written over it, and in which pieces."""

import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

import zarrdask

DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16")
ONLY_V2 = (">i4", ">f8", "S3", "<U2", "M8[D]")
FILLS = {
    "b": [True],
    "i": [-1],
    "u": [200],
    "f": [np.nan, -0.0, np.inf],
    "c": [complex(np.nan, 1)],
    "S": [b"no"],
    "U": ["no"],
    "M": ["NaT", "2001-01-01"],
}
CODECS = ("", "zstd", "gzip", "blosc", "crc32c", "zstd crc32c")


@dataclass(frozen=True)
class Case:
    """One write: `new`, in blocks, to an array with these options, or to a region of it."""

    seed: int
    options: dict[str, Any]
    blocks: tuple[tuple[int, ...], ...]
    old: np.ndarray
    new: np.ndarray
    region: tuple[slice, ...] | None
    expected: np.ndarray

    def __str__(self):
        return f"seed {self.seed}: {self.blocks} to {self.region} of {self.options}"

    def prepare(self, place):
        """Store what is there before, if the write is to a region."""
        if self.region is not None:
            zarrdask.create_array(place, **self.options)[...] = self.old

    def write(self, place, **options):
        """Do it, or return what does it."""
        x = da.from_array(self.new, chunks=self.blocks)
        if self.region is None:
            options |= {k: v for k, v in self.options.items() if k != "shape"}
        return zarrdask.to_zarr(x, place, region=self.region, **options)

    def units(self):
        """Yield, for each stored unit, its index and where it lies: by counting, not by a grid."""
        lengths = self.options.get("shards") or self.options["chunks"]
        axes = []
        for size, length in zip(self.options["shape"], lengths, strict=True):
            if isinstance(length, int):
                length = [length] * -(-size // length)
            ends = list(itertools.accumulate(length, initial=0))
            axes.append([slice(a, min(b, size)) for a, b in itertools.pairwise(ends) if a < size])
        for pairs in itertools.product(*map(enumerate, axes)):
            yield tuple(i for i, _ in pairs), tuple(part for _, part in pairs)

    def meets(self, part):
        """Whether the write touches this part of the array."""
        return self.new.size > 0 and (
            self.region is None
            or all(
                a.start < b.stop and b.start < a.stop
                for a, b in zip(part, self.region, strict=True)
            )
        )

    def is_fill(self, part):
        """Whether nothing but the fill value is to lie there."""
        values = self.expected[(*part, ...)]
        fill = self.options.get("fill_value")
        fill = np.zeros((), values.dtype) if fill is None else np.array(fill, values.dtype)
        return values.tobytes() == np.full(values.shape, fill).tobytes()


@contextmanager
def explained(case):
    """Say which case it was that failed."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(case))
        raise


def same(found, expected):
    """Check that two arrays are the same, bit for bit."""
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


def case(seed):
    """Return the write that a seed stands for."""
    rng = np.random.default_rng(seed)
    ndim = int(rng.choice(4, p=(0.03, 0.32, 0.4, 0.25)))
    shape = tuple(int(rng.integers(1, (0, 120, 30, 12)[ndim])) for _ in range(ndim))
    if rng.random() < 0.03:
        shape = tuple(0 if i == ndim - 1 else n for i, n in enumerate(shape))
    zarr_format = int(rng.choice([2, 3], p=(0.25, 0.75)))
    dtype = np.dtype(str(rng.choice(DTYPES + (ONLY_V2 if zarr_format == 2 else ()))))
    options = {"shape": shape, "dtype": dtype, "zarr_format": zarr_format}
    options |= layout(rng, shape, dtype, zarr_format)
    if rng.random() < 0.5:
        fills = FILLS[dtype.kind]
        options["fill_value"] = fills[rng.integers(len(fills))]
    old = _values(rng, shape, dtype, options.get("fill_value"))
    region = tuple(map(_slice, itertools.repeat(rng), shape)) if rng.random() < 0.5 else None
    new = old[region or ()]
    new = _values(rng, new.shape, dtype, options.get("fill_value"))
    expected = old.copy()
    expected[region or ...] = new
    blocks = tuple(map(_blocks, itertools.repeat(rng), new.shape))
    return Case(seed, options, blocks, old, new, region, expected)


def layout(rng, shape, dtype, zarr_format):
    """Return options of an array: random chunks, shards and codecs."""
    return _grid(rng, shape, zarr_format) | _codecs(rng, len(shape), dtype, zarr_format)


def tiles(seed):
    """Return a case, and regions of its array: each element lies in one of them."""
    rng = np.random.default_rng(seed)
    found = case(seed)
    regions = [tuple(slice(0, n) for n in found.options["shape"])]
    for _ in range(int(rng.integers(1, 6)) if regions[0] else 0):
        region = regions.pop(int(rng.integers(len(regions))))
        axis = int(rng.integers(len(region)))
        start, stop = region[axis].start, region[axis].stop
        at = int(rng.integers(start, stop + 1))
        for part in (slice(start, at), slice(at, stop)):
            regions.append((*region[:axis], part, *region[axis + 1 :]))
    return found, regions


def _values(rng, shape, dtype, fill):
    """Return values, some parts of which are only the fill value."""
    raw = rng.integers(0, 100, shape)
    found = raw.astype("M8[D]") if dtype.kind == "M" else raw.astype(dtype)
    if dtype.kind in "fc" and found.size:
        found.flat[rng.integers(found.size)] = -0.0
        found.flat[rng.integers(found.size)] = np.nan
    for _ in range(int(rng.integers(3))):
        empty = "" if dtype.kind in "SU" else 0
        found[tuple(map(_slice, itertools.repeat(rng), shape))] = empty if fill is None else fill
    return np.asarray(found, dtype)


def _slice(rng, size):
    start, stop = sorted(int(n) for n in rng.integers(0, size + 1, 2))
    if rng.random() < 0.2:
        start, stop = 0, size
    return slice(start, stop if stop > start or rng.random() < 0.1 else size, None)


def _cuts(rng, size, most):
    """Cut a length into up to so many random parts."""
    count = int(rng.integers(0, min(most, size))) if size > 1 else 0
    cuts = sorted(int(n) for n in rng.choice(np.arange(1, size), count, replace=False))
    return tuple(b - a for a, b in itertools.pairwise([0, *cuts, size])) if size else (0,)


def _blocks(rng, size):
    kind = rng.choice(["even", "random", "whole", "gaps"])
    if not size or kind == "whole":
        return (size,)
    if kind == "even":
        length = int(rng.integers(max(size // 6, 1), size + 1))
        return tuple(min(length, size - at) for at in range(0, size, length))
    found = _cuts(rng, size, 6)
    # Dask has blocks without elements.
    return (0, *found[:1], 0, *found[1:]) if kind == "gaps" else found


def _length(rng, size):
    return int(rng.integers(max(size // 6, 1), max(size, 1) + 2))


def _grid(rng, shape, zarr_format):
    kind = "chunks" if zarr_format == 2 or not shape else rng.choice(["chunks", "shards", "uneven"])
    if kind == "chunks":
        return {"chunks": tuple(_length(rng, n) for n in shape)}
    if kind == "uneven" and 0 not in shape and rng.random() < 0.5:
        return {"chunks": tuple(_cuts(rng, n, 6) for n in shape)}
    chunks = tuple(int(rng.integers(1, max(n // 4, 1) + 1)) for n in shape)
    if kind == "shards" or 0 in shape:
        return {
            "chunks": chunks,
            "shards": tuple(
                -(-_length(rng, n) // c) * c for n, c in zip(shape, chunks, strict=True)
            ),
        }
    counts = [_cuts(rng, -(-n // c), 4) for n, c in zip(shape, chunks, strict=True)]
    lengths = [tuple(k * c for k in axis) for axis, c in zip(counts, chunks, strict=True)]
    return {"chunks": chunks, "shards": tuple(lengths)}


def _codecs(rng, ndim, dtype, zarr_format):
    if zarr_format == 2:
        options = {"compressors": [None, "zlib", "blosc", ()][rng.integers(4)]}
        options |= {"separator": "./"[rng.integers(2)]}
        if dtype.kind in "iu" and dtype.isnative and rng.random() < 0.5:
            options["filters"] = [{"id": "delta", "dtype": dtype.str}]
        return options | {"order": "CF"[rng.integers(2)]}
    after = str(rng.choice(CODECS)).split()
    if rng.random() < 0.3:
        axes = [int(n) for n in rng.permutation(ndim)]
        before = [{"name": "transpose", "configuration": {"order": axes}}] if ndim else []
        endian = {"name": "bytes", "configuration": {"endian": "big"}}
        elements = endian if dtype.itemsize > 1 else "bytes"
        return {"codecs": [*before, elements, *after]}
    return {"compressors": after, "order": "CF"[rng.integers(2)]}
