"""The two dialects of the v3 draft: metadata to documents and back, and whole hierarchies."""

import json
from dataclasses import dataclass

import fsspec
import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v2, v3
from tests.drafts import (
    NOBODY,
    OLDER_ENTRY,
    array,
    codec,
    hierarchy,
    older,
    stored,
)
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    UnsupportedError,
)
from zarrdask.formats.codecs.codec import Kind
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.draft_store import DraftStore

OPTIONS = {
    "plain": {},
    "no compressor": {"compressors": []},
    "order": {"order": "F"},
    "separator": {"separator": "."},
    "shards": {"shards": (4, 6)},
    "shards in order F": {"shards": (4, 6), "order": "F"},
    "gzip": {"compressors": "gzip"},
    "blosc": {"compressors": numcodecs.Blosc("zlib", 3, 2)},
    "zlib": {"compressors": {"id": "zlib", "level": 3}},
    "bz2": {"compressors": {"id": "bz2", "level": 3}},
    "attributes": {"attributes": {"a": [1, {"b": None}]}},
    "names": {"dimension_names": ["y", "x"]},
    "nan": {"dtype": "f4", "fill_value": np.nan},
    "infinity": {"dtype": "f8", "fill_value": -np.inf},
    "complex": {"dtype": "c16", "fill_value": 1 - 2j},
    "bool": {"dtype": "?", "fill_value": True},
    "raw": {"dtype": "V3", "fill_value": np.void(b"abc")},
    "datetime": {"dtype": "M8[10us]", "fill_value": np.datetime64(5, "10us")},
    "bytes": {"dtype": "S5", "fill_value": b"ab"},
    "text": {"dtype": "U5", "fill_value": "äb"},
    "struct": {"dtype": [("a", "u1"), ("b", [("c", "f4", (2,))])]},
    "large": {"dtype": "u8", "fill_value": 2**64 - 1},
    "half": {"dtype": "f2", "fill_value": 0.5},
}


def plan(zarr_format, **options):
    wanted = {"shape": (8, 9), "chunks": (2, 3), "dtype": "i4"} | options
    return plan_array(ArrayOptions(zarr_format=zarr_format, **wanted))


def again(metadata):
    """Return the metadata, written and read."""
    store = DraftStore(MemoryStore(), "", metadata.zarr_format)
    return detect.parse(metadata.render(), store.layout)


@for_each("options", OPTIONS.values())
def test_metadata_come_back_from_their_document(zarr_format, options):
    metadata = plan(zarr_format, **options)
    assert again(metadata) == metadata
    assert again(again(metadata)) == metadata


@for_each("options", OPTIONS.values())
def test_values_come_back_from_the_store(place, zarr_format, options):
    wanted = {"shape": (8, 9), "chunks": (2, 3), "dtype": "i4"} | options
    z = zarrdask.create_array(place, "g/a", zarr_format=zarr_format, overwrite=True, **wanted)
    data = np.arange(8 * 9 * z.dtype.itemsize, dtype="u1") % 97 + 1
    values = data.view(z.dtype if z.dtype.kind not in "?U" else "u1")[:72].reshape(8, 9)
    values = values.astype(z.dtype) if z.dtype.kind != "V" else values
    z[...] = values
    result = zarrdask.open_array(place, "g/a", strict=True)
    assert result[...].tobytes() == values.tobytes()
    assert zarrdask.from_zarr(place, "g/a")[3:, :5].compute().tobytes() == (
        values[3:, :5].tobytes()
    )
    assert result.dimension_names == (("y", "x") if "dimension_names" in options else None)


def test_big_endian_is_stored_as_asked_only_in_the_older_dialect():
    for zarr_format, name in (("v3-draft", "float64"), ("v3-draft-protocol", ">f8")):
        metadata = plan(zarr_format, dtype=">f8")
        assert metadata.dtype == np.dtype("=f8")
        document = json.loads(metadata.render()["array.json"])
        assert document["data_type"] == name


def test_the_default_compressor_is_one_that_readers_have():
    for zarr_format, member in (("v3-draft", "codecs"), ("v3-draft-protocol", "compressor")):
        document = json.loads(plan(zarr_format).render()["array.json"])
        text = json.dumps(document[member])
        assert "zstd" in text
        assert ("blosc" in text) == (zarr_format == "v3-draft")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "longdouble"}, "data type"),
        ({"dtype": "bfloat16"}, "data type"),
        ({"compressors": ["zstd", "crc32c"]}, "codec|compressor"),
        ({"chunks": [[2, 6], [9]]}, "grid"),
        ({"chunk_key_encoding": "default"}, "encoding"),
        ({"storage_transformers": [{"extension": NOBODY, "type": "x"}]}, "transformer"),
    ],
)
def test_what_the_draft_lacks_is_not_written(zarr_format, options, message):
    store = {}
    options = {"shape": (8, 9), "chunks": (2, 3), "dtype": "i4"} | options
    with pytest.raises((UnsupportedError, MetadataError), match=message):
        zarrdask.create_array(store, "a", zarr_format=zarr_format, **options)
    assert store == {}


@pytest.mark.parametrize("dtype", [str, object])
def test_text_of_any_length_is_of_the_older_dialect_only(dtype):
    with pytest.raises(UnsupportedError, match="no such"):
        zarrdask.create_array({}, shape=3, dtype=dtype, zarr_format="v3-draft")
    z = zarrdask.create_array({}, shape=3, dtype=dtype, zarr_format="v3-draft-protocol")
    z[...] = np.array(["a", "bc", ""], object)
    assert z[...].tolist() == ["a", "bc", ""]


def test_a_registered_data_type_is_known_by_its_uri(own_registries):
    @dataclass(frozen=True)
    class Colour(DataType):
        @classmethod
        def from_configuration(cls, name, configuration):
            assert (name, configuration) == (NOBODY, {"type": "rgb"})
            return cls(np.dtype("V3"))

        @classmethod
        def from_dtype(cls, dtype):
            return None

        def to_json(self):
            return {"name": NOBODY, "configuration": {"type": "rgb"}}

        def parse_fill(self, result):
            return np.void(bytes.fromhex(result.removeprefix("#")))

        def render_fill(self, value):
            return f"#{value.tobytes().hex()}"

    zarrdask.register.data_type(NOBODY, Colour)
    kind = {"extension": NOBODY, "type": "rgb", "fallback": ["r24"]}
    store = stored(array(data_type=kind, fill_value="#0a0b0c"))
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[0].tobytes() == b"\x0a\x0b\x0c"
    z.attrs["x"] = 1
    written = json.loads(store["meta/a.array.json"])
    assert written == array(data_type=kind, fill_value="#0a0b0c", attributes={"x": 1})


class Reverse:
    """A bytes -> bytes codec that turns them round."""

    name = NOBODY
    kind = Kind.BYTES_BYTES

    @classmethod
    def from_configuration(cls, value):
        assert not value or value == {"x": 1}
        return cls()

    def to_json(self):
        return {"name": NOBODY, "configuration": {"x": 1}}

    def encode(self, data):
        return bytes(data)[::-1]

    def decode(self, data, limit, out=None):
        return bytes(data)[::-1]

    def encoded_size(self, size):
        return size

    def __eq__(self, other):
        return isinstance(other, Reverse)


def test_a_registered_codec_is_known_by_its_uri(own_registries, zarr_format):
    zarrdask.register.codec(Reverse)
    store = {}
    if zarr_format == "v3-draft":
        options = {"compressors": ["gzip", {"name": NOBODY}]}
        z = zarrdask.create_array(
            store, "a", shape=4, dtype="u1", **options, zarr_format=zarr_format
        )
        member = "codecs", [codec("gzip", level=5), {"type": NOBODY, "configuration": {"x": 1}}]
        key, chunk = "meta/a.array.json", "data/a/c0"
    else:
        result = {"codec": NOBODY, "configuration": {"x": 1}}
        filters = [{"id": "zlib", "level": 1}]
        document = older((4,), (4,), "u1", compressor=result, attributes={"filters": filters})
        store |= stored(document, entry=OLDER_ENTRY)
        z = zarrdask.open_array(store, "a", mode="r+")
        z.attrs["x"] = 1
        member = "compressor", result
        key, chunk = "meta/root/a.array.json", "data/root/a/c0"
    z[...] = [1, 2, 3, 4]
    assert json.loads(store[key])[member[0]] == member[1]
    assert store[chunk][-2:] == (b"\x8b\x1f" if zarr_format == "v3-draft" else b"\x01\x78")
    assert zarrdask.open_array(store, "a")[...].tolist() == [1, 2, 3, 4]


def test_a_hierarchy_may_be_below_the_root_of_a_store(zarr_format):
    inner = {}
    zarrdask.create_array(inner, "g/a", shape=3, dtype="i4", zarr_format=zarr_format)[...] = 7
    zarrdask.create_group(inner, attributes={"x": 1}, zarr_format=zarr_format)
    store = {f"deep/down.zarr/{key}": value for key, value in inner.items()}
    before = set(store)
    root = zarrdask.open_group(store, "deep/down.zarr", mode="r+")
    assert dict(root.attrs) == {"x": 1}
    assert root["g/a"][...].tolist() == [7, 7, 7]
    assert zarrdask.open_array(store, "deep/down.zarr/g/a")[...].tolist() == [7, 7, 7]
    assert zarrdask.from_zarr(store, "deep/down.zarr/g/a").compute().tolist() == [7, 7, 7]
    zarrdask.create_group(store, "deep/down.zarr/new", zarr_format=zarr_format)
    assert list(root) == ["g", "new"]
    del root["new"]
    assert set(store) == before
    with pytest.raises(MetadataError, match="names"):
        root.create_group("a b")
    with pytest.raises(MetadataError, match="outside"):
        zarrdask.open(root.store, "elsewhere")


def test_a_hierarchy_among_the_members_of_a_group_is_told_so():
    store = {f"inner/{key}": value for key, value in stored().items()}
    root = zarrdask.create_group(store)
    root.create_array("a", shape=3, dtype="i4")
    with pytest.raises(MetadataError, match="open it by its own URL"):
        root["inner"]
    assert zarrdask.open_array(store, "inner/a").zarr_format == "v3-draft"


def test_a_group_is_opened_or_made(zarr_format):
    store = {}
    options = {"mode": "a", "zarr_format": zarr_format}
    zarrdask.open_group(store, "g", **options).attrs["x"] = 1
    assert dict(zarrdask.open_group(store, "g", **options).attrs) == {"x": 1}
    # What is there tells its format.
    assert dict(zarrdask.open_group(store, "g", mode="a").attrs) == {"x": 1}
    assert zarrdask.open_group(store, "new", mode="a").zarr_format == zarr_format
    with pytest.raises(NodeExistsError):
        zarrdask.open_group(store, "g", mode="w-", zarr_format=zarr_format)
    assert dict(zarrdask.open_group(store, "g", mode="w", zarr_format=zarr_format).attrs) == {}


def test_kinds_of_nodes_are_told_apart(zarr_format):
    store = {}
    zarrdask.create_array(store, "g/a", shape=3, dtype="i4", zarr_format=zarr_format)
    with pytest.raises(NodeTypeError):
        zarrdask.open_array(store, "g")
    with pytest.raises(NodeTypeError):
        zarrdask.open_group(store, "g/a")
    with pytest.raises(NodeNotFoundError, match=r"meta/(root/)?g/b\.array\.json"):
        zarrdask.open(store, "g/b")


def test_arrays_grow_and_shrink(place, zarr_format):
    options = {"shape": (4, 3), "chunks": (2, 1), "shards": (2, 3), "dtype": "i4"}
    z = zarrdask.create_array(place, "a", **options, fill_value=9, zarr_format=zarr_format)
    z[...] = 1
    z.resize((3, 3))
    z.resize((5, 4))
    expected = np.full((5, 4), 9)
    expected[:3, :3] = 1
    np.testing.assert_array_equal(zarrdask.open_array(place, "a")[...], expected)
    assert z.append(np.full((1, 4), 5)) == (6, 4)
    np.testing.assert_array_equal(
        zarrdask.open_array(place, "a")[...], np.vstack([expected, np.full((1, 4), 5)])
    )


def test_what_is_stored_is_counted(zarr_format):
    options = {"shape": (4, 4), "chunks": (1, 1), "dtype": "i4", "zarr_format": zarr_format}
    for shards, stored_ in ((None, 3), ((2, 2), 3)):
        z = zarrdask.create_array({}, "a", shards=shards, **options)
        z[0, :3] = 1
        assert (z.nchunks, z.nchunks_stored()) == (16, stored_)


def test_over_http_like_stores_all_goes_by_path(zarr_format, tmp_path):
    zarrdask.create_array(tmp_path, "g/a", shape=3, dtype="i4", zarr_format=zarr_format)[...] = 7
    root = f"file://{tmp_path}"
    assert zarrdask.open_array(root, "g/a")[...].tolist() == [7, 7, 7]
    archive = fsspec.filesystem("memory")
    archive.put(str(tmp_path), f"/draft-{zarr_format}", recursive=True)
    assert list(zarrdask.open_group(f"memory://draft-{zarr_format}")) == ["g"]
    archive.rm(f"/draft-{zarr_format}", recursive=True)


class Recording(MemoryStore):
    """A store that records the keys that it is asked for."""

    def __init__(self, values):
        super().__init__(values)
        self.asked = []

    def get_many(self, keys, scratch):
        self.asked.append(list(keys))
        return super().get_many(self.asked[-1], scratch)


@for_each("document", [{"zarr.json": dump(v3())}, {".zarray": dump(v2())}])
@for_each("path", ["", "g/a"])
def test_nodes_of_other_formats_are_asked_for_once(document, path):
    prefix = f"{path}/" if path else ""
    store = Recording({prefix + key: value for key, value in document.items()})
    zarrdask.open_array(store, path)
    assert store.asked == [[prefix + name for name in detect.all_names()]]


def test_a_node_of_the_draft_is_asked_for_twice():
    store = Recording(stored())
    zarrdask.open_array(store, "a")
    plain, above, within = store.asked
    assert plain == [f"a/{name}" for name in detect.all_names()]
    assert above == ["zarr.json"]
    assert within == ["meta/a.array.json", "meta/a.group.json"]
    store.asked.clear()
    zarrdask.open(store)
    assert store.asked[1:] == [["meta/array.json", "meta/group.json"]]


def test_within_a_hierarchy_only_the_drafts_documents_are_asked_for():
    store = Recording(hierarchy({"g/a.array": array(), "g/b.array": array()}))
    group = zarrdask.open_group(store, "g")
    store.asked.clear()
    group["a"]
    assert store.asked == [["meta/g/a.array.json", "meta/g/a.group.json"]]
    store.asked.clear()
    assert len(list(group.arrays())) == 2
    [asked] = store.asked
    assert sorted(asked) == [
        f"meta/g/{name}.{kind}.json" for name in "ab" for kind in ("array", "group")
    ]


def test_the_older_dialect_reads_codecs_of_the_newer_unless_strict():
    document = older((2,), (2,), codecs=[])
    store = stored(document, {"c0": b"\1\0\2\0"}, OLDER_ENTRY)
    assert zarrdask.open_array(store, "a")[...].tolist() == [1, 2]
    with pytest.raises(MetadataError, match="X-B6"):
        zarrdask.open_array(store, "a", strict=True)
