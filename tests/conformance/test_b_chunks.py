"""B.6 and B.7: chunks, their keys, the memory layout and codecs of the draft."""

import gzip
import json
from typing import ClassVar

import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump
from tests.drafts import CODEC, CORE, ENTRY, NOBODY, array, codec, hierarchy, stored
from zarrdask.errors import CodecError, MetadataError, NodeNotFoundError, UnsupportedError
from zarrdask.formats.codecs.codec import Kind
from zarrdask.formats.codecs.registry import CODECS

DRAFT = {"zarr_format": "v3-draft"}
VALUES = np.arange(24, dtype="<u2").reshape(4, 6)


def opened(document, chunks=None):
    return zarrdask.open_array(stored(document, chunks), "a")


def created(store, path="a", **options):
    options = {"shape": (4, 6), "dtype": "<u2", "chunks": (2, 3), "compressors": []} | options
    return zarrdask.create_array(store, path, **options, **DRAFT)


# ---- B.6


def test_b45_the_grid_has_a_chunk_for_each_piece_of_the_array():
    found = opened(array((10, 200, 3000), (5, 20, 400)))
    assert found.metadata.grid.counts == (2, 10, 8)


def test_b45_an_element_is_in_the_chunk_that_its_coordinates_divide_into():
    chunk = np.zeros((5, 20, 400), "<u2")
    chunk[2, 10, 100] = 7
    found = opened(array((10, 200, 3000), (5, 20, 400)), {"c1/7/2": chunk.tobytes()})
    assert found[7, 150, 900] == 7
    assert found[...].sum() == 7


@pytest.mark.parametrize(("separator", "key"), [("/", "c1/23/45"), (".", "c1.23.45")])
def test_b46_an_identifier_is_c_and_the_indices(separator, key):
    store = {}
    options = {"shape": (2, 24, 46), "chunks": 1, "separator": separator, "dtype": "u1"}
    z = created(store, **options)
    z[1, 23, 45] = 7
    assert store[f"data/a/{key}"] == b"\7"
    assert zarrdask.open_array(store, "a")[1, 23, 45] == 7


def test_b47_without_dimensions_it_is_c():
    store = {}
    z = created(store, shape=(), chunks=())
    z[...] = 513
    assert store["data/a/c"] == b"\1\2"
    assert "data/a/c0" not in store
    assert z.nchunks_stored() == 1


@pytest.mark.parametrize("key", ["c", "c0"])
def test_b47_other_software_counts_that_chunk(key):
    store = stored(array((), ()), {key: b"\1\2"})
    assert zarrdask.open_array(store, "a")[...] == 513
    assert zarrdask.from_zarr(store, "a").compute() == 513


def test_b47_what_is_written_replaces_what_others_wrote():
    store = stored(array((), ()), {"c0": b"\1\2"})
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = 3
    assert zarrdask.open_array(store, "a")[...] == 3
    assert "data/a/c0" not in store
    store["data/a/c0"] = b"\1\2"
    z[...] = 0
    assert zarrdask.open_array(store, "a")[...] == 0


def test_b48_chunks_at_the_border_are_whole_and_filled():
    store = {}
    z = created(store, shape=(3,), chunks=2, fill_value=9)
    z[...] = [1, 2, 3]
    assert store["data/a/c1"] == np.array([3, 9], "<u2").tobytes()
    assert zarrdask.open_array(store, "a")[...].tolist() == [1, 2, 3]


def test_b49_chunks_are_below_data_and_the_path():
    store = {}
    created(store, "foo/baz", shape=(2, 1), chunks=1)[...] = 1
    assert {"data/foo/baz/c0/0", "data/foo/baz/c1/0"} < set(store)
    store = {}
    created(store, "", shape=(1, 1), chunks=1)[...] = 1
    assert "data/c0/0" in store


def test_b50_documents_are_below_meta():
    store = {}
    zarrdask.create_group(store, "foo/bar", **DRAFT)
    created(store, "foo/baz")
    assert set(store) == {"zarr.json", "meta/foo/bar.group.json", "meta/foo/baz.array.json"}
    zarrdask.create_group(store, **DRAFT)
    assert "meta/group.json" in store
    store = {}
    created(store, "")
    assert set(store) == {"zarr.json", "meta/array.json"}


@for_each("name", ["x.array", "x.group", "x.array.json", "meta", "data", "root"])
def test_b51_the_path_is_what_is_before_the_last_ending(name):
    store = {}
    root = zarrdask.create_group(store, **DRAFT)
    root.create_group(name)
    root.create_array(f"g/{name}", shape=2, dtype="u1")
    assert list(root) == sorted(["g", name])
    assert list(root["g"]) == [name]
    assert f"meta/{name}.group.json" in store
    assert root[name].path == name


# ---- B.7


@pytest.mark.parametrize("order", ["C", "F"])
def test_b52_a_chunk_is_in_row_major_or_column_major_order(order):
    store = {}
    z = created(store, chunks=(4, 6), order=order)
    z[...] = VALUES
    assert store["data/a/c0/0"] == VALUES.tobytes(order)
    assert json.loads(store["meta/a.array.json"])["chunk_memory_layout"] == order
    document = array((4, 6), (4, 6), chunk_memory_layout=order)
    found = opened(document, {"c0/0": VALUES.tobytes(order)})
    assert found[...].tolist() == VALUES.tolist()


class Recorder:
    """An array -> array codec that records what it is given."""

    name = NOBODY
    kind = Kind.ARRAY_ARRAY
    shapes: ClassVar = []

    @classmethod
    def from_configuration(cls, found):
        return cls()

    def to_json(self):
        return {"name": self.name}

    def resolve(self, spec):
        self.shapes.append(spec.shape)
        return spec

    def encode(self, chunk):
        return chunk

    def decode(self, chunk, spec):
        return chunk


@pytest.mark.parametrize(("layout", "shape"), [("C", (2, 3, 4)), ("F", (4, 3, 2))])
def test_b53_codecs_see_the_chunk_shape_or_its_reverse(own_registries, layout, shape):
    CODECS.register(NOBODY, Recorder)
    Recorder.shapes.clear()
    document = array((2, 3, 4), (2, 3, 4), chunk_memory_layout=layout, codecs=[{"type": NOBODY}])
    opened(document)
    assert Recorder.shapes == [shape]


def test_b54_codecs_encode_in_their_order_and_decode_backwards():
    data = VALUES.tobytes()
    encoded = gzip.compress(numcodecs.Zlib(1).encode(data))
    document = array((4, 6), (4, 6), codecs=[codec("zlib", level=1), codec("gzip", level=1)])
    store = stored(document, {"c0/0": encoded})
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[...].tolist() == VALUES.tolist()
    z[...] = VALUES + 1
    data = numcodecs.Zlib(1).decode(gzip.decompress(store["data/a/c0/0"]))
    assert data == (VALUES + 1).tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_b55_an_array_at_the_end_becomes_little_endian_bytes(own_registries, order):
    CODECS.register(NOBODY, Recorder)
    document = array(
        (4, 6), (4, 6), chunk_memory_layout=order, codecs=[{"type": NOBODY}], data_type="float64"
    )
    values = VALUES.astype("<f8")
    found = opened(document, {"c0/0": values.tobytes(order)})
    assert found[...].tolist() == values.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_b56_a_byte_codec_is_given_those_bytes(order):
    document = array((4, 6), (4, 6), chunk_memory_layout=order, codecs=[codec("gzip", level=1)])
    found = opened(document, {"c0/0": gzip.compress(VALUES.tobytes(order))})
    assert found[...].tolist() == VALUES.tolist()


def test_b57_a_codec_that_can_not_take_its_input_fails_at_open(own_registries):
    class Picky(Recorder):
        def resolve(self, spec):
            raise UnsupportedError("three axes, please", key=self.name)

    CODECS.register(NOBODY, Picky)
    with pytest.raises(UnsupportedError, match="three axes"):
        opened(array(codecs=[{"type": NOBODY}]))


def test_b58_without_codecs_a_chunk_is_raw():
    for document in (array((4, 6), (4, 6)), array((4, 6), (4, 6), codecs=[])):
        found = opened(document, {"c0/0": VALUES.astype("<u2").tobytes()})
        assert found[...].tolist() == VALUES.tolist()
    store = {}
    created(store, chunks=(4, 6))[...] = VALUES
    assert store["data/a/c0/0"] == VALUES.astype("<u2").tobytes()


def test_b59_gzip_has_its_uri_and_the_framing_of_rfc_1952():
    store = {}
    z = created(store, chunks=(4, 6), compressors={"id": "gzip", "level": 9})
    z[...] = VALUES
    assert json.loads(store["meta/a.array.json"])["codecs"] == [
        {"type": "https://purl.org/zarr/spec/codecs/gzip/1.0", "configuration": {"level": 9}}
    ]
    assert gzip.decompress(store["data/a/c0/0"]) == VALUES.tobytes()
    assert zarrdask.open_array(store, "a")[...].tolist() == VALUES.tolist()


@for_each("level", [-1, 10, "1", 1.0, None])
def test_b59_its_level_is_0_to_9(level):
    with pytest.raises(MetadataError, match="level"):
        opened(array(codecs=[codec("gzip", level=level)]))
    for level in range(10):
        assert opened(array(codecs=[codec("gzip", level=level)])).shape == (4,)


def blosc(**configuration):
    return codec("blosc", **{"cname": "lz4", "clevel": 5, "shuffle": 1, **configuration})


@for_each("cname", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"])
@for_each("shuffle", [-1, 0, 1, 2])
def test_b60_blosc_has_a_number_for_its_shuffle(cname, shuffle):
    encoder = numcodecs.Blosc(cname, 5, max(shuffle, 1))
    document = array((4, 6), (4, 6), codecs=[blosc(cname=cname, shuffle=shuffle, blocksize=0)])
    found = opened(document, {"c0/0": encoder.encode(VALUES)})
    assert found[...].tolist() == VALUES.tolist()


@for_each(
    ("shuffle", "dtype", "resolved"),
    [(-1, "u1", 2), (-1, "<u2", 1), (1, "u1", 1), (2, "<f8", 2), (0, "<f8", 0)],
)
def test_b60_the_type_size_is_that_of_the_elements(shuffle, dtype, resolved):
    store = stored(array((64,), (64,), np.dtype(dtype).name, codecs=[blosc(shuffle=shuffle)]))
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = np.arange(64)
    flags, typesize = store["data/a/c0"][2:4]
    assert typesize == np.dtype(dtype).itemsize
    assert (flags & 1, flags >> 2 & 1) == (resolved == 1, resolved == 2)


def test_b60_it_is_written_with_its_uri_and_members():
    store = {}
    created(store, compressors=numcodecs.Blosc("zstd", 7, 2, 1024))
    assert json.loads(store["meta/a.array.json"])["codecs"] == [
        {
            "type": "https://purl.org/zarr/spec/codecs/blosc/1.0",
            "configuration": {"cname": "zstd", "clevel": 7, "shuffle": 2, "blocksize": 1024},
        }
    ]


@for_each(
    "configuration",
    [{"clevel": 10}, {"shuffle": 3}, {"shuffle": "bit"}, {"cname": "x"}, {"typesize": 2}],
)
def test_b60_another_configuration_is_an_error(configuration):
    with pytest.raises(MetadataError, match="blosc"):
        opened(array(codecs=[blosc(**configuration)]))


@for_each(("endian", "stored_as"), [("big", ">u2"), ("little", "<u2")])
@for_each("order", ["C", "F"])
def test_b61_endian_gives_the_byte_order(endian, stored_as, order):
    document = array(
        (4, 6), (4, 6), chunk_memory_layout=order, codecs=[codec("endian", endian=endian)]
    )
    store = stored(document, {"c0/0": VALUES.astype(stored_as).tobytes(order)})
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[...].tolist() == VALUES.tolist()
    z[...] = VALUES + 1
    assert store["data/a/c0/0"] == (VALUES + 1).astype(stored_as).tobytes(order)


def test_b61_little_is_what_leaving_it_out_means():
    little, none = (opened(array(codecs=c)) for c in ([codec("endian", endian="little")], []))
    assert little.metadata == none.metadata
    options = {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
    store = {}
    created(store, **options | {"compressors": None})
    assert "codecs" not in json.loads(store["meta/a.array.json"])
    options["codecs"][0]["configuration"]["endian"] = "big"
    store = {}
    created(store, **options | {"compressors": None})
    assert json.loads(store["meta/a.array.json"])["codecs"] == [codec("endian", endian="big")]


@for_each("configuration", [{}, {"endian": "middle"}, {"endian": None}, {"x": 1}])
def test_b61_it_must_say_which(configuration):
    with pytest.raises(MetadataError, match="endian"):
        opened(array(codecs=[codec("endian", **configuration)]))


@for_each(
    "uri",
    [
        NOBODY,
        CODEC.format("nobody"),
        CODEC.format("pickle"),
        CODEC.format("gzip").replace("1.0", "2.0"),
        "https://example.org/spec/codecs/gzip/1.0",
    ],
)
def test_b62_an_unknown_codec_is_an_error_that_names_it(uri):
    with pytest.raises(UnsupportedError, match="codec") as caught:
        opened(array(codecs=[{"type": uri, "configuration": {}}]))
    assert caught.value.found == uri


def test_b62_codecs_that_the_draft_lacks_are_not_written():
    for options in (
        {"compressors": "crc32c"},
        {"filters": {"name": "transpose", "configuration": {"order": [0, 1]}}},
    ):
        store = {}
        with pytest.raises(UnsupportedError, match="draft"):
            created(store, **options)
        assert store == {}


def test_b62_one_that_was_registered_is_known(own_registries):
    zarrdask.register.codec(Recorder)
    found = opened(array(codecs=[{"type": NOBODY}]), {"c0": b"\1\0\2\0"})
    assert found[:2].tolist() == [1, 2]


@pytest.mark.parametrize("minor", [1, 9])
def test_b63_what_is_known_opens_under_any_minor_version(minor):
    entry = ENTRY | {"zarr_format": CORE[:-1] + str(minor)}
    document = array((4, 6), (4, 6), codecs=[blosc(), codec("gzip", level=1)])
    data = gzip.compress(numcodecs.Blosc().encode(VALUES))
    store = hierarchy({"a.array": document}, entry, {"a/c0/0": data})
    assert zarrdask.open_array(store, "a")[...].tolist() == VALUES.tolist()
    document["codecs"] = [{"type": NOBODY}]
    store["meta/a.array.json"] = dump(document)
    with pytest.raises(UnsupportedError, match=NOBODY):
        zarrdask.open_array(store, "a")


def test_b58_a_chunk_of_another_size_is_an_error():
    found = opened(array(), {"c0": b"123"})
    with pytest.raises(CodecError, match="a/c0"):
        found[...]


def test_b49_other_hierarchies_of_a_store_are_not_seen():
    store = {f"inner/{key}": value for key, value in stored().items()}
    with pytest.raises(NodeNotFoundError):
        zarrdask.open(store)
    assert zarrdask.open_array(store, "inner/a")[...].tolist() == [0] * 4
