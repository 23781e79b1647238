"""S.1: sharding as a storage transformer of the draft, and its shards of fixed bytes."""

import gzip
import json
import pickle
import threading

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
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
from zarrdask.compliance import strictness
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.grids.keys import DraftKeys
from zarrdask.storage.base import Scratch
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.sharding_transformer import EXAMPLE, TITLE, URI, ShardingTransformer
from zarrdask.storage.transformers import TRANSFORMERS

DRAFT = {"zarr_format": "v3-draft"}
VALUES = np.arange(36, dtype="<i2").reshape(6, 6)
OPTIONS = {"shape": (6, 6), "dtype": "<i2", "chunks": (1, 2), "shards": (2, 4), "fill_value": -1}
#: What zarr-python 2.18.7 wrote for the values above (the two lower rows are not full).
SAMPLE = bytes.fromhex("0800090002000300060007000000 0100") + index((12, 4), (4, 4), (8, 4), (0, 4))


def document(**others):
    return array((6, 6), (1, 2), "int16", -1, storage_transformers=[sharding(2, 2)], **others)


def opened(chunks=None, **others):
    return zarrdask.open_array(stored(document(**others), chunks), "a")


def seen(values=None, *per_shard, separator="/"):
    """Return the store in which the chunks of the array at a/ have values of their own."""
    counts = per_shard or (2, 2)
    store = MemoryStore({} if values is None else values)
    keys = DraftKeys(separator)
    return ShardingTransformer(counts).wrap(store, "a/", keys, (100,) * len(counts))


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
    assert zarrdask.open_array(store, "a").shards == (2,)
    assert uri in (URI, TITLE, EXAMPLE)


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


@pytest.mark.parametrize("kind", ["other", "", None, 1])
def test_s2_its_type_is_indexed(kind):
    with pytest.raises(MetadataError, match="indexed"):
        zarrdask.open(stored(array(storage_transformers=[sharding(2, kind=kind)])), "a")


@pytest.mark.parametrize("counts", [[], [2], [2, 2, 2], [2, 0], [2, -1], [2, 1.0], [2, "2"]])
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
    values = {}
    store = seen(values, 32, 2, separator=separator)
    for i in (96, 127):
        for j in (18, 19):
            store.set(f"a/c{i}{separator}{j}", b"x")
    assert list(values) == [f"a/c3{separator}9"]


def test_s3_only_chunks_are_mapped():
    values = {}
    store = seen(values)
    for key in ("a/array.json", "b/c0/0", "a/cx", "group.json"):
        store.set(key, b"x")
        assert store.get(key) == b"x"
    assert sorted(values) == ["a/array.json", "a/cx", "b/c0/0", "group.json"]


# ---- shards


def test_s4_a_shard_is_chunks_and_the_index_at_the_end():
    values = {}
    store = seen(values)
    store.set("a/c0/0", b"one")
    store.set("a/c1/1", b"three")
    body = b"onethree"
    assert values["a/c0/0"] == body + index((0, 3), None, None, (3, 5))
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, compressors=[], **DRAFT)
    z[:2, :4] = 7
    body = np.full(8, 7, "<i2").tobytes()
    assert store["data/a/c0/0"] == body + index((0, 4), (4, 4), (8, 4), (12, 4))


@pytest.mark.parametrize(("counts", "size"), [((2, 2), 64), ((32, 2), 1024), ((1,), 16), ((), 16)])
def test_s5_the_index_has_16_bytes_a_chunk(counts, size):
    values = {}
    store = seen(values, *counts) if counts else None
    if counts:
        store.set("a/c" + "/".join(["0"] * len(counts)), b"12345")
        assert len(values.popitem()[1]) == 5 + size
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
    shard = values["data/a/" + DraftKeys().key((0,) * len(counts))]
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


@pytest.mark.parametrize(
    "entry",
    [(0, 2**64 - 1), (2**64 - 1, 4), (65, 4), (64, 5), (2**62, 2**62), (0, 69)],
)
@pytest.mark.parametrize("below", [False, True])
def test_s8_what_points_beyond_the_value_is_an_error(entry, below):
    shard = b"\1\0\2\0" + index(entry, (0, 4), None, None)
    if below:
        store = seen({"a/c0/0": shard})
        assert store.get("a/c0/1") == b"\1\0\2\0"
        with pytest.raises(CodecError, match="shard"):
            store.get("a/c0/0")
        with pytest.raises(CodecError, match="shard"):
            list(store.get_many(["a/c0/0"], Scratch()))
        return
    found = opened({"c0/0": shard})
    assert found[0, 2:4].tolist() == [1, 2]
    with pytest.raises(CodecError, match=r"a/c0/0"):
        found[0, :2]


def test_s8_a_value_that_is_shorter_than_the_index_is_an_error():
    with pytest.raises(CodecError, match="shorter"):
        opened({"c0/0": bytes(63)})[0, 0]
    with pytest.raises(CodecError, match="shorter"):
        seen({"a/c0/0": bytes(63)}).get("a/c0/0")


def test_s9_a_shard_without_chunks_is_erased():
    store = {}
    z = zarrdask.create_array(store, "a", **OPTIONS, **DRAFT)
    z[:2, :4] = 7
    z[:2, :2] = -1
    assert z.nchunks_stored() == 2
    z[:2, 2:4] = -1
    assert not any(key.startswith("data/") for key in store)
    values = {}
    below = seen(values)
    below.set("a/c0/0", b"1")
    below.set("a/c1/0", b"2")
    below.erase("a/c0/0")
    assert values["a/c0/0"] == b"2" + index(None, None, (0, 1), None)
    below.erase("a/c0/0")
    below.erase("a/c1/0")
    assert values == {}


def test_s10_writing_one_chunk_keeps_the_others():
    store = stored(document(), {"c0/0": SAMPLE})
    z = zarrdask.open_array(store, "a", mode="r+")
    before = z[...].copy()
    z[0, 2:4] = 77
    before[0, 2:4] = 77
    assert zarrdask.open_array(store, "a")[...].tolist() == before.tolist()
    below = seen({"a/c0/0": SAMPLE})
    below.set("a/c0/1", b"longer than it was")
    assert [below.get(f"a/c{i}/{j}") for i in (0, 1) for j in (0, 1)] == [
        SAMPLE[12:16],
        b"longer than it was",
        SAMPLE[8:12],
        SAMPLE[0:4],
    ]


def test_s10_threads_that_write_chunks_of_one_shard_lose_none():
    values = {}
    store = seen(values, 8, 8)

    def write(i):
        for j in range(8):
            store.set(f"a/c{i}/{j}", f"{i}{j}".encode())

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {store.get(f"a/c{i}/{j}").decode() for i in range(8) for j in range(8)}
    assert len(found) == 64


class Counting(MemoryStore):
    """A store with latency that records the ranges that it is asked for."""

    seekable = False

    def __init__(self, values):
        super().__init__(values)
        self.ranges = []

    def get_range(self, key, start, length=None):
        self.ranges.append((key, start, length))
        return super().get_range(key, start, length)

    def get_ranges(self, key, ranges, scratch):
        self.ranges += [(key, *each) for each in ranges]
        return super().get_ranges(key, ranges, scratch)


def test_s11_the_index_is_read_and_then_what_is_wanted():
    store = Counting(stored(document(), {"c0/0": SAMPLE}))
    z = zarrdask.open_array(store, "a")
    store.ranges.clear()
    assert z[0, 2] == 2
    assert store.ranges == [("data/a/c0/0", -64, 64), ("data/a/c0/0", 4, 4)]


def test_s11_the_indices_of_many_chunks_are_read_together():
    shards = Counting({"a/c0/0": SAMPLE, "a/c1/0": SAMPLE})
    store = ShardingTransformer((2, 2)).wrap(shards, "a/", DraftKeys(), (3, 3))
    keys = ["a/c3/1", "a/c0/0", "a/c9/9", "a/c0/1", "other"]
    found = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
    assert found == [SAMPLE[:4], SAMPLE[12:16], None, SAMPLE[4:8], None]
    assert [each for each in shards.ranges if each[1] == -64] == shards.ranges[:3]
    assert bytes(store.get_range("a/c0/0", 1, 2)) == SAMPLE[13:15]
    assert bytes(store.get_range("a/c0/0", -1)) == SAMPLE[15:16]
    assert bytes(store.get_range("a/c0/0", 2)) == SAMPLE[14:16]
    assert store.get_range("a/c9/9", 0, 1) is None
    parts = [(0, 1), (1, 3)]
    found = [bytes(v) for v in store.get_ranges("a/c0/0", parts, Scratch())]
    assert found == [SAMPLE[12:13], SAMPLE[13:16]]
    assert list(store.get_ranges("a/c9/9", parts, Scratch())) == [None, None]


@pytest.mark.parametrize("separator", ["/", "."])
def test_s12_listing_gives_the_keys_of_chunks(separator):
    values = {"b/c0": b"1", "a/other": b"1"}
    store = seen(values, 2, 2, separator=separator)
    keys = [f"a/c{i}{separator}{j}" for i, j in ((0, 0), (1, 3), (5, 2), (5, 3))]
    for key in keys:
        store.set(key, key.encode())
    assert sorted(store.list_prefix("a/")) == sorted([*keys, "a/other"])
    assert sorted(store.list()) == sorted([*keys, "a/other", "b/c0"])
    assert store.list_dir("b/") == (["c0"], [])
    if separator == ".":
        assert store.list_dir("a/") == (["c0.0", "c1.3", "c5.2", "c5.3", "other"], [])
        return
    assert store.list_dir("a/") == (["other"], ["c0", "c1", "c5"])
    assert store.list_dir("a/c5/") == (["2", "3"], [])
    assert sorted(store.list_prefix("a/c5/")) == ["a/c5/2", "a/c5/3"]


def test_s12_erasing_a_prefix_erases_the_chunks_below_it():
    values = {"a/other": b"1"}
    store = seen(values)
    for key in ("a/c0/0", "a/c1/0", "a/c2/0"):
        store.set(key, b"1")
    store.erase_prefix("a/c1/")
    assert sorted(store.list()) == ["a/c0/0", "a/c2/0", "a/other"]
    store.erase_prefix("a/")
    assert values == {}


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
def inverting(monkeypatch):
    monkeypatch.setattr(TRANSFORMERS, "_registered", {})
    zarrdask.register.storage_transformer(NOBODY, Inverting)


@pytest.mark.usefixtures("inverting")
@pytest.mark.parametrize("layers", [[XOR, sharding(2)], [sharding(2), XOR]])
def test_s14_the_first_is_nearest_the_array(layers):
    store = stored(array((4,), (1,), "uint8", 0, storage_transformers=layers))
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = [1, 2, 3, 4]
    first = index((0, 1), (1, 1))
    chunks_inverted = b"\xfe\xfd" + first
    shard_inverted = bytes(n ^ 255 for n in b"\1\2" + first)
    expected = chunks_inverted if layers[0] == XOR else shard_inverted
    assert store["data/a/c0"] == expected
    assert zarrdask.open_array(store, "a")[...].tolist() == [1, 2, 3, 4]
    z.attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["storage_transformers"] == layers


@pytest.mark.usefixtures("inverting")
def test_s14_shards_may_lie_in_shards_behind_another_transformer():
    layers = [XOR, sharding(2), sharding(2)]
    store = stored(array((8,), (1,), "uint8", 0, storage_transformers=layers))
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = np.arange(8)  # the first shard has the same key as the one that it lies in
    assert zarrdask.open_array(store, "a")[...].tolist() == list(range(8))
    assert sorted(key for key in store if key.startswith("data/")) == ["data/a/c0", "data/a/c1"]


@pytest.mark.usefixtures("inverting")
def test_s14_a_stack_is_written_and_read_by_tasks(tmp_path):
    options = {"chunks": 1, "compressors": [], "storage_transformers": [XOR, sharding(4)]}
    x = da.arange(1, 21, chunks=3).astype("u1")
    with dask.config.set(scheduler="threads"):
        zarrdask.to_zarr(x, tmp_path, "a", **options, **DRAFT)
        found = zarrdask.from_zarr(tmp_path, "a").compute()
    assert found.tolist() == list(range(1, 21))
    assert sorted(p.name for p in (tmp_path / "data" / "a").iterdir()) == [
        *("c0", "c1", "c2", "c3", "c4")
    ]
    array_ = zarrdask.open_array(tmp_path, "a")
    assert array_.metadata.write_axes == (4,)
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


@pytest.mark.parametrize("entry", [ENTRY, OLDER_ENTRY])
@pytest.mark.parametrize("layers", [[XOR], [XOR, sharding(2, 2)], [sharding(2, 2), XOR]])
def test_s14_an_unknown_one_is_an_error_and_never_passed_over(entry, layers):
    root = "" if entry is ENTRY else "root/"
    made = array((6, 6), (1, 2), "bool", False, storage_transformers=layers)
    store = hierarchy({f"{root}a.array": made}, entry, {f"{root}a/c0/0": SAMPLE})
    for act in (zarrdask.open, zarrdask.open_array, zarrdask.from_zarr):
        with pytest.raises(UnsupportedError) as caught:
            act(store, "a")
        assert caught.value.found == NOBODY


def test_s14_a_transformer_keeps_no_state(tmp_path):
    store = LocalStore(str(tmp_path))
    for _ in range(2):
        view = ShardingTransformer((2,)).wrap(store, "a/", DraftKeys(), (4,))
        view.set(f"a/c{len(list(view.list()))}", b"x")
    view = pickle.loads(pickle.dumps(view))
    assert sorted(view.list()) == ["a/c0", "a/c1"]
