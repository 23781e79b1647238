"""Random pyramids: their arrays, factors, methods and options."""

import random
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

import zarrdask
from tests.tools.pyramids.reference import reference
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.tools.pyramids.kernels import Reduction

TYPES = ["?", "u1", "i1", "u2", ">i2", "i4", "u8", "i8", "f2", "f4", ">f4", "f8", "c8", "c16"]
LENGTHS = {1: 300, 2: 60, 3: 20, 4: 9, 5: 6}


@dataclass
class Case:
    """An array, and the arguments of its pyramid."""

    values: np.ndarray
    stored: dict[str, Any]
    factors: list[tuple[int, ...]]
    options: dict[str, Any]
    missing: tuple[list[Any], Any] | None
    is_dask: bool

    def source(self):
        if self.is_dask:
            return da.from_array(self.values, chunks=self.stored["chunks"])
        options = {"shape": self.values.shape, "dtype": self.values.dtype, **self.stored}
        array = zarrdask.create_array({}, **options)
        array[...] = self.values
        return array

    def check(self, group):
        method, borders = self.options["method"], self.options["borders"]
        levels = reference(self.values, self.factors, method, borders, self.missing)
        for number, level in enumerate(levels):
            values = group[str(number)][...]
            assert values.dtype == level.dtype.newbyteorder(values.dtype.byteorder)
            # Numbers that are added in another order may differ in the last digit.
            is_wide = values.dtype.kind in "fc" and values.dtype.itemsize >= 8
            options = {"rtol": 1e-14 if is_wide else 0}
            np.testing.assert_allclose(values, level, **options, err_msg=f"level {number}, {self}")

    def run(self, scheduler="threads", target=None):
        """Build the pyramid and check it; return the number of passes."""
        options = {"convention": None, "scheduler": scheduler, **self.options}
        if self.is_dask:
            options |= {"attributes": self.stored["attributes"], "chunks": self.stored["chunks"]}
        plan = zarrdask.pyramid(
            self.source(), {} if target is None else target, factors=self.factors, **options
        )
        self.check(plan.execute(scheduler, progress=False))
        return len(plan.scheme.stages)


def random_case(seed):
    """Return a case that depends on the seed alone."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    ndim, method = draw.choice([1, 1, 2, 2, 2, 3, 3, 4, 5]), draw.choice(list(Reduction.METHODS))
    shape = tuple(draw.randint(1, LENGTHS[ndim]) for _ in range(ndim))
    kinds = Reduction.METHODS[method] or "biufc"
    dtype = draw.choice([t for t in map(np.dtype, TYPES) if kind_of(t) in kinds])
    borders = draw.choice(["trim", "pad", "partial"])
    values = _values(draw, numbers, shape, dtype)
    attributes, missing = {}, None
    if dtype.kind in "fc":
        missing = [], np.nan
    if dtype.kind in "iufc" and draw.random() < 0.5:
        attributes = {"_FillValue": 1, "missing_value": 2}
        missing = [1, 2], 1
    if dtype.kind in "fc" and draw.random() < 0.5:
        values[numbers.random(shape) < 0.3] = np.nan
    chunks = tuple(draw.randint(1, max(2, n)) for n in shape)
    stored = {"chunks": chunks, "attributes": attributes}
    if draw.random() < 0.4:
        stored["shards"] = tuple(n * draw.randint(1, 4) for n in chunks)
    elif draw.random() < 0.3:
        stored["zarr_format"] = 2
    options = {"method": method, "borders": borders}
    options["max_mem"] = draw.choice(["2 MiB", "2.05 MiB", "4 MiB", "256 MiB"])
    is_dask = "shards" not in stored and "zarr_format" not in stored and draw.random() < 0.3
    if not is_dask and draw.random() < 0.5:
        options["chunks"] = tuple(draw.randint(1, max(2, n)) for n in shape)
    elif draw.random() < 0.3:
        options["compressors"] = None
    factors = _factors(draw, shape, borders)
    return Case(values, stored, factors, options, None if method == "nearest" else missing, is_dask)


def _values(draw, numbers, shape, dtype):
    if dtype.kind == "b":
        return numbers.random(shape) < 0.5
    if dtype.kind in "iu" and draw.random() < 0.3:
        limits = np.iinfo(dtype)
        native = dtype.newbyteorder("=")
        return numbers.integers(limits.min, limits.max, shape, native, endpoint=True).astype(dtype)
    return numbers.integers(0, draw.choice([3, 20]), shape).astype(dtype)


def _factors(draw, shape, borders):
    factors, lengths = [], shape
    for _ in range(draw.randint(1, 4)):
        step = tuple(draw.choice([1, 2, 2, 3, 4]) for _ in shape)
        if borders == "trim":
            step = tuple(map(min, step, lengths))
            lengths = tuple(n // f for n, f in zip(lengths, step, strict=True))
        else:
            lengths = tuple(-(-n // f) for n, f in zip(lengths, step, strict=True))
        factors.append(step)
    return factors
