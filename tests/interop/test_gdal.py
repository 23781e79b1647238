"""zarrdask and GDAL 3.6 read what the other writes: v2, and the old dialect of v3's draft.

Left out is what GDAL gets wrong: it can't write arrays of no elements, crashes on arrays of the
draft that have no axes, and gives wrong values for those with a storage transformer.
"""

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.interop.peers.client import Peer, PeerError
from tests.interop.shared import CHUNKS, Ours, same, sample

CHUNKED = f"BLOCKSIZE={CHUNKS[0]},{CHUNKS[1]}"
DTYPES = ("u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


class Dialect(NamedTuple):
    """One of the formats, as GDAL and as zarrdask call it."""

    draft: bool
    zarr_format: Any


V2, DRAFT = Dialect(False, 2), Dialect(True, "v3-draft-protocol")


@pytest.fixture(params=[V2, DRAFT], ids=["v2", "draft"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return request.param


class Pair(NamedTuple):
    """Both ways, of one array in a group of a new hierarchy."""

    gdal: Peer
    ours: Ours
    dialect: Dialect
    place: Any

    def check_in(self, values: np.ndarray, *options: str, **more: Any) -> None:
        """GDAL writes, zarrdask reads."""
        more["options"] = [*([CHUNKED] if values.ndim == 2 else []), *options]
        self.gdal.write(values, self.place, "g/x", draft=self.dialect.draft, **more)
        same(self.ours.read(self.place, "g/x"), values)

    def check_out(self, values: np.ndarray, expected: Any = None, **options: Any) -> dict[str, Any]:
        """Zarrdask writes, GDAL reads."""
        if values.ndim == 2:
            options = {"chunks": CHUNKS} | options
        zarrdask.create_group(self.place, zarr_format=self.dialect.zarr_format)
        self.ours.write(values, self.place, "g/x", zarr_format=self.dialect.zarr_format, **options)
        found, facts = self.gdal.look(self.place, "g/x")
        same(found, values if expected is None else expected)
        return facts


@pytest.fixture
def pair(gdal: Peer, ours: Ours, dialect: Dialect, tmp_path: Any) -> Pair:
    # GDAL wants to make the directory itself.
    return Pair(gdal, ours, dialect, tmp_path / "store.zarr")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
class TestDataTypes:
    def test_zarrdask_reads(self, pair, dtype, order):
        pair.check_in(sample(dtype), f"CHUNK_MEMORY_LAYOUT={order}")

    def test_gdal_reads(self, pair, dtype, order):
        facts = pair.check_out(sample(dtype), order=order)
        assert facts["chunks"] == list(CHUNKS)


COMPRESSORS: dict[str, list[str]] = {
    "none": ["COMPRESS=NONE"],
    "zlib": ["COMPRESS=ZLIB", "ZLIB_LEVEL=9"],
    "gzip": ["COMPRESS=GZIP"],
    "zstd": ["COMPRESS=ZSTD"],
    "lz4": ["COMPRESS=LZ4"],
    "lzma": ["COMPRESS=LZMA"],
    "blosc": ["COMPRESS=BLOSC"],
    "blosc-bits": ["COMPRESS=BLOSC", "BLOSC_SHUFFLE=BIT"],
    **{
        f"blosc-{cname}": ["COMPRESS=BLOSC", f"BLOSC_CNAME={cname}", "BLOSC_SHUFFLE=0"]
        for cname in ("blosclz", "lz4hc", "zlib", "zstd")
    },
}


@pytest.mark.parametrize("options", COMPRESSORS.values(), ids=COMPRESSORS)
def test_zarrdask_reads_compressed(pair, options):
    pair.check_in(sample("f4"), *options)


@pytest.mark.parametrize(
    "compressor",
    [
        *("gzip", "zlib", "zstd", "blosc"),
        {"id": "lz4", "acceleration": 3},
        {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
        {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0},
    ],
    ids=str,
)
def test_gdal_reads_compressed(gdal, ours, tmp_path, compressor):
    pair = Pair(gdal, ours, V2, tmp_path / "store.zarr")
    if compressor == "zlib":
        compressor = {"id": "zlib", "level": 3}
    pair.check_out(sample("f4"), compressors=compressor)


@pytest.mark.parametrize("compressor", ["gzip", "blosc", None])
def test_gdal_reads_compressed_draft(gdal, ours, tmp_path, compressor):
    pair = Pair(gdal, ours, DRAFT, tmp_path / "store.zarr")
    pair.check_out(sample("f4"), compressors=compressor or [])


class TestV2Filters:
    def test_zarrdask_reads(self, gdal, ours, tmp_path):
        values = np.arange(13 * 20, dtype="i4").reshape(13, 20) % 11
        Pair(gdal, ours, V2, tmp_path / "s").check_in(values, "FILTER=DELTA")

    def test_gdal_reads(self, gdal, ours, tmp_path):
        values = np.arange(13 * 20, dtype="i4").reshape(13, 20) % 11
        filters = [{"id": "delta", "dtype": "<i4"}]
        Pair(gdal, ours, V2, tmp_path / "s").check_out(values, filters=filters)


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 2, 4), (2, 1, 3, 2, 2)], ids=str)
class TestShapes:
    def test_zarrdask_reads(self, pair, shape):
        pair.check_in(sample("i2", shape))

    def test_gdal_reads(self, pair, shape):
        pair.check_out(sample("i2", shape), chunks=(2,) * len(shape))


@pytest.mark.parametrize("separator", ["/", "."])
class TestKeys:
    def test_zarrdask_reads(self, pair, separator):
        pair.check_in(sample("i4"), f"DIM_SEPARATOR={separator}")

    def test_gdal_reads(self, pair, separator):
        pair.check_out(sample("i4"), separator=separator)


def test_gdal_reads_other_byte_orders_and_widths(gdal, ours, tmp_path):
    # What it has no type for, it reads as a wider one.
    for at, (dtype, seen) in enumerate({">i2": "i2", ">f8": "f8", "i1": "i2", "f2": "f4"}.items()):
        values = sample(dtype)
        with np.errstate(invalid="ignore"):
            expected = values.astype(seen)
        if dtype == "f2":
            values = np.where(np.isnan(values), np.nan, values).astype("f2")
            expected = values.astype(seen)
        Pair(gdal, ours, V2, tmp_path / str(at)).check_out(values, expected)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_zarrdask_reads_complex(gdal, ours, tmp_path, dtype):
    # It reads complex values in v2 only without a fill value, and writes none in the draft.
    Pair(gdal, ours, V2, tmp_path / "s").check_in(sample(dtype))


@pytest.mark.parametrize(
    ("dtype", "fill"), [("u1", 255), ("i4", -7), ("f4", np.nan), ("f8", np.inf), ("f8", 0.1)]
)
class TestFillValues:
    def test_zarrdask_reads(self, gdal, dialect, tmp_path, dtype, fill):
        values, place = np.full((6, 4), fill, dtype), tmp_path / "s"
        values[2:4, :2] = 1
        gdal.write(values, place, "x", fill=fill, draft=dialect.draft, options=["BLOCKSIZE=2,2"])
        z = zarrdask.open_array(place, "x")
        same(np.asarray(z.fill_value), np.array(fill, dtype))
        # GDAL stores only what isn't all fill value.
        assert z.nchunks_stored() == 1
        same(z[...], values)

    def test_gdal_reads(self, pair, dtype, fill):
        values = np.full((6, 4), fill, dtype)
        values[2:4, :2] = 1
        facts = pair.check_out(values, chunks=(2, 2), fill_value=fill)
        assert zarrdask.open_array(pair.place, "g/x").nchunks_stored() == 1
        np.testing.assert_equal(facts["fill"], float(np.array(fill, dtype)))


class TestHierarchy:
    def test_zarrdask_reads(self, gdal, dialect, tmp_path):
        attributes = {"title": "た", "n": 1.5}
        more = {"attributes": attributes, "unit": "K", "options": []}
        gdal.write(sample("f4"), tmp_path / "s", "a/b/x", draft=dialect.draft, **more)
        group = zarrdask.open_group(tmp_path / "s")
        assert [path for path, _ in group.walk()] == ["a", "a/b", "a/b/x"]
        assert attributes.items() <= dict(group["a/b/x"].attrs).items()

    def test_gdal_reads(self, gdal, dialect, tmp_path):
        root = zarrdask.create_group(tmp_path / "s", zarr_format=dialect.zarr_format)
        attributes = {"title": "た", "n": [1, 2.5], "units": "K"}
        root.create_array("a/b/x", shape=(4,), dtype="f4", attributes=attributes)
        root.create_group("c")
        assert gdal.call("tree", place=str(tmp_path / "s")) == ["a", "a/b", "a/b/x", "c"]
        _, facts = gdal.look(tmp_path / "s", "a/b/x")
        assert facts["attributes"] == {"title": "た", "n": [1, 2.5]}
        assert facts["unit"] == "K"

    def test_gdal_reads_names_of_dimensions(self, gdal, tmp_path):
        options = {"zarr_format": 2, "dimension_names": ("y", "x")}
        zarrdask.create_group(tmp_path / "s", zarr_format=2)
        zarrdask.to_zarr(da.ones((4, 6), chunks=2), tmp_path / "s", "v", **options)
        assert gdal.look(tmp_path / "s", "v")[1]["dimensions"] == ["y", "x"]


def test_a_peer_that_raises_goes_on(gdal, tmp_path):
    with pytest.raises(PeerError, match="RuntimeError"):
        gdal.read(tmp_path / "nothing", "x")
    with pytest.raises(PeerError, match="RuntimeError"):
        gdal.read(tmp_path / "nothing", "x")
