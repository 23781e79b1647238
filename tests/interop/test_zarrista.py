"""zarrista, the Rust library zarrs bound to Python, reads what zarrdask writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarrista
from zarrista.store import FilesystemStore

import zarrdask
from tests.interop.shared import (
    CHUNKS,
    SHAPES,
    SHARDS,
    V3_DTYPES,
    V3_SHARDS,
    Ours,
    same,
    sample,
    v3_codecs,
)

DTYPE = "float32"
SHAPE = (13, 20)


def read(path: Path) -> np.ndarray:
    return np.asarray(zarrista.Array.open(FilesystemStore(path))[...])


def exchange(path: Path, ours: Ours, values: np.ndarray, **options: Any) -> None:
    """Write an array, let zarrista read it, and compare."""
    ours.write(values, path, **options)
    same(read(path), values)


@pytest.mark.parametrize("dtype", V3_DTYPES)
def test_default_codecs(tmp_path: Path, ours: Ours, dtype: str) -> None:
    exchange(tmp_path, ours, sample(dtype, SHAPE), chunks=CHUNKS)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_default_chunks(tmp_path: Path, ours: Ours, zarr_format: Any) -> None:
    exchange(tmp_path, ours, sample(DTYPE, SHAPE), zarr_format=zarr_format)


def test_default_shards(tmp_path: Path, ours: Ours) -> None:
    exchange(tmp_path, ours, sample(DTYPE, SHAPE), chunks=CHUNKS, shards=(10, 16))


@pytest.mark.parametrize("name", ["zstd", "blosc", "gzip", "crc32c"])
def test_codecs_by_their_names(tmp_path: Path, ours: Ours, name: str) -> None:
    exchange(tmp_path, ours, sample(DTYPE, SHAPE), chunks=CHUNKS, compressors=name)


@pytest.mark.parametrize("name", v3_codecs(4))
def test_codecs(tmp_path: Path, ours: Ours, name: str) -> None:
    values = sample(DTYPE, SHAPE)
    exchange(tmp_path, ours, values, chunks=CHUNKS, codecs=v3_codecs(4)[name])


@pytest.mark.parametrize("name", V3_SHARDS)
def test_shards(tmp_path: Path, ours: Ours, name: str) -> None:
    exchange(tmp_path, ours, sample(DTYPE, SHAPE), chunks=SHARDS, codecs=V3_SHARDS[name])


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(tmp_path: Path, ours: Ours, name: str) -> None:
    shape, chunks, shards = SHAPES[name]
    exchange(tmp_path, ours, sample(DTYPE, shape), chunks=chunks, shards=shards)


def test_a_rectilinear_grid(tmp_path: Path, ours: Ours) -> None:
    exchange(tmp_path, ours, sample(DTYPE, SHAPE), chunks=((3, 10), (8, 8, 4)))


@pytest.mark.parametrize("dtype", ["string", "bytes"])
def test_variable_length(tmp_path: Path, dtype: str) -> None:
    items = ["", "a", "grün", "x" * 300]
    values = np.array(items if dtype == "string" else [item.encode() for item in items], object)
    z = zarrdask.create_array(tmp_path, shape=4, dtype=dtype, chunks=3)
    z[...] = values
    found = zarrista.Array.open(FilesystemStore(tmp_path))[...].to_numpy()
    assert list(found) == list(values)
