"""Others read what `copy` makes of what they made: zarr-python 2 and 3, TensorStore."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrdask
from tests.interop.shared import CHUNKS, gzip, same, sample, zstd
from tests.interop.test_tensorstore import read as read_by_tensorstore

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")

DRAFT: Any = "v3-draft-protocol"
DTYPES = ("|b1", "|u1", "<i4", ">i2", "<f4", ">f8", "<c8")
COMPRESSORS: tuple[dict[str, Any], ...] = (
    {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0},
    {"id": "zlib", "level": 4},
    {"id": "bz2", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "zstd", "level": 3},
)


def native(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder("="))


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda c: c["id"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
class TestFromV2:
    def test_zarr_python_3_reads_it_as_v3(self, tmp_path, zarr2, dtype, order, compressor):
        values = sample(dtype)
        options = {"chunks": CHUNKS, "order": order, "compressor": compressor}
        zarr2.write(values, tmp_path / "a", **options)
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=3)
        assert report.arrays[0].method == "copied unchanged"
        same(native(np.asarray(zarr.open_array(tmp_path / "b", mode="r")[...])), native(values))

    def test_zarr_python_3_reads_it_in_place(self, tmp_path, zarr2, dtype, order, compressor):
        values = sample(dtype)
        options = {"chunks": CHUNKS, "order": order, "compressor": compressor}
        zarr2.write(values, tmp_path, **options)
        zarrdask.upgrade(tmp_path)
        found = zarr.open_array(tmp_path, mode="r", zarr_format=3)
        same(native(np.asarray(found[...])), native(values))
        same(zarr2.read(tmp_path), values)


@pytest.mark.parametrize("codec", [[], [gzip(3)], [zstd(1)]], ids=["none", "gzip", "zstd"])
@pytest.mark.parametrize("shards", [None, (8, 12)])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float64", "complex64"])
class TestFromV3:
    def make(self, path: Path, values: np.ndarray, codec: Any, shards: Any) -> None:
        z = zarr.create_array(
            path,
            shape=values.shape,
            dtype=values.dtype,
            chunks=(4, 6),
            shards=shards,
            compressors=codec,
        )
        z[...] = values

    def test_zarr_python_2_reads_it_as_v2(self, tmp_path, zarr2, dtype, shards, codec):
        values = sample(dtype)
        self.make(tmp_path / "a", values, codec, shards)
        report = zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=2)
        assert report.arrays[0].method == ("repacked" if shards else "copied unchanged")
        same(zarr2.read(tmp_path / "b"), values)

    def test_zarr_python_2_reads_it_as_the_draft(self, tmp_path, zarr2, dtype, shards, codec):
        values = sample(dtype)
        self.make(tmp_path / "a", values, codec, shards)
        zarrdask.copy(tmp_path / "a", tmp_path / "b", "g/x", zarr_format=DRAFT, shards=False)
        same(native(zarr2.read(tmp_path / "b", "g/x", draft=True)), values)

    def test_both_read_it_with_other_shards(self, tmp_path, dtype, shards, codec):
        values = sample(dtype)
        self.make(tmp_path / "a", values, codec, shards)
        for at, other in enumerate(((4, 24), False)):
            place = tmp_path / f"b{at}"
            report = zarrdask.copy(tmp_path / "a", place, shards=other)
            method = "copied unchanged" if not shards and not other else "repacked"
            assert report.arrays[0].method == method
            same(np.asarray(zarr.open_array(place, mode="r")[...]), values)
            same(read_by_tensorstore(place), values)


def test_a_hierarchy_with_consolidated_metadata(tmp_path):
    root = zarr.create_group(tmp_path / "a", zarr_format=2, attributes={"title": "t"})
    z = root.create_array("g/x", shape=(5, 7), chunks=(2, 3), dtype="i4")
    z[...] = np.arange(35).reshape(5, 7)
    z.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    zarr.consolidate_metadata(tmp_path / "a")
    zarrdask.copy(tmp_path / "a", tmp_path / "b", zarr_format=3)
    found = zarr.open_consolidated(tmp_path / "b", zarr_format=3)
    assert dict(found.attrs) == {"title": "t"}
    assert found["g/x"].metadata.dimension_names == ("y", "x")
    same(np.asarray(found["g/x"][...]), np.arange(35, dtype="i4").reshape(5, 7))
