"""Chunks, shards and chunks in shards that are damaged, and what is said of each."""

import struct

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, dump, v3
from tests.storage.faults import Faults, FaultyStore
from tests.tools.verification.damage import FORMATS, change, flip, key_of, kinds, make, told
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.memory import MemoryStore
from zarrdask.tools.verification.check import check_unit

EMPTY = 2**64 - 1


class TestDamage:
    @for_each("zarr_format", FORMATS)
    @for_each("codec", ["gzip", "zlib", "zstd", "blosc", "bz2", ()])
    def test_a_truncated_unit_is_named(self, zarr_format, codec):
        if codec in ("zlib", "bz2") and zarr_format != 2:
            codec = "gzip"  # only v2 has these
        if codec == "zstd" and str(zarr_format).startswith("v3-draft"):
            codec = "gzip"
        store = {}
        z = make(store, zarr_format, compressors=codec)
        key = key_of(z, 2)
        change(store, key, lambda data: data[:-1])
        report = zarrdask.verify(store)
        assert not report.ok
        assert told(report) == [("truncated", "g/a", key)]
        assert report.bad == {"g/a": ((2,),)}

    def test_an_empty_value_is_truncated(self):
        store = {}
        make(store)
        store["g/a/c/2"] = b""
        assert kinds(zarrdask.verify(store)) == ["truncated"]

    @for_each("zarr_format", FORMATS)
    def test_a_flipped_byte_is_found(self, zarr_format):
        store = {}
        z = make(store, zarr_format)
        key = key_of(z, 2)
        change(store, key, flip)
        assert told(zarrdask.verify(store)) == [("corrupt", "g/a", key)]

    def test_a_checksum_tells_of_swapped_bytes(self):
        store = {}
        make(store, compressors="crc32c")
        change(store, "g/a/c/2", lambda d: d[4:8] + d[:4] + d[8:])
        report = zarrdask.verify(store)
        assert told(report) == [("corrupt", "g/a", "g/a/c/2")]
        assert "the checksum does not match" in report.problems[0].message

    def test_a_unit_of_another_array_is_found(self):
        store = {}
        make(store, compressors=())
        store["g/a/c/2"] = bytes(40)
        report = zarrdask.verify(store)
        assert told(report) == [("corrupt", "g/a", "g/a/c/2")]
        assert "wrong size" in report.problems[0].message

    def test_a_unit_that_may_not_be_read(self):
        store = FaultyStore(MemoryStore(), Faults())
        make(store)

        class Denied(FaultyStore):
            def get(self, key):
                if key.endswith("c/2"):
                    raise zarrdask.errors.ReadOnlyError("denied", key=key)
                return super().get(key)

        report = zarrdask.verify(Denied(store.inner, Faults()))
        assert told(report) == [("unreadable", "g/a", "g/a/c/2")]
        assert report.arrays[0].stored == 9

    @for_each("zarr_format", FORMATS)
    def test_keys_that_belong_to_nothing(self, zarr_format):
        store = {}
        z = make(store, zarr_format)
        outside = key_of(z, 10)
        junk = outside.removesuffix("10") + "junk"
        store |= {outside: b"1", junk: b"2", "g/what": b"3"}
        report = zarrdask.verify(store)
        assert report.ok
        assert {(p.kind, p.key) for p in report.problems} == {
            ("extra", outside),
            ("extra", junk),
            ("extra", "g/what"),
        }

    def test_what_a_write_left_in_a_directory(self, tmp_path):
        root = tmp_path / "a"
        make(root)
        (root / "g/a/c/.zarrdask-ab-1-2.partial").write_bytes(b"half")
        (root / "g/.zarrdask-0123456789abcdef.partial").mkdir()
        (root / "g/.zarrdask-0123456789abcdef.partial/zarr.json").write_bytes(b"{}")
        (root / "g/b/.zarrdask-rewrite").mkdir(parents=True)
        (root / "g/b/.zarrdask-rewrite/plan.json").write_bytes(b"{}")
        (tmp_path / ".zarrdask-0123456789abcdee.partial").mkdir()
        report = zarrdask.verify(root)
        assert report.ok
        assert set(kinds(report)) == {"partial"}
        assert {problem.key for problem in report.problems} == {
            "../.zarrdask-0123456789abcdee.partial",
            "g/.zarrdask-0123456789abcdef.partial",
            "g/a/c/.zarrdask-ab-1-2.partial",
            "g/b/.zarrdask-rewrite",
        }

    def test_documents_of_netcdf_are_no_strays(self):
        store = {}
        make(store, 2)
        store |= {"g/.nczgroup": b"{}", "g/a/.nczarray": b"{}"}
        assert not zarrdask.verify(store).problems


class TestShards:
    def store(self, **options):
        z = zarrdask.create_array(
            {},
            shape=(4, 4),
            dtype="u2",
            chunks=(2, 2),
            shards=(4, 4),
            compressors="crc32c",
            **options,
        )
        z[...] = np.arange(16).reshape(4, 4)
        return z.store.values

    def test_each_damaged_chunk_is_named(self):
        store = self.store()
        change(store, "c/0/0", lambda d: b"?" + d[1:12] + b"?" + d[13:])
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt", "corrupt"]
        assert "inner chunk (0, 0): codec crc32c" in report.problems[0].message
        assert "inner chunk (0, 1): codec crc32c" in report.problems[1].message
        assert report.bad == {"": ((0, 0),)}
        assert report.arrays[0].chunks == 4

    def test_a_damaged_index(self):
        store = self.store()
        change(store, "c/0/0", lambda d: d[:-1] + bytes([d[-1] ^ 1]))
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt"]
        assert "shard index: codec crc32c" in report.problems[0].message

    def test_a_shard_shorter_than_its_index(self):
        store = self.store()
        change(store, "c/0/0", lambda d: d[:20])
        assert kinds(zarrdask.verify(store)) == ["truncated"]

    def indexed(self, entries, body=bytes(8)):
        """Store a shard of four chunks of two bytes, and an index without checksum before it."""
        index = struct.pack("<8Q", *(n for entry in entries for n in entry))
        inner = {"chunk_shape": [1], "codecs": [LITTLE], "index_codecs": [LITTLE]}
        codec = {
            "name": "sharding_indexed",
            "configuration": inner | {"index_location": "start"},
        }
        document = v3((4,), (4,), codecs=[codec])
        return {"zarr.json": dump(document), "c/0": index + body}

    def test_ranges_that_overlap_are_noted(self):
        store = self.indexed([(64, 2), (65, 2), (68, 2), (10, 2)])
        report = zarrdask.verify(store)
        assert report.ok
        assert kinds(report) == ["overlap", "overlap"]
        assert (
            report.problems[0].message
            == "inner chunk (3,): bytes 10 to 12 also belong to the index"
        )
        assert "inner chunk (1,): bytes 65 to 67 also belong to inner chunk (0,)" in str(report)
        assert not zarrdask.verify(store, strict=True).ok

    def test_ranges_outside_are_truncated(self):
        store = self.indexed([(64, 2), (66, 2), (68, 2), (71, 2)])
        report = zarrdask.verify(store)
        assert kinds(report) == ["truncated"]
        assert "inner chunk (3,): the index of the shard points outside it" in str(report)

    def test_impossible_entries_are_corrupt(self):
        store = self.indexed([(64, 2), (66, 2), (EMPTY, 2), (EMPTY, EMPTY)])
        report = zarrdask.verify(store)
        assert kinds(report) == ["corrupt"]
        assert "inner chunk (2,): invalid entry in the shard index" in str(report)
        assert report.arrays[0].chunks == 2

    def test_a_shard_of_nothing_but_an_index_is_fill_only(self):
        store = self.indexed([(EMPTY, EMPTY)] * 4, b"")
        report = zarrdask.verify(store, every=True)
        assert kinds(report) == ["fill-only"]
        assert report.ok

    def test_shards_in_shards(self):
        inner = {"chunk_shape": [1], "codecs": [LITTLE, CRC32C], "index_codecs": [LITTLE]}
        middle = {
            "chunk_shape": [2],
            "codecs": [{"name": "sharding_indexed", "configuration": inner}],
            "index_codecs": [LITTLE],
        }
        outer = {"name": "sharding_indexed", "configuration": middle}
        store = {"zarr.json": dump(v3((4,), (4,), codecs=[outer]))}
        zarrdask.open_array(store, mode="r+")[...] = np.arange(4)
        report = zarrdask.verify(store)
        assert report.ok
        assert report.arrays[0].chunks == 3
        change(store, "c/0", lambda d: b"?" + d[1:])
        message = zarrdask.verify(store).problems[0].message
        assert message.startswith("inner chunk (0,): inner chunk (1,): codec crc32c")


def test_a_codec_that_raises_anything_makes_a_unit_corrupt(monkeypatch):
    z = make({})
    chunks = chunks_of(z)

    def fail(self, data, memory=None):
        raise LookupError("what?")

    monkeypatch.setattr(type(chunks.metadata.pipeline), "decode", fail)
    (fault,) = check_unit(chunks, (0,)).faults
    assert fault == ("corrupt", "LookupError: what?")


def test_a_lack_of_memory_is_no_fault_of_the_unit(monkeypatch):
    chunks = chunks_of(make({}))

    def fail(self, data, memory=None):
        raise MemoryError

    monkeypatch.setattr(type(chunks.metadata.pipeline), "decode", fail)
    with pytest.raises(MemoryError):
        check_unit(chunks, (0,))
