"""S.1: sharding as a storage transformer of the draft, and its shards of fixed bytes."""

import gzip
import json
import threading
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.drafts import (
    ENTRY,
    NOBODY,
    OLDER_ENTRY,
    SHARDING,
    array,
    codec,
    hierarchy,
    index,
    older,
    sharding,
    stored,
)
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.metadata.draft.transformers import TITLE
from zarrdask.storage.memory import MemoryStore

DRAFT = {"zarr_format": "v3-draft"}
VALUES = np.arange(36, dtype="<i2").reshape(6, 6)
OPTIONS = {"shape": (6, 6), "dtype": "<i2", "chunks": (1, 2), "shards": (2, 4), "fill_value": -1}
#: What zarr-python 2.18.7 wrote for the values above (the two lower rows are not full).
SAMPLE = bytes.fromhex("0800090002000300060007000000 0100") + index((12, 4), (4, 4), (8, 4), (0, 4))


def document(**others):
    return array((6, 6), (1, 2), "int16", -1, storage_transformers=[sharding(2, 2)], **others)


def opened(chunks=None, **others):
    return zarrdask.open_array(stored(document(**others), chunks), "a")


# ---- configuration


@pytest.mark.parametrize(
    "uri",
    [
        "https://purl.org/zarr/spec/extensions/storage-transformers/sharding/1.0",
        "https://purl.org/zarr/spec/extensions/storage_transformers/sharding/1.0",
        "https://purl.org/zarr/spec/storage_transformers/sharding/1.0",
    ],
)
def test_s1_all_its_uris_are_read(uri):
    store = stored(array((4,), (1,), storage_transformers=[sharding(2, extension=uri)]))
    z = zarrdask.open_array(store, "a")
    assert z.shards == (2,)
    assert z.metadata.transformers == ()


@pytest.mark.parametrize("zarr_format", ["v3-draft", "v3-draft-protocol"])
def test_s1_the_one_that_software_reads_is_written(zarr_format):
    def uri():
        store = {}
        zarrdask.create_array(store, "a", **OPTIONS, zarr_format=zarr_format)
        *_, key = [key for key in store if key.startswith("meta")]
        return json.loads(store[key])["storage_transformers"][0]["extension"]

    assert uri() == SHARDING
    with strictness(strict=True):
        assert uri() == (TITLE if zarr_format == "v3-draft" else SHARDING)


@for_each("kind", ["other", "", None, 1])
def test_s2_its_type_is_indexed(kind):
    with pytest.raises(MetadataError, match="indexed"):
        zarrdask.open(stored(array(storage_transformers=[sharding(2, kind=kind)])), "a")


@for_each("counts", [[], [2], [2, 2, 2], [2, 0], [2, -1], [2, 1.0], [2, "2"]])
def test_s2_there_is_one_count_a_dimension_from_1(counts):
    with pytest.raises(MetadataError, match="chunks_per_shard"):
        zarrdask.open(stored(array((4, 4), (1, 1), storage_transformers=[sharding(*counts)])), "a")


@pytest.mark.parametrize("configuration", [{}, {"chunks_per_shard": 2}, {"chunk_shape": [2]}])
def test_s2_another_configuration_is_an_error(configuration):
    item = sharding() | {"configuration": configuration}
    with pytest.raises(MetadataError, match="sharding"):
        zarrdask.open(stored(array(storage_transformers=[item])), "a")


# ---- where a chunk is


@pytest.mark.parametrize("separator", ["/", "."])
def test_s3_a_chunk_is_in_the_shard_that_its_index_divides_into(separator):
    store = {}
    options = {"shape": (128, 20), "chunks": (1, 1), "shards": (32, 2), "dtype": "u1"}
    z = zarrdask.create_array(store, "a", **options, separator=separator, **DRAFT)
    for i in (96, 127):
        for j in (18, 19):
            z[i, j] = 1
    assert [key for key in store if key.startswith("data/")] == [f"data/a/c3{separator}9"]


# ---- shards


def test_s4_a_shard_is_chunks_and_the_index_at_the_end():
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, compressors=[], **DRAFT)
    z[:2, :4] = 7
    body = np.full(8, 7, "<i2").tobytes()
    assert store["data/a/c0/0"] == body + index((0, 4), (4, 4), (8, 4), (12, 4))


@for_each(("counts", "size"), [((2, 2), 64), ((32, 2), 1024), ((1,), 16), ((), 16)])
def test_s5_the_index_has_16_bytes_a_chunk(counts, size):
    values = {}
    z = zarrdask.create_array(
        values,
        "a",
        shape=counts,
        chunks=(1,) * len(counts),
        shards=counts,
        dtype="u1",
        compressors=[],
        **DRAFT,
    )
    z[...] = 1
    shard = values["data/a/" + ChunkKeys("draft").key((0,) * len(counts))]
    assert len(shard) == z.size + size


def test_s5_chunks_are_in_c_order_with_offsets_from_the_start():
    chunk = [np.array([n, n], "<i2").tobytes() for n in range(4)]
    # Gaps of one byte; chunks backwards.
    body = b"".join(b"?" + data for data in reversed(chunk))
    shard = body + index(*((16 - 5 * n, 4) for n in range(4)))
    found = opened({"c0/0": shard})
    assert found[:2, :4].tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]


def test_s6_an_empty_chunk_has_two_largest_numbers_in_the_index():
    found = opened({"c0/0": b"\1\0\2\0" + index(None, (0, 4), None, None)})
    assert found[:2, :4].tolist() == [[-1, -1, 1, 2], [-1] * 4]
    assert found.nchunks_stored() == 1


def test_s6_the_index_has_entries_for_chunks_outside_the_array_too():
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, compressors=[], **DRAFT)
    z[4:, 4:] = 3
    assert store["data/a/c2/1"][-64:] == index((0, 4), None, (4, 4), None)
    with pytest.raises(CodecError, match="index"):
        opened({"c2/1": b"\3\0\3\0" + index((0, 4), None)})[4:, 4:]


@pytest.mark.parametrize("order", ["C", "F"])
def test_s7_each_chunk_is_encoded_by_itself(order):
    chunks = [np.array([[n], [n + 1]], "<i2") for n in range(4)]
    data = [gzip.compress(chunk.tobytes(order)) for chunk in chunks]
    starts = np.cumsum([0, *map(len, data)]).tolist()
    shard = b"".join(data) + index(*zip(starts, map(len, data), strict=False))
    found = zarrdask.open_array(
        stored(
            array(
                (4, 2),
                (2, 1),
                "int16",
                -1,
                storage_transformers=[sharding(2, 2)],
                codecs=[codec("gzip", level=1)],
                chunk_memory_layout=order,
            ),
            {"c0/0": shard},
        ),
        "a",
    )
    assert found[...].tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_s8_gaps_stale_bytes_and_overlaps_are_fine():
    shard = b"stale\1\0\2\0stale" + index((5, 4), (5, 4), (7, 4), None)
    found = opened({"c0/0": shard})
    assert found[0, :4].tolist() == [1, 2, 1, 2]
    assert found[1, 0] == 2
    assert found[1, 2] == -1


@for_each(
    "entry",
    [(0, 2**64 - 1), (2**64 - 1, 4), (65, 4), (64, 5), (2**62, 2**62), (0, 69)],
)
def test_s8_what_points_beyond_the_value_is_an_error(entry):
    shard = b"\1\0\2\0" + index(entry, (0, 4), None, None)
    found = opened({"c0/0": shard})
    assert found[0, 2:4].tolist() == [1, 2]
    with pytest.raises(CodecError, match=r"a/c0/0"):
        found[0, :2]


def test_s8_a_value_that_is_shorter_than_the_index_is_an_error():
    with pytest.raises(CodecError, match="shorter"):
        opened({"c0/0": bytes(63)})[0, 0]


def test_s9_a_shard_without_chunks_is_erased():
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, **DRAFT)
    z[:2, :4] = 7
    z[:2, :2] = -1
    assert z.nchunks_stored() == 2
    z[:2, 2:4] = -1
    assert not any(key.startswith("data/") for key in store)


def test_s10_writing_one_chunk_keeps_the_others():
    store = stored(document(), {"c0/0": SAMPLE})
    z = zarrdask.open_array(store, "a", mode="r+")
    before = z[...].copy()
    z[0, 2:4] = 77
    before[0, 2:4] = 77
    assert zarrdask.open_array(store, "a")[...].tolist() == before.tolist()


def test_s10_threads_that_write_chunks_of_one_shard_lose_none():
    options = {"shape": (8, 8), "chunks": (1, 1), "shards": (8, 8), "dtype": "u1"}
    z = zarrdask.create_array({}, "a", **options, **DRAFT)

    def write(i):
        for j in range(8):
            z[i, j] = 8 * i + j

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert z[...].ravel().tolist() == list(range(64))


class Counting(MemoryStore):
    """A store with latency that records the ranges that it is asked for."""

    capabilities = replace(MemoryStore.capabilities, concurrent=True)

    def __init__(self, values):
        super().__init__(values)
        self.ranges = []
        self.indices = threading.Barrier(1)  # as many are in flight at a time

    def get_range(self, key, start, length=None):
        if start < 0:
            self.indices.wait(30)
        self.ranges.append((key, start, length))
        return super().get_range(key, start, length)


def test_s11_the_index_is_read_and_then_what_is_wanted():
    store = Counting(stored(document(), {"c0/0": SAMPLE}))
    z = zarrdask.open_array(store, "a")
    store.ranges.clear()
    assert z[0, 2] == 2
    assert store.ranges == [("data/a/c0/0", -64, None), ("data/a/c0/0", 4, 4)]


def test_s11_the_indices_of_many_chunks_are_read_together():
    store = Counting(stored(document(), {"c0/0": SAMPLE, "c1/0": SAMPLE}))
    z = zarrdask.open_array(store, "a")
    store.ranges.clear()
    store.indices = threading.Barrier(2)
    assert z[1:3, 2].tolist() == [8, 2]
    assert sorted(store.ranges) == [
        ("data/a/c0/0", -64, None),
        ("data/a/c0/0", 0, 4),
        ("data/a/c1/0", -64, None),
        ("data/a/c1/0", 4, 4),
    ]


def test_s12_chunks_are_counted_within_shards():
    z = zarrdask.create_array({}, "a", **OPTIONS, **DRAFT)
    for i, j in ((0, 0), (1, 3), (5, 2), (5, 3)):
        z[i, j] = 7
    assert z.nchunks_stored() == 3
    assert [z[i, 2] for i in (0, 5)] == [-1, 7]


def test_s12_removing_a_chunk_keeps_others_of_its_shard():
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, compressors=[], **DRAFT)
    z[:2, 0] = 7
    z[0, 0] = -1
    shard = np.array([7, -1], "<i2").tobytes() + index(None, None, (0, 4), None)
    assert store["data/a/c0/0"] == shard


@pytest.mark.parametrize(("entry", "root"), [(ENTRY, ""), (OLDER_ENTRY, "root/")])
def test_s13_the_bytes_of_the_sample_are_read(entry, root):
    assert len(SAMPLE) == 80
    made = (
        document
        if entry is ENTRY
        else lambda: older((6, 6), (1, 2), "<i2", -1, storage_transformers=[sharding(2, 2)])
    )
    store = stored(made(), {"c0/0": SAMPLE}, entry)
    z = zarrdask.open_array(store, "a")
    assert (z.chunks, z.shards) == ((1, 2), (2, 4))
    assert z[:2, :4].tolist() == VALUES[:2, :4].tolist()
    assert (z[2:] == -1).all()
    assert zarrdask.from_zarr(store, "a")[:2, :4].compute().tolist() == VALUES[:2, :4].tolist()
    writable = zarrdask.open_array(store, "a", mode="r+")
    writable[:2, :4] = VALUES[:2, :4]
    # The same size, though others order the chunks in another way.
    assert len(store[f"data/{root}a/c0/0"]) == 80
    assert zarrdask.open_array(store, "a")[:2, :4].tolist() == VALUES[:2, :4].tolist()


# ---- stacks


class Inverting:
    """A transformer that inverts every byte of the chunks."""

    def __init__(self, mask=255):
        self.mask = mask

    @classmethod
    def from_configuration(cls, configuration):
        return cls(configuration.get("mask", 255))

    def wrap(self, store, prefix, keys, counts):
        return Inverted(store, prefix, self.mask)

    def to_json(self):
        return {"name": NOBODY, "configuration": {"type": "xor", "mask": self.mask}}

    def __eq__(self, other):
        return isinstance(other, Inverting) and self.mask == other.mask


class Inverted(MemoryStore):
    def __init__(self, store, prefix, mask):
        super().__init__()
        self.store, self.prefix, self.mask = store, prefix, mask

    def get(self, key):
        found = self.store.get(key)
        return None if found is None else bytes(n ^ self.mask for n in found)

    def set(self, key, value):
        self.store.set(key, bytes(n ^ self.mask for n in memoryview(value)))

    def erase(self, key):
        self.store.erase(key)

    def list_prefix(self, prefix):
        return self.store.list_prefix(prefix)


XOR = {"extension": NOBODY, "type": "xor", "configuration": {"mask": 255}}


@pytest.fixture
def inverting(own_registries):
    zarrdask.register.storage_transformer(NOBODY, Inverting)


@pytest.mark.usefixtures("inverting")
def test_s14_the_first_is_nearest_the_array():
    layers = [sharding(2), XOR]
    store = stored(array((4,), (1,), "uint8", 0, storage_transformers=layers))
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = [1, 2, 3, 4]
    shard = b"\1\2" + index((0, 1), (1, 1))
    assert store["data/a/c0"] == bytes(n ^ 255 for n in shard)
    assert zarrdask.open_array(store, "a")[...].tolist() == [1, 2, 3, 4]
    z.attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["storage_transformers"] == layers


@pytest.mark.usefixtures("inverting")
@pytest.mark.parametrize("layers", [[XOR, sharding(2)], [sharding(2), XOR, sharding(2)]])
def test_s14_sharding_behind_another_transformer_is_an_error(layers):
    store = stored(array((8,), (1,), "uint8", 0, storage_transformers=layers))
    with pytest.raises(UnsupportedError, match="first transformer") as caught:
        zarrdask.open_array(store, "a")
    assert caught.value.found == [item["extension"] for item in layers]


@pytest.mark.usefixtures("inverting")
def test_s14_a_stack_is_written_and_read_by_tasks(tmp_path):
    options = {"chunks": 1, "compressors": [], "storage_transformers": [sharding(4), XOR]}
    x = da.arange(1, 21, chunks=3).astype("u1")
    with dask.config.set(scheduler="threads"):
        zarrdask.to_zarr(x, tmp_path, "a", **options, **DRAFT)
        found = zarrdask.from_zarr(tmp_path, "a").compute()
    assert found.tolist() == list(range(1, 21))
    assert sorted(p.name for p in (tmp_path / "data" / "a").iterdir()) == [
        *("c0", "c1", "c2", "c3", "c4")
    ]
    array_ = zarrdask.open_array(tmp_path, "a")
    assert array_.shards == (4,)
    assert array_.nchunks_stored() == 20


def test_s14_shards_in_shards():
    layers = [sharding(2), sharding(3)]
    store = stored(array((12,), (1,), "uint8", 0, storage_transformers=layers))
    z = zarrdask.open_array(store, "a", mode="r+")
    assert (z.shards, z.chunks) == ((6,), (2,))
    z[...] = range(1, 13)
    inner = [bytes([n, n + 1]) + index((0, 1), (1, 1)) for n in (1, 3, 5)]
    size = len(inner[0])
    assert store["data/a/c0"] == b"".join(inner) + index(*((size * n, size) for n in range(3)))
    assert zarrdask.open_array(store, "a")[...].tolist() == list(range(1, 13))
    z.attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["storage_transformers"] == layers


@for_each("entry", [ENTRY, OLDER_ENTRY])
@for_each("layers", [[XOR], [XOR, sharding(2, 2)], [sharding(2, 2), XOR]])
def test_s14_an_unknown_one_is_an_error_and_never_passed_over(entry, layers):
    root = "" if entry is ENTRY else "root/"
    made = array((6, 6), (1, 2), "bool", False, storage_transformers=layers)
    store = hierarchy({f"{root}a.array": made}, entry, {f"{root}a/c0/0": SAMPLE})
    for act in (zarrdask.open, zarrdask.open_array, zarrdask.from_zarr):
        with pytest.raises(UnsupportedError) as caught:
            act(store, "a")
        assert caught.value.found == NOBODY
