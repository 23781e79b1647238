"""A new format is a class, and one line in the table of `zarrdask.formats.metadata.formats`."""

import json

import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.dtypes.registry import parse_data_type
from zarrdask.formats.grids.chunk_grid import parse_lengths
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata import detect, formats
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.formats import FORMATS, SIDE_BY_SIDE
from zarrdask.formats.metadata.json import parse_json, render_json
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata


class Toy(Format):
    """A format whose nodes have one document, ``node.json``."""

    version = "toy"
    title = "the toy format"
    documents = node_documents = ("node.json",)

    def parse(self, documents):
        data = documents.get("node.json")
        if data is None:
            return None
        document = parse_json(data, "node.json")
        if "shape" not in document:
            return GroupMetadata(self.version, document["attributes"])
        shape = parse_lengths(document["shape"], "shape", 0)
        data_type = parse_data_type(document["type"])
        return ArrayMetadata(
            zarr_format=self.version,
            grid=RegularGrid(shape, parse_lengths(document["chunks"], "chunks", 1)),
            data_type=data_type,
            keys=ChunkKeys(),
            fill_value=data_type.parse_fill(document["fill"]),
            codecs=parse_codecs(document["codecs"], len(shape)),
            attributes=document["attributes"],
        )

    def render(self, metadata):
        document = {"attributes": dict(metadata.attributes)}
        if isinstance(metadata, ArrayMetadata):
            document |= {
                "shape": metadata.shape,
                "chunks": metadata.chunk_shape,
                "type": metadata.data_type.to_json(),
                "fill": metadata.data_type.render_fill(metadata.fill),
                "codecs": [codec.to_json() for codec in metadata.codecs],
            }
        return {"node.json": render_json(document, "node.json")}


VALUES = np.arange(24, dtype="i4").reshape(4, 6)


@pytest.fixture(autouse=True)
def _toy_format(monkeypatch):
    def forget():
        for cached in (
            formats.formats,
            detect.all_names,
            detect.entry_names,
            detect.node_names,
        ):
            cached.cache_clear()

    monkeypatch.setitem(FORMATS, "toy", Toy())
    monkeypatch.setattr(formats, "SIDE_BY_SIDE", (*SIDE_BY_SIDE, "toy"))
    forget()
    yield
    forget()


def test_an_array_is_created_written_opened_and_read():
    store = {}
    z = zarrdask.create_array(
        store, shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format="toy", attributes={"a": 1}
    )
    z[...] = VALUES
    assert json.loads(store["node.json"])["chunks"] == [2, 3]
    assert {key for key in store if key.startswith("c/")} == {"c/0/0", "c/0/1", "c/1/0", "c/1/1"}
    z = zarrdask.open_array(store, mode="r+")
    assert (z.zarr_format, z.shape, dict(z.attrs)) == ("toy", (4, 6), {"a": 1})
    z[1, 2:4] = -1
    expected = VALUES.copy()
    expected[1, 2:4] = -1
    np.testing.assert_array_equal(zarrdask.open_array(store, zarr_format="toy")[...], expected)


def test_dask_writes_and_reads_it():
    store = {}
    zarrdask.to_zarr(da.from_array(VALUES, chunks=(3, 4)), store, zarr_format="toy", chunks=(2, 2))
    x = zarrdask.from_zarr(store)
    np.testing.assert_array_equal(x[1:, ::2].compute(scheduler="threads"), VALUES[1:, ::2])


def test_groups_hold_nodes_of_it():
    store = {}
    group = zarrdask.create_group(store, zarr_format="toy")
    group.create_array("a/b", shape=(4, 6), dtype="i4")[...] = VALUES
    assert set(store) >= {"node.json", "a/node.json", "a/b/node.json"}
    group = zarrdask.open_group(store)
    assert group["a"].zarr_format == group["a/b"].zarr_format == "toy"
    np.testing.assert_array_equal(group["a/b"][...], VALUES)
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a/b", shape=3, dtype="i4")


def test_arrays_are_resized_verified_and_converted():
    store, copied = {}, {}
    z = zarrdask.create_array(store, shape=(4, 6), dtype="i4", fill_value=7, zarr_format="toy")
    z[...] = VALUES
    z.resize((5, 6))
    assert zarrdask.open_array(store)[4, 0] == 7
    assert zarrdask.verify(store).ok
    zarrdask.copy(store, copied, zarr_format=2)
    assert ".zarray" in copied
    np.testing.assert_array_equal(zarrdask.open_array(copied)[:4], VALUES)


def test_errors_list_it():
    with pytest.raises(MetadataError, match=r"unknown format.*'toy'"):
        zarrdask.create_array({}, shape=3, dtype="i4", zarr_format="tie")
