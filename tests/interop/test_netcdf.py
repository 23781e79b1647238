"""zarrdask and netCDF-C read what the other writes, with and without NCZarr's own keys."""

from pathlib import Path
from typing import Any

import dask.array as da
import netCDF4
import numpy as np
import pytest

import zarrdask
from tests.interop.shared import CHUNKS, same, sample

#: How netCDF-C writes: with its own attributes, and names of dimensions, or without.
MODES = ("nczarr,file", "noxarray,nczarr,file", "zarr,file", "xarray,zarr,file")
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def dataset(place: Path, mode: str, access: str) -> netCDF4.Dataset:
    found = netCDF4.Dataset(f"file://{place}#mode={mode}", access, format="NETCDF4")
    found.set_auto_maskandscale(False)
    return found


def write(values: np.ndarray, place: Path, mode: str, **options: Any) -> None:
    """Write variables `v` and `g/w`, and attributes."""
    with dataset(place, mode, "w") as file:
        file.title = "た"
        names = tuple(f"axis{axis}" for axis in range(values.ndim))
        for name, size in zip(names, values.shape, strict=True):
            file.createDimension(name, size)
        for group, name in ((file, "v"), (file.createGroup("g"), "w")):
            variable = group.createVariable(name, values.dtype, names, **options)
            variable.set_auto_maskandscale(False)
            variable.units = "K"
            variable.range = np.array([1.5, 2.5])
            variable[...] = values


def read(place: Path, name: str, mode: str = "zarr,file") -> np.ndarray:
    with dataset(place, mode, "r") as file:
        return np.asarray(file[name][...])


@pytest.mark.parametrize("mode", MODES)
class TestZarrdaskReads:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_data_types(self, tmp_path, ours, mode, dtype):
        values = sample(dtype)
        write(values, tmp_path / "s", mode, chunksizes=CHUNKS)
        same(ours.read(tmp_path / "s", "v"), values)
        same(ours.read(tmp_path / "s", "g/w"), values)

    @pytest.mark.parametrize(
        "options",
        [
            {"compression": "zlib", "shuffle": True},
            {"compression": "zlib", "shuffle": False, "complevel": 9},
            {"compression": "zstd"},
            {"compression": "bzip2"},
            {"compression": "blosc_lz4", "blosc_shuffle": 1},
            {"compression": "blosc_zstd", "blosc_shuffle": 2},
            {"fletcher32": True},
        ],
        ids=str,
    )
    def test_codecs(self, tmp_path, ours, mode, options):
        # Blosc in netCDF-C fails on what can't be compressed.
        values = (np.arange(13 * 20) % 50).astype("f4").reshape(13, 20)
        write(values, tmp_path / "s", mode, chunksizes=CHUNKS, **options)
        same(ours.read(tmp_path / "s", "v"), values)

    def test_a_hierarchy(self, tmp_path, mode):
        write(sample("i2", (4, 6)), tmp_path / "s", mode)
        group = zarrdask.open_group(tmp_path / "s")
        assert [path for path, _ in group.walk()] == ["g", "g/w", "v"]
        assert group.attrs["title"] == "た"
        found = group["g/w"]
        assert found.attrs["units"] == "K"
        assert found.attrs["range"] == [1.5, 2.5]
        named = None if mode.startswith("noxarray") else ("axis0", "axis1")
        assert found.dimension_names == named

    def test_scalars(self, tmp_path, ours, mode):
        write(np.array(7, "i4"), tmp_path / "s", mode)
        assert ours.read(tmp_path / "s", "v").tolist() == [7]

    def test_fill_values(self, tmp_path, ours, mode):
        with dataset(tmp_path / "s", mode, "w") as file:
            file.createDimension("x", 5)
            file.createVariable("v", "f4", ("x",), fill_value=-1.5, chunksizes=(2,))
        same(ours.read(tmp_path / "s", "v"), np.full(5, -1.5, "f4"))


class TestNetcdfReads:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_data_types(self, tmp_path, ours, dtype):
        values = sample(dtype)
        zarrdask.create_group(tmp_path / "s", zarr_format=2)
        ours.write(values, tmp_path / "s", "g/v", chunks=CHUNKS, zarr_format=2, compressors=[])
        same(read(tmp_path / "s", "g/v"), values)

    @pytest.mark.parametrize(
        "options",
        [
            {"compressors": {"id": "zlib", "level": 3}},
            {"compressors": {"id": "zstd", "level": 3}},
            {"compressors": {"id": "bz2", "level": 3}},
            {"compressors": "blosc"},
            {
                "compressors": {"id": "zlib", "level": 3},
                "filters": [{"id": "shuffle", "elementsize": 4}],
            },
            {"compressors": [], "filters": [{"id": "fletcher32"}]},
        ],
        ids=str,
    )
    def test_codecs(self, tmp_path, ours, options):
        values = sample("f4")
        zarrdask.create_group(tmp_path / "s", zarr_format=2)
        ours.write(values, tmp_path / "s", "v", chunks=CHUNKS, zarr_format=2, **options)
        same(read(tmp_path / "s", "v"), values)

    @pytest.mark.parametrize("mode", ["zarr,file", "nczarr,file"])
    def test_names_and_attributes(self, tmp_path, mode):
        root = zarrdask.create_group(tmp_path / "s", zarr_format=2, attributes={"title": "た"})
        root.create_group("g", attributes={"n": 1})
        x = da.arange(24, chunks=5).reshape(4, 6)
        attributes = {"units": "K", "range": [1.5, 2.5]}
        options = {"zarr_format": 2, "dimension_names": ("y", "x"), "attributes": attributes}
        zarrdask.to_zarr(x, tmp_path / "s", "g/v", chunks=(2, 3), compressors=[], **options)
        with dataset(tmp_path / "s", mode, "r") as file:
            assert file.title == "た"
            assert file["g"].n == 1
            variable = file["g/v"]
            assert variable.dimensions == ("y", "x")
            assert variable.units == "K"
            assert variable.range.tolist() == [1.5, 2.5]
            assert variable.chunking() == [2, 3]
            assert variable[...].tolist() == np.arange(24).reshape(4, 6).tolist()

    def test_fill_values(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "s", zarr_format=2)
        options = {"dtype": "f4", "chunks": (2,), "fill_value": -1.5, "compressors": []}
        root.create_array("v", shape=(5,), **options)[2:4] = 1
        same(read(tmp_path / "s", "v"), np.array([-1.5, -1.5, 1, 1, -1.5], "f4"))


class TestTakingTurns:
    @pytest.mark.parametrize("mode", MODES)
    def test_zarrdask_changes_what_netcdf_made(self, tmp_path, ours, mode):
        values, region = sample("f4"), np.s_[3:11, 5:17]
        write(values, tmp_path / "s", mode, chunksizes=CHUNKS)
        # By its path: an update opens the array where it stands.
        ours.update(values[region] + 1, tmp_path / "s" / "v", region)
        zarrdask.open_array(tmp_path / "s", "v", mode="r+").attrs["late"] = "x"
        values[region] += 1
        same(read(tmp_path / "s", "v", mode), values)
        with dataset(tmp_path / "s", mode, "r") as file:
            assert file["v"].late == "x"
            assert file["v"].units == "K"
