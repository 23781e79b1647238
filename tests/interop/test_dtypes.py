"""zarrdask and others read what the other writes: registered data types of v3."""

import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import tensorstore as ts
import zarr

import zarrdask
from tests.interop.shared import BIG, CHUNKS, LITTLE, Ours, same, sample, sharding, transpose
from zarrdask.formats.dtypes.ml import BITS, dtype_named

#: What TensorStore has of ml_dtypes.
NARROW = (
    *("bfloat16", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int2", "int4"),
)
#: NaN is a fill value of all float types but float4.
FILLS = {"float4_e2m1fn": -6.0, "int2": -2, "int4": -8}
CODECS = {
    "little": [LITTLE],
    "big": [BIG],
    "shards": [transpose(1, 0), sharding((5, 4), [BIG])],
}
CHUNKS_OF = {"little": (5, 8), "big": (5, 8), "shards": (8, 10)}


def patterns(name: str, shape: tuple[int, ...] = (12, 20)) -> np.ndarray:
    """Return all kinds of elements, NaNs with payloads among them; some rows are all zero bits."""
    size = int(np.prod(shape))
    unsigned = np.random.default_rng(3).integers(0, 2 ** BITS[name], size)
    bits = unsigned.astype("u2" if BITS[name] == 16 else "u1").reshape(shape)
    bits[:4] = 0
    return bits.view(dtype_named(name))


def kvstore(path: Path) -> dict[str, str]:
    return {"driver": "file", "path": f"{path}/"}


@pytest.mark.parametrize("codecs", CODECS)
@pytest.mark.parametrize("name", NARROW)
class TestTensorStore:
    def test_reads_ours(self, tmp_path, ours: Ours, name, codecs):
        values = patterns(name)
        fill = FILLS.get(name, np.nan)
        ours.write(
            values, tmp_path, chunks=CHUNKS_OF[codecs], codecs=CODECS[codecs], fill_value=fill
        )
        opened = ts.open({"driver": "zarr3", "kvstore": kvstore(tmp_path)}).result()
        # In memory it extends the sign of int2 and int4, which ml_dtypes does not mind.
        found = opened.read().result()
        same(found.astype("i1").astype(values.dtype) if name in ("int2", "int4") else found, values)
        given = opened.fill_value.astype("f8")
        np.testing.assert_array_equal(given, fill)

    def test_writes_ours(self, tmp_path, ours: Ours, name, codecs):
        values = patterns(name)
        fill = FILLS.get(name, "NaN")
        metadata = {
            "shape": values.shape,
            "data_type": name,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": CHUNKS_OF[codecs]},
            },
            "codecs": CODECS[codecs],
            "fill_value": fill,
        }
        spec = {"driver": "zarr3", "kvstore": kvstore(tmp_path), "metadata": metadata}
        ts.open(spec, create=True).result()[...] = values
        same(ours.read(tmp_path), values)
        z = zarrdask.open_array(tmp_path)
        assert z.metadata.data_type.to_json() == name
        assert z.metadata.data_type.render_fill(z.fill_value) == fill


# Not the generic unit, which zarr-python reads in one byte order and with NaT as fill value only.
UNITS = ("Y", "D", "25s", "us", "10ns")
FIXED: dict[str, Any] = {
    **{f"{kind}[{unit}]": f"{kind}[{unit}]" for kind in ("M8", "m8") for unit in UNITS},
    "U3": "U3",
    "S5": "S5",
    "struct": [("a", "u1"), ("b", "f4"), ("t", "M8[s]"), ("s", "S3"), ("u", "U2")],
    "nested": [("a", "i2"), ("b", [("c", "f8"), ("d", [("e", "c8")])])],
}
#: Only under its older name does zarr-python 3.1 know it.
STRUCTS = ("struct", "nested")


def values_of(name: str) -> np.ndarray:
    dtype = np.dtype(FIXED[name])
    if dtype.names is None:
        return sample(dtype) if dtype.kind != "S" else sample("V5").astype("V5").view("S5")
    values = np.zeros((13, 20), dtype)
    fill(values)
    return values


def fill(values: np.ndarray) -> None:
    for name in values.dtype.names or ():
        if values.dtype[name].names:
            fill(values[name])
        else:
            values[name][5:] = sample(values.dtype[name])[5:]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """zarr-python warns that some of its data types are not specified; we, of what they lack."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=zarr.errors.UnstableSpecificationWarning)
        warnings.filterwarnings("ignore", message=".*X-C7.*")
        yield


class TestZarrPython:
    @pytest.mark.parametrize("name", FIXED)
    @pytest.mark.parametrize("endian", [LITTLE, BIG], ids=["little", "big"])
    def test_writes_ours(self, tmp_path, ours: Ours, name, endian):
        values = values_of(name)
        single = name in (*STRUCTS, "S5")
        z = zarr.create_array(
            tmp_path,
            shape=values.shape,
            chunks=CHUNKS,
            dtype=values.dtype,
            serializer="auto" if single else endian,
            zarr_format=3,
        )
        z[...] = values
        same(ours.read(tmp_path), values)
        again = zarrdask.open_array(tmp_path)
        given = np.asarray(z.fill_value, values.dtype)
        assert np.asarray(again.fill_value, values.dtype).tobytes() == given.tobytes()

    @pytest.mark.parametrize("name", [name for name in FIXED if name not in STRUCTS])
    @pytest.mark.parametrize("endian", ["little", "big"])
    def test_reads_ours(self, tmp_path, ours: Ours, name, endian):
        values = values_of(name)
        codecs = [{"name": "bytes", "configuration": {"endian": endian}}, {"name": "crc32c"}]
        ours.write(values, tmp_path, chunks=CHUNKS, codecs=codecs)
        z = zarr.open_array(tmp_path, mode="r")
        same(z[...], values)
        given = np.asarray(zarrdask.open_array(tmp_path).fill_value, values.dtype)
        assert np.asarray(z.fill_value, values.dtype).tobytes() == given.tobytes()

    def test_raw_bytes_keep_the_name_that_it_knows(self, tmp_path, ours: Ours):
        values = sample("V3")
        zarr.create_array(tmp_path, shape=values.shape, chunks=CHUNKS, dtype="V3")[...] = values
        same(ours.read(tmp_path), values)
        ours.update(values[::-1], tmp_path, (slice(0, 13), slice(0, 20)))
        zarrdask.open_array(tmp_path, mode="r+").attrs["changed"] = True
        same(zarr.open_array(tmp_path, mode="r")[...], values[::-1])


TEXTS = np.array([["", "é", "a text"], ["\U0001f600" * 50, " ", "z"]], object)
DATA = np.array([[b"", b"a\0", b"\xff"], [b"x" * 300, b" ", b"z"]], object)


class TestZarrPythonOfAnyLength:
    def test_reads_our_texts(self, tmp_path, ours: Ours):
        ours.write(TEXTS, tmp_path, chunks=(2, 2), fill_value="none")
        z = zarr.open_array(tmp_path, mode="r")
        assert z[...].tolist() == TEXTS.tolist()
        assert z.fill_value == "none"

    def test_writes_our_texts(self, tmp_path, ours: Ours):
        z = zarr.create_array(tmp_path, shape=(2, 3), chunks=(2, 2), dtype="string", fill_value="é")
        z[...] = TEXTS.astype(np.dtypes.StringDType())
        same(ours.read(tmp_path), TEXTS)
        assert zarrdask.open_array(tmp_path).fill_value == "é"

    @pytest.mark.parametrize("name", ["bytes", "variable_length_bytes"])
    def test_reads_our_bytes(self, tmp_path, name):
        x = da.from_array(DATA, chunks=(1, 3))
        zarrdask.to_zarr(x, tmp_path, chunks=(2, 2), dtype=name, fill_value=b"\xff")
        z = zarr.open_array(tmp_path, mode="r")
        assert z[...].tolist() == DATA.tolist()
        assert z.fill_value == b"\xff"

    def test_writes_our_bytes(self, tmp_path, ours: Ours):
        dtype = "variable_length_bytes"
        z = zarr.create_array(tmp_path, shape=(2, 3), chunks=(2, 2), dtype=dtype, fill_value=b"\0")
        z[...] = DATA
        same(ours.read(tmp_path), DATA)
        zarrdask.open_array(tmp_path, mode="r+").attrs["changed"] = True
        again = zarr.open_array(tmp_path, mode="r")
        assert again[...].tolist() == DATA.tolist()
        assert again.fill_value == b"\0"
