"""Archives as others make them: all methods, ZIP64, and those that are damaged or hostile."""

import bz2
import io
import lzma
import struct
import tracemalloc
import zipfile
import zlib

import numcodecs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.zips import Entry, pack
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.zip.store import ZipStore

TEXT = b"all values are there " * 2000


@pytest.fixture
def opened(tmp_path):
    """Return what opens an archive that is given as bytes."""

    def open_(data):
        (tmp_path / "a.zip").write_bytes(data)
        return ZipStore(tmp_path / "a.zip")

    return open_


def everything(store):
    """Read all values, whole and in parts."""
    for key in store.list():
        store.get(key)
        list(store.get_many([key], Scratch()))
        store.get_range(key, 0, 10)
        store.get_range(key, -10)
        list(store.get_ranges(key, [(0, 4), (8, 4)], Scratch()))


def deflated(data):
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(data) + deflate.flush()


def lzma_packed(data):
    packed = lzma.compress(data, lzma.FORMAT_ALONE)
    return b"\x09\x14\x05\x00" + packed[:5] + packed[13:]


PACKED = {0: TEXT, 8: deflated(TEXT), 12: bz2.compress(TEXT), 14: lzma_packed(TEXT)}
PACKED[93] = bytes(numcodecs.Zstd().encode(TEXT))


class TestMethods:
    @pytest.mark.parametrize("method", PACKED)
    def test_values_are_unpacked_whole_and_in_parts(self, opened, method):
        entry = Entry("a/b", PACKED[method], method, size=len(TEXT), crc=zlib.crc32(TEXT))
        store = opened(pack([entry, Entry("empty")]))
        assert store.get("a/b") == TEXT
        assert [bytes(v) for v in store.get_many(["a/b", "empty"], Scratch())] == [TEXT, b""]
        assert bytes(store.get_range("a/b", 5, 7)) == TEXT[5:12]
        assert bytes(store.get_range("a/b", -5)) == TEXT[-5:]
        parts = store.get_ranges("a/b", [(0, 3), (30_000, 5)], Scratch())
        assert [bytes(part) for part in parts] == [TEXT[:3], TEXT[30_000:30_005]]

    @pytest.mark.parametrize(
        "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    )
    def test_what_zipfile_writes_is_read(self, opened, method):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.mkdir("folder")
            archive.writestr("folder/ünïcode", TEXT)
            with archive.open("later", "w", force_zip64=True) as member:
                member.write(TEXT)
        store = opened(file.getvalue())
        assert list(store.list()) == ["folder/ünïcode", "later"]
        assert store.get("folder/ünïcode") == store.get("later") == TEXT

    def test_another_method_is_an_error_that_names_it(self, opened):
        store = opened(pack([Entry("a", b"x", method=99)]))
        with pytest.raises(StoreError, match=r"a\.zip/a: .*method 99"):
            store.get("a")

    def test_an_encrypted_member_is_an_error(self, opened):
        store = opened(pack([Entry("a", b"secret value", flags=1), Entry("b", b"plain")]))
        assert store.get("b") == b"plain"
        for read in (lambda: store.get("a"), lambda: store.get_range("a", 0, 2)):
            with pytest.raises(StoreError, match="encrypted"):
                read()


class TestDirectory:
    def test_numbers_that_need_64_bits(self, opened):
        store = opened(pack([Entry("first", b"1"), Entry("a", b"value", wide=True)]))
        assert store.get("a") == b"value"

    def test_the_last_of_several_members_of_a_name_counts(self, opened):
        store = opened(pack([Entry("a", b"old"), Entry("b", b"2"), Entry("a", b"newer")]))
        assert (store.get("a"), list(store.list())) == (b"newer", ["a", "b"])

    def test_what_precedes_an_archive_is_passed_over(self, opened):
        store = opened(pack([Entry("a", b"value")], prefix=b"#!/bin/sh unpack" * 9))
        assert store.get("a") == b"value"

    def test_a_comment(self, opened):
        data = pack([Entry("a", b"value")])
        store = opened(data[:-2] + struct.pack("<H", 30) + b"c" * 30)
        assert store.get("a") == b"value"

    def test_a_long_extra_field_of_a_local_header(self, opened):
        extra = struct.pack("<2H", 0x9999, 500) + bytes(500)
        store = opened(pack([Entry("a", b"value", local_extra=extra), Entry("b", b"2")]))
        values = [bytes(value) for value in store.get_many(["a", "b"], Scratch())]
        assert (values, bytes(store.get_range("a", 1, 2))) == ([b"value", b"2"], b"al")

    def test_folders_are_no_keys(self, opened):
        store = opened(pack([Entry("a/"), Entry("a/b/"), Entry("a/b/c", b"1")]))
        assert (list(store.list()), store.list_dir("a/")) == (["a/b/c"], ([], ["b"]))


class TestHostile:
    @pytest.mark.parametrize(
        "name",
        ["../a", "a/../../b", "..", "/etc/passwd", "a//b", "./a", "a\\b", "C:/a", "a\0b", "a/.."],
    )
    def test_names_that_lead_elsewhere(self, opened, name):
        with pytest.raises(StoreError, match=r"a\.zip: .*name") as caught:
            everything(opened(pack([Entry("fine", b"1"), Entry(name, b"2")])))
        assert caught.value.found == name

    def test_a_name_in_an_extra_field_does_not_count(self, opened):
        field = struct.pack("<BL", 1, zlib.crc32(b"a")) + b"../b"
        member = zipfile.ZipInfo("a")
        member.extra = struct.pack("<2H", 0x7075, len(field)) + field
        with zipfile.ZipFile(data := io.BytesIO(), "w") as archive:
            archive.writestr(member, b"value")
        store = opened(data.getvalue())
        store.set("b", b"2")
        assert (next(store.list()), store.get("a")) == ("a", b"value")

    @pytest.mark.parametrize("offset", [0, 1, 30, 33])
    def test_members_that_overlap(self, opened, offset):
        entries = [Entry("a", b"x" * 100), Entry("b", b"x" * 50, offset=offset)]
        with pytest.raises(StoreError, match=r"a\.zip/\w: .*overlap"):
            everything(opened(pack(entries)))

    def test_a_member_that_reaches_into_the_directory(self, opened):
        with pytest.raises(StoreError, match="overlap"):
            everything(opened(pack([Entry("a", b"x" * 9, packed=40, size=40)])))

    def test_a_local_header_that_is_longer_than_its_place(self, opened):
        data = bytearray(pack([Entry("a", b"x" * 9), Entry("b", b"y")]))
        data[28:30] = struct.pack("<H", 20)  # the length of the extra field
        with pytest.raises(StoreError, match=r"a\.zip/a: .*CRC-32"):
            everything(opened(bytes(data)))

    @pytest.mark.parametrize("local_name", ["b", "longer"])
    def test_a_local_header_of_another_name(self, opened, local_name):
        with pytest.raises(StoreError, match=r"a\.zip/a: .*damaged"):
            everything(opened(pack([Entry("a", b"value", local_name=local_name)])))

    @pytest.mark.parametrize(("method", "size"), [(8, 2**33), (8, 10**6), (12, 2**31), (14, 2**40)])
    def test_a_member_that_claims_to_be_huge(self, opened, method, size):
        size = min(size, 2**32 - 2)
        store = opened(pack([Entry("a", PACKED[method][:50], method, size=size)]))
        with pytest.raises(StoreError, match=r"a\.zip/a: .*decompressed"):
            store.get("a")

    @pytest.mark.parametrize("method", PACKED)
    @pytest.mark.parametrize("size", [0, 10, len(TEXT) - 1, len(TEXT) + 1])
    def test_a_member_of_another_size_than_the_directory_says(self, opened, method, size):
        entry = Entry("a", PACKED[method], method, size=size, crc=zlib.crc32(TEXT))
        store = opened(pack([entry]))
        for read in (
            lambda: store.get("a"),
            lambda: list(store.get_many(["a"], Scratch())),
            lambda: store.get_range("a", 0, 4),
            lambda: list(store.get_ranges("a", [(0, 4)], Scratch())),
        ):
            with pytest.raises(StoreError, match=r"a\.zip/a: "):
                read()

    def test_a_bomb_is_not_decompressed_beyond_the_size_that_it_claims(self, opened):
        zeros = bytes(2**24)
        bombs = [(8, deflated(zeros)), (12, bz2.compress(zeros))]
        bombs.append((93, bytes(numcodecs.Zstd().encode(zeros))))
        entries = [Entry(str(method), data, method, size=10) for method, data in bombs]
        store = opened(pack(entries))
        tracemalloc.start()
        try:
            for method, _ in bombs:
                with pytest.raises(StoreError, match=rf"a\.zip/{method}: "):
                    store.get(str(method))
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()

    def test_a_dictionary_is_no_larger_than_the_value(self, opened, monkeypatch):
        sizes, decompressor = [], lzma.LZMADecompressor

        def noted(form, filters):
            sizes.append(filters[0]["dict_size"])
            return decompressor(form, filters=filters)

        data = bytearray(PACKED[14])
        data[5:9] = struct.pack("<L", 2**32 - 1)
        monkeypatch.setattr(lzma, "LZMADecompressor", noted)
        entry = Entry("a", bytes(data), 14, size=len(TEXT), crc=zlib.crc32(TEXT))
        assert opened(pack([entry])).get("a") == TEXT
        assert sizes == [len(TEXT)]

    @pytest.mark.parametrize("method", PACKED)
    def test_a_wrong_checksum(self, opened, method):
        store = opened(pack([Entry("a", PACKED[method], method, size=len(TEXT), crc=1)]))
        for read in (store.get, lambda key: list(store.get_many([key], Scratch()))):
            with pytest.raises(StoreError, match=r"a\.zip/a: .*CRC-32"):
                read("a")

    @pytest.mark.parametrize("method", [8, 12, 14, 93])
    def test_compressed_bytes_that_are_cut_off(self, opened, method):
        half = PACKED[method][: len(PACKED[method]) // 2]
        with pytest.raises(StoreError, match=r"a\.zip/a: "):
            opened(pack([Entry("a", half, method, size=len(TEXT))])).get("a")

    def test_a_comment_that_looks_like_an_end_is_not_an_empty_archive(self, opened):
        comment = b"PK\5\6" + bytes(30)
        data = pack([Entry("a", b"value")])
        with pytest.raises(StoreError, match=r"a\.zip: .*damaged"):
            opened(data[:-2] + struct.pack("<H", len(comment)) + comment).get("a")

    def test_an_archive_that_is_cut_off_anywhere(self, opened):
        data = pack([Entry("a", b"one"), Entry("b/c", b"two")])
        for length in range(len(data)):
            with pytest.raises(StoreError, match=r"a\.zip"):
                opened(data[:length]).get("a")

    @pytest.mark.parametrize("data", [b"", b"something else", bytes(100_000)])
    def test_something_else_than_an_archive(self, opened, data):
        with pytest.raises(StoreError, match=r"a\.zip: .*not a zip archive"):
            opened(data).get("a")

    @given(data=st.data())
    def test_changed_bytes_are_the_same_values_or_typed_errors(self, data, tmp_path_factory):
        entries = [Entry("a/b", b"first value"), Entry("c", PACKED[8], 8, size=len(TEXT))]
        entries[1].crc = zlib.crc32(TEXT)
        archive = bytearray(pack(entries))
        for _ in range(data.draw(st.integers(1, 4))):
            archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("z") / "a.zip"
        path.write_bytes(bytes(archive))
        try:
            store = ZipStore(path)
            values = {key: store.get(key) for key in store.list()}
            everything(store)
        except zarrdask.ZarrdaskError:
            return
        assert set(values.values()) <= {b"first value", TEXT, b""}
