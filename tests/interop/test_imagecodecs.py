"""Arrays with codecs of imagecodecs, which zarr-python writes and reads by `imagecodecs.zarr`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.registry import register_codec

import zarrdask
from tests.interop.shared import Ours, same
from zarrdask.errors import TruncatedError
from zarrdask.formats.codecs.codec import Kind
from zarrdask.formats.codecs.imagecodecs.names import KINDS

GRADIENT = np.add.outer(np.arange(64), np.arange(64)) // 3
IMAGE = GRADIENT.astype("u1")
RGB = np.stack([IMAGE] * 3, -1)
FLOATS = GRADIENT.astype("f4")
#: The elements that a codec encodes; for all others they are `IMAGE`.
VALUES = {
    **dict.fromkeys(["bfloat16", "exr", "float24", "floatpred", "pixarlog"], FLOATS),
    **dict.fromkeys(["lerc", "quantize", "sz3"], FLOATS),
    **dict.fromkeys(["byteshuffle", "delta", "ljpeg", "pcodec"], GRADIENT.astype("u2")),
    **dict.fromkeys(["jpeg", "jpegxl", "png", "tiff", "webp"], RGB),
    "rgbe": np.stack([FLOATS] * 3, -1),
}
#: Members that a codec requires.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "checksum": {"kind": "crc32"},
    "packints": {"bitspersample": 8},
    "quantize": {"mode": "bitround", "nsd": 3},
}
#: Codecs that only decode, that the wheels of imagecodecs lack, and one that encodes tone maps.
LACKING = {"ccittfax3", "ccittfax4", "ccittrle", "dds", "dicomrle", "eer", "lzo"}
LACKING |= {"heif", "jpegxs", "openzl", "wic", "ultrahdr"}
NAMES = sorted({name.removeprefix("imagecodecs_") for name in KINDS} - LACKING)
ROLES = {
    Kind.ARRAY_ARRAY: "filters",
    Kind.ARRAY_BYTES: "serializer",
    Kind.BYTES_BYTES: "compressors",
}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    # Here, so that without imagecodecs only these tests fail, and say so.
    from imagecodecs import zarr as codecs

    for name, codec in codecs._CODEC_CLASSES.items():
        register_codec(f"imagecodecs_{name}", codec)


def create(path: Path, name: str, values: np.ndarray) -> zarr.Array:
    full = f"imagecodecs_{name}"
    codec: Any = {"name": full, "configuration": CONFIGURATIONS.get(name, {})}
    codecs: dict[str, Any] = {"filters": None, "compressors": None} | {ROLES[KINDS[full]]: codec}
    chunks = (32, 32, *values.shape[2:])
    return zarr.create_array(
        path, shape=values.shape, dtype=values.dtype, chunks=chunks, fill_value=0, **codecs
    )


@pytest.mark.parametrize("name", NAMES)
class TestCodecs:
    def test_zarrdask_reads(self, tmp_path: Path, ours: Ours, name: str) -> None:
        values = VALUES.get(name, IMAGE)
        z = create(tmp_path, name, values)
        z[...] = values
        same(ours.read(tmp_path), np.asarray(z[...]))

    def test_zarr_python_reads(self, tmp_path: Path, name: str) -> None:
        values = VALUES.get(name, IMAGE)
        z = create(tmp_path, name, values)
        zarrdask.open_array(tmp_path, mode="r+")[...] = values
        same(np.asarray(z[...]), zarrdask.open_array(tmp_path)[...])


@pytest.mark.parametrize("name", ["htj2k", "jpeg"])
def test_a_truncated_image_is_an_error(tmp_path: Path, name: str) -> None:
    values = VALUES.get(name, IMAGE)
    create(tmp_path, name, values)[...] = values
    chunk = next(path for path in (tmp_path / "c").rglob("*") if path.is_file())
    data = chunk.read_bytes()
    for size in range(len(data)):
        chunk.write_bytes(data[:size])
        with pytest.raises(TruncatedError):
            zarrdask.open_array(tmp_path)[...]


def test_the_names_are_those_of_zarr_python() -> None:
    from imagecodecs import zarr as codecs

    known = {f"imagecodecs_{name}" for name in codecs._CODEC_CLASSES}
    left_out = {"cms", "hcomp", "jpegls", "pcx", "qoi", "sperr", "szip", "zfp", "zstd1"}
    assert known - set(KINDS) == {f"imagecodecs_{name}" for name in left_out}
    assert set(KINDS) <= known
