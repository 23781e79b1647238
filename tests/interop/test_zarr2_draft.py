"""zarrdask and zarr-python 2.18 read what the other writes, in the draft of v3.

zarr-python had it behind a switch, in the dialect from before the draft of May 2022.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrdask
from tests.interop.peers.client import Peer
from tests.interop.shared import CHUNKS, Ours, same, sample
from tests.interop.test_zarr2 import (
    ATTRIBUTES,
    BLOSC,
    COMPRESSORS,
    DTYPES,
    FILLS,
    FILTERS,
    OBJECTS,
    SHAPES_V2,
    objects,
)

DRAFT: Any = "v3-draft-protocol"
#: Not the ones that it can't write, or not read again.
DRAFT_DTYPES = [dtype for dtype in DTYPES if dtype not in ("|V1", "|V5", "<M8[25s]")]
DRAFT_FILLS = [case for case in FILLS if case[0] != "|V3"]


def native(values: np.ndarray) -> np.ndarray:
    """Return an array in the machine's byte order: that of the file is for a codec to know."""
    return values.astype(values.dtype.newbyteorder("="))


class Pair:
    """Both ways, of one array in a group of a new hierarchy."""

    def __init__(self, zarr2: Peer, ours: Ours, place: Path) -> None:
        self.zarr2, self.ours, self.place = zarr2, ours, place

    def check_in(self, values: np.ndarray, **options: Any) -> None:
        """zarr-python writes, zarrdask reads."""
        options = {"chunks": CHUNKS} | options
        self.zarr2.write(values, self.place, "g/x", draft=True, **options)
        same(native(self.ours.read(self.place, "g/x")), native(values))

    def check_out(self, values: np.ndarray, **options: Any) -> dict[str, Any]:
        """Zarrdask writes, zarr-python reads."""
        options = {"chunks": CHUNKS} | options
        self.ours.write(values, self.place, "g/x", zarr_format=DRAFT, **options)
        found, facts = self.zarr2.look(self.place, "g/x", draft=True)
        same(native(found), native(values))
        return facts


@pytest.fixture
def pair(zarr2: Peer, ours: Ours, tmp_path: Path) -> Pair:
    return Pair(zarr2, ours, tmp_path)


@pytest.mark.parametrize("dtype", DRAFT_DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
class TestDataTypes:
    def test_zarrdask_reads(self, pair, dtype, order):
        pair.check_in(sample(dtype), order=order)

    def test_zarr2_reads(self, pair, dtype, order):
        facts = pair.check_out(sample(dtype), order=order)
        assert facts == {"attributes": {}, "chunks": list(CHUNKS), "order": order}


@pytest.mark.parametrize(("codec", "items"), OBJECTS.values(), ids=OBJECTS)
def test_zarrdask_reads_objects(pair, codec, items):
    pair.check_in(objects(items), chunks=[3], object_codec=codec)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=json.dumps)
class TestCompressors:
    def test_zarrdask_reads(self, pair, compressor):
        pair.check_in(sample(">f8"), compressor=compressor)

    def test_zarr2_reads(self, pair, compressor):
        pair.check_out(sample(">f8"), compressors=[] if compressor is None else compressor)


@pytest.mark.parametrize(("dtype", "order", "filters"), FILTERS.values(), ids=FILTERS)
def test_zarrdask_reads_filters(pair, dtype, order, filters):
    """It keeps them among the attributes."""
    ramp = np.arange(13 * 20).reshape(13, 20) % 8
    values = (ramp % 2 == 1) if dtype == "|b1" else ramp.astype(dtype)
    pair.check_in(values, order=order, filters=filters, compressor=BLOSC)
    assert dict(zarrdask.open_array(pair.place, "g/x").attrs) == {}


@pytest.mark.parametrize(("shape", "chunks"), SHAPES_V2.values(), ids=SHAPES_V2)
@pytest.mark.parametrize("separator", [".", "/"])
class TestShapes:
    def test_zarrdask_reads(self, pair, shape, chunks, separator):
        pair.check_in(sample("float64", shape), chunks=chunks, dimension_separator=separator)

    def test_zarr2_reads(self, pair, shape, chunks, separator):
        pair.check_out(sample("float64", shape), chunks=chunks, separator=separator)


@pytest.mark.parametrize(("dtype", "fill"), DRAFT_FILLS, ids=str)
class TestFillValues:
    """Of seven elements two are written: the rest has the fill value's bits."""

    def values(self, dtype: Any, fill: Any) -> np.ndarray:
        values = np.empty(7, dtype)
        values[...] = np.array(fill, dtype)
        values[3:5] = np.zeros((), dtype)
        return values

    def test_zarrdask_reads(self, pair, dtype, fill):
        values = self.values(dtype, fill)
        pair.check_in(values, chunks=[2], fill=values[0], rows=[3, 5])
        assert zarrdask.open_array(pair.place, "g/x").nchunks_stored() == 2

    def test_zarr2_reads(self, pair, dtype, fill):
        values = self.values(dtype, fill)
        pair.check_out(values, chunks=(2,), fill_value=values[0])
        assert zarrdask.open_array(pair.place, "g/x").nchunks_stored() == 2


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}], ids=["raw", "zlib"])
class TestShards:
    def test_zarrdask_reads(self, pair, order, compressor):
        options = {"chunks": (2, 4), "chunks_per_shard": (3, 2), "order": order}
        pair.check_in(sample("float32"), compressor=compressor, **options)

    def test_zarrdask_reads_few_chunks(self, pair, order, compressor):
        values = np.full((13, 20), -1, "float32")
        values[7] = 3
        options = {"chunks": (2, 4), "chunks_per_shard": (3, 2), "order": order}
        pair.check_in(values, compressor=compressor, fill=-1, rows=[7, 8], **options)

    def test_zarr2_reads(self, pair, order, compressor):
        compressors = [] if compressor is None else compressor
        options = {"chunks": (2, 4), "shards": (6, 8), "order": order}
        pair.check_out(sample("float32"), compressors=compressors, **options)

    def test_zarr2_reads_an_update(self, pair, order, compressor):
        values, region = sample("float32"), np.s_[3:11, 5:17]
        options = {"chunks": (2, 4), "chunks_per_shard": (3, 2), "order": order}
        pair.zarr2.write(values, pair.place, "x", draft=True, compressor=compressor, **options)
        zarrdask.open_array(pair.place, "x", mode="r+")[region] = values[region] + 1
        values[region] += 1
        same(pair.zarr2.read(pair.place, "x", draft=True), values)


class TestHierarchies:
    def write(self, peer: Peer, place: Path) -> None:
        peer.call("group", place=str(place), name=None, attributes={"root": [1]}, draft=True)
        peer.call("group", place=str(place), name="sub/deep", attributes=ATTRIBUTES, draft=True)
        options = {"chunks": CHUNKS, "attributes": ATTRIBUTES}
        peer.write(sample("int32"), place, "sub/x", draft=True, **options)

    def check(self, group: Any) -> None:
        found = {path: dict(node.attrs) for path, node in group.walk() if path[:3] == "sub"}
        assert found == {"sub": {}, "sub/deep": ATTRIBUTES, "sub/x": ATTRIBUTES}
        assert dict(group.attrs) == {"root": [1]}
        same(group["sub/x"][...], sample("int32"))

    def test_zarrdask_reads(self, tmp_path, zarr2):
        self.write(zarr2, tmp_path)
        self.check(zarrdask.open_group(tmp_path))

    def test_zarrdask_reads_consolidated(self, tmp_path, zarr2):
        self.write(zarr2, tmp_path)
        zarr2.call("consolidate", place=str(tmp_path), draft=True)
        self.check(zarrdask.open_group(tmp_path))

    def test_zarr2_reads(self, tmp_path, zarr2):
        root = zarrdask.create_group(tmp_path, zarr_format=DRAFT, attributes={"root": [1]})
        root.create_group("sub", attributes={})
        root.create_group("sub/deep", attributes=ATTRIBUTES)
        options = {"chunks": CHUNKS, "attributes": ATTRIBUTES}
        root.create_array("sub/x", shape=(13, 20), dtype="int32", **options)
        root["sub/x"][...] = sample("int32")
        assert zarr2.call("tree", place=str(tmp_path), draft=True) == {
            "": ["group", {"root": [1]}],
            "sub": ["group", {}],
            "sub/deep": ["group", ATTRIBUTES],
            "sub/x": ["array", ATTRIBUTES],
        }
        same(zarr2.read(tmp_path, "sub/x", draft=True), sample("int32"))

    def test_a_root_array_of_zarr2(self, tmp_path, zarr2):
        zarr2.write(sample("int32"), tmp_path, None, draft=True, chunks=CHUNKS)
        same(zarrdask.open_array(tmp_path)[...], sample("int32"))
