"""Stores that other software wrote, with the values that they hold."""

import json
import zipfile
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.formats.dtypes.registry import find_data_type

SAMPLES = Path(__file__).parent / "data"
EXPECTED = SAMPLES / "expected"

NETCDF = ("nczarr_file", "noxarray_nczarr_file", "zarr_file")
DATASET = ("crs", "t", "time", "x", "y")
READABLE: dict[str, tuple[str, ...]] = {
    "zarr218_v2_dtypes": (
        *("O", "Oj", "Om", "S", "U", "V", "b", "c", "d0", "dt", "f2", "flt", "n0", "nest"),
        *("nestedkeys", "st", "sub", "td", "u8", "zero"),
    ),
    "netcdfc_490": tuple(f"{store}/{name}" for store in NETCDF for name in ("g/w", "s", "v")),
    "tensorstore": (
        *("bool", "c_crc32c", "complex64", "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2"),
        *("int4", "v2", "v3", "x"),
    ),
    "zarr342": ("nc", "rect", "rect2", "sc", "st", "x"),
    "handmade_endian": ("a",),
    "xarray": tuple(f"{version}/{name}" for version in ("v2", "v3") for name in DATASET),
    "zarr218_v3draft": ("S", "b", "dsep", "dt", "f", "grp/a", "scalar", "sh"),
    "gdal362_v3draft.zarr": ("F", "a", "bl", "dot", "i8", "scalar", "sub/i4", "u8", "zs"),
}
DRAFTS = ("zarr218_v3draft", "gdal362_v3draft.zarr")
OBJECTS = ("O", "Oj", "Om")
ARRAYS = [(folder, name) for folder, names in READABLE.items() for name in names]


#: Arrays of text with the fill value 0.
TEXTS = ("O",)
#: What the reader that made the expected values could not read: the data type, and the values
#: that follow from the specification and the stored bytes.
DERIVED: dict[tuple[str, str], tuple[str, Any]] = {
    ("tensorstore", "float4_e2m1fn"): ("float4_e2m1fn", np.zeros(4)),
    ("tensorstore", "float8_e4m3fn"): ("float8_e4m3fn", np.zeros(4)),
    ("tensorstore", "float8_e5m2"): ("float8_e5m2", np.zeros(4)),
    ("tensorstore", "int4"): ("int4", np.zeros(4)),
    ("tensorstore", "v3"): ("bfloat16", np.arange(64.0).reshape(8, 8)),
    ("tensorstore", "x"): ("complex64", np.zeros(4)),
    ("handmade_endian", "a"): ("int16", np.arange(6).reshape(2, 3)),
    # No chunk is stored: what GDAL gave was memory that nobody had set.
    ("gdal362_v3draft.zarr", "dot"): ("int32", np.zeros((5, 7))),
}


def ids(case: Any) -> str | None:
    return case.replace("/", "__") if isinstance(case, str) else None


def expected(folder: str, name: str) -> np.ndarray:
    if (folder, name) in DERIVED:
        data_type, derived = DERIVED[folder, name]
        return derived.astype(find_data_type(data_type).dtype)
    file = EXPECTED / folder / name.replace("/", "__")
    if name not in OBJECTS:
        found: np.ndarray = np.load(f"{file}.npy")
        # The byte order of the draft is its codecs' affair.
        return found.astype(found.dtype.newbyteorder("=")) if folder in DRAFTS else found
    items = json.loads(Path(f"{file}.json").read_text())
    values = np.empty(len(items), object)
    # zarr-python 2 gave the fill value 0 for absent texts, which is no text.
    values[:] = ["" if name in TEXTS and item == 0 else item for item in items]
    return values


def same(found: Any, values: np.ndarray) -> None:
    """Check that two arrays agree in shape, dtype and every bit."""
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (values.shape, values.dtype)
    if values.dtype.hasobject:
        assert found.tolist() == values.tolist()
    else:
        assert found.tobytes() == values.tobytes(), f"{found} is not {values}"


class TestArrays:
    @for_each(("folder", "name"), ARRAYS)
    def test_eagerly(self, folder, name):
        z, values = zarrdask.open_array(SAMPLES / folder, name), expected(folder, name)
        same(z[...], values)
        if values.ndim:
            for part in (np.s_[1::2], np.s_[::-1], np.s_[..., -1:]):
                same(z[part], values[part])

    @for_each(("folder", "name"), ARRAYS)
    def test_through_dask(self, folder, name):
        x, values = zarrdask.from_zarr(SAMPLES / folder, name, chunks=3), expected(folder, name)
        assert (x.shape, x.dtype) == (values.shape, values.dtype)
        part = np.s_[::-1] if values.ndim else ()
        for found, wanted in zip(
            dask.compute(x, x[part], scheduler="sync"), (values, values[part]), strict=True
        ):
            same(found, wanted)

    def test_opened_where_they_stand(self):
        same(zarrdask.open(SAMPLES / "tensorstore" / "v2")[...], expected("tensorstore", "v2"))

    @pytest.mark.parametrize("name", ["netcdfc_490", "xarray", "zarr218_v2_dtypes", *DRAFTS])
    def test_in_a_zip_file(self, tmp_path, name):
        target = tmp_path / "sample.zip"
        with zipfile.ZipFile(target, "w") as archive:
            for file in sorted((SAMPLES / name).rglob("*")):
                archive.write(file, file.relative_to(SAMPLES / name))
        for path in READABLE[name]:
            same(zarrdask.open_array(target, path)[...], expected(name, path))

    def test_a_copy_as_v3_and_as_v2_holds_the_same(self, tmp_path):
        for folder, name in (("xarray", "v2/t"), ("xarray", "v3/t"), ("tensorstore", "complex64")):
            x = zarrdask.from_zarr(SAMPLES / folder, name)
            for zarr_format in (2, 3):
                target = tmp_path / f"{folder}-{name}-{zarr_format}"
                zarrdask.to_zarr(x, target, zarr_format=zarr_format)
                same(zarrdask.open_array(target)[...], expected(folder, name))


def test_a_group_gives_the_arrays_that_can_be_read():
    group = zarrdask.open_group(SAMPLES / "zarr342")
    for name in READABLE["zarr342"]:
        same(group[name][...], expected("zarr342", name))


class TestGroups:
    @pytest.mark.parametrize("folder", DRAFTS)
    def test_drafts(self, folder):
        group = zarrdask.open_group(SAMPLES / folder)
        arrays = [path for path, found in group.walk() if isinstance(found, zarrdask.Array)]
        assert arrays == list(READABLE[folder])
        assert group.zarr_format == group["scalar"].zarr_format == "v3-draft-protocol"

    def test_attributes_of_drafts(self):
        group = zarrdask.open_group(SAMPLES / "zarr218_v3draft")
        assert dict(group.attrs) == {"r": 1}
        assert list(group["grp"]) == ["a", "sub"]
        group = zarrdask.open_group(SAMPLES / "gdal362_v3draft.zarr")
        assert dict(group.attrs) == {"rootattr": "x"}
        assert group["a"].attrs["foo"] == 3

    def test_netcdf(self):
        group = zarrdask.open_group(SAMPLES / "netcdfc_490" / "nczarr_file")
        assert [path for path, _ in group.walk()] == ["g", "g/w", "s", "v"]
        assert [name for name, _ in group.arrays()] == ["s", "v"]
        assert [name for name, _ in group.groups()] == ["g"]
        assert group.zarr_format == group["g"].zarr_format == 2

    def test_members_of_a_group_of_all_data_types(self):
        group = zarrdask.open_group(SAMPLES / "zarr218_v2_dtypes")
        assert list(group) == sorted(READABLE["zarr218_v2_dtypes"])
        assert len(group) == len(READABLE["zarr218_v2_dtypes"])

    @pytest.mark.parametrize("version", [2, 3])
    def test_tree_of_a_dataset(self, version):
        group = zarrdask.open_group(SAMPLES / "xarray" / f"v{version}")
        assert group.zarr_format == version
        lines = list(group.tree().lines())
        assert len(lines) == 6
        for line, name in zip(lines[1:], DATASET, strict=True):
            values = expected("xarray", f"v{version}/{name}")
            assert f"─ {name} {values.shape} {values.dtype}, {values.nbytes} B, 1 chunk" in line

    @pytest.mark.parametrize("version", [2, 3])
    def test_attributes_and_names_of_a_dataset(self, version):
        root = SAMPLES / "xarray" / f"v{version}"
        group = zarrdask.open_group(root)
        assert dict(group.attrs) == attributes(root)
        for name in DATASET:
            found, stored = dict(group[name].attrs), attributes(root / name)
            for mapping in (found, stored):
                mapping.pop("_ARRAY_DIMENSIONS", None)  # dimension_names tells it
            assert found == stored
        assert group["t"].attrs["grid_mapping"] == "crs"
        assert group["crs"].attrs["crs_wkt"] == "GEOGCS[]"
        names = {name: array.dimension_names or () for name, array in group.arrays()}
        assert names == {"crs": (), "t": ("y", "x"), "time": ("y",), "x": ("x",), "y": ("y",)}


def attributes(node: Path) -> dict[str, Any]:
    if (node / "zarr.json").exists():
        return json.loads((node / "zarr.json").read_text()).get("attributes", {})
    file = node / ".zattrs"
    return json.loads(file.read_text()) if file.exists() else {}


def kind(document: Path) -> str | None:
    return json.loads(document.read_text()).get("node_type")


def test_every_sample_is_accounted_for():
    arrays = {
        (folder.name, str(document.parent.relative_to(folder)))
        for folder in SAMPLES.iterdir()
        if folder.name != "expected"
        for document in folder.rglob("*")
        if document.name == ".zarray"
        or (document.name == "zarr.json" and kind(document) == "array")
    }
    drafts = {
        (folder.name, document.relative_to(meta).as_posix().removesuffix(".array.json"))
        for folder in SAMPLES.iterdir()
        if (meta := folder / "meta" / "root").is_dir()
        for document in meta.rglob("*.array.json")
    }
    assert {*ARRAYS} == arrays | drafts


def test_reading_leaves_no_trace():
    before = {file: file.stat().st_mtime_ns for file in SAMPLES.rglob("*")}
    for folder, name in ARRAYS:
        zarrdask.from_zarr(SAMPLES / folder, name).compute(scheduler="sync")
    assert {file: file.stat().st_mtime_ns for file in SAMPLES.rglob("*")} == before
