"""Encoded bytes that are moved as they are: whole units, and the inner chunks of shards."""

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.storage.faults import Faults, FaultyStore
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import CodecError, StoreError
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.node_layout import PROTOCOL
from zarrdask.parallel.rewrite.copying.move import (
    TransferResult,
    encoded_transfer,
    move_inner,
    move_units,
    recode,
    recode_grid,
)
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.transfer import copy_values
from zarrdask.storage.zarr.draft_store import DraftStore

SHAPE = (10, 12)
VALUES = np.arange(1, 121, dtype="i4").reshape(SHAPE)


def make(store, *, holes=(), **options):
    """Return a stored array, of which some regions hold the fill value."""
    options = {"shape": SHAPE, "chunks": (2, 3), "dtype": "i4", "compressors": "gzip"} | options
    z = zarrdask.create_array(store, **options)
    values = VALUES.copy()
    for hole in holes:
        values[hole] = 0
    z[...] = values
    return chunks_of(z)


def beside(source, store, **changes):
    """Return the units of a converted array that has no chunks yet."""
    return StoredChunks(store, "", convert(source.metadata, **changes))


def read(chunks):
    return zarrdask.Array(NodePath.of(chunks), chunks.metadata)[...]


def move(source, target):
    """Move everything."""
    how = encoded_transfer(source.metadata, target.metadata)
    if how == "units":
        return move_units(source, target, list(StoredUnits(source).indices()))
    assert how == "inner"
    if target.metadata.shard is None:
        return move_inner(source, target, list(StoredUnits(source).indices()))
    return move_inner(source, target, list(target.metadata.grid.indices()))


class TestUnits:
    @pytest.mark.parametrize("local", [True, False])
    def test_they_are_the_same_bytes_under_other_keys(self, tmp_path, local):
        source = make(LocalStore(str(tmp_path / "a")) if local else MemoryStore(), zarr_format=2)
        target = beside(source, LocalStore(str(tmp_path / "b")), zarr_format=3)
        done = move(source, target)
        assert done.units == 20
        assert target.store.get("c/1/2") == source.store.get("1.2")
        sizes = [len(source.store.get(source.key(i))) for i in StoredUnits(source).indices()]
        assert done.read == done.written == sum(sizes)
        np.testing.assert_array_equal(read(target), VALUES)

    def test_those_that_are_not_there_stay_away(self):
        source = make(MemoryStore(), zarr_format=2, holes=[np.s_[:4]])
        target = beside(source, MemoryStore(), zarr_format=3)
        everything = list(source.metadata.grid.indices())
        assert move_units(source, target, everything).units == 12
        assert sorted(StoredUnits(target).indices()) == sorted(StoredUnits(source).indices())

    def test_twice_is_as_good_as_once(self, tmp_path):
        source = make(tmp_path / "a", zarr_format=2)
        target = beside(source, LocalStore(str(tmp_path / "b")), zarr_format=3)
        move(source, target)
        assert move(source, target).units == 20
        np.testing.assert_array_equal(read(target), VALUES)

    @for_each(
        "changes",
        [
            {"compressors": "zstd"},
            {"compressors": {"id": "gzip", "level": 9}},
            {"chunks": (2, 6)},
            {"dtype": "i8"},
            {"dtype": ">i4"},
            {"fill_value": 3},
        ],
    )
    def test_other_bytes_or_another_fill_value_are_not_moved(self, changes):
        source = make(MemoryStore(), zarr_format=2)
        assert (
            encoded_transfer(source.metadata, beside(source, MemoryStore(), **changes).metadata)
            is None
        )
        assert encoded_transfer(source.metadata, beside(source, MemoryStore()).metadata) == "units"

    def test_another_shape_is_not_moved(self):
        source = make(MemoryStore())
        target = StoredChunks(MemoryStore(), "", source.metadata.resized((8, 12)))
        assert encoded_transfer(source.metadata, target.metadata) is None

    def test_chunks_of_several_shapes(self):
        source = make(MemoryStore(), chunks=((4, 6), 3))
        target = beside(source, MemoryStore(), attributes={"a": 1})
        assert move(source, target).units == 8
        np.testing.assert_array_equal(read(target), VALUES)
        assert (
            encoded_transfer(
                source.metadata, beside(source, MemoryStore(), chunks=((6, 4), 3)).metadata
            )
            is None
        )


class TestInner:
    @for_each("shards", [(4, 6), (10, 12), (2, 3), (8, 3)])
    def test_out_of_shards(self, shards):
        source = make(MemoryStore(), shards=shards)
        target = beside(source, MemoryStore(), shards=False)
        done = move(source, target)
        assert done.units == 20
        assert target.store.get("c/1/2") == MemoryStore.get(make(MemoryStore()).store, "c/1/2")
        np.testing.assert_array_equal(read(target), VALUES)

    @pytest.mark.parametrize("shards", [(4, 6), (10, 12), (2, 3), (8, 3)])
    @pytest.mark.parametrize("local", [True, False])
    def test_into_shards(self, tmp_path, shards, local):
        source = make(MemoryStore())
        store = LocalStore(str(tmp_path)) if local else MemoryStore()
        target = beside(source, store, shards=shards)
        done = move(source, target)
        expected = make(MemoryStore(), shards=shards)
        keys = list(map(target.key, target.metadata.grid.indices()))
        assert done.units == len(keys)
        assert [store.get(key) for key in keys] == [expected.store.get(key) for key in keys]
        assert done.written == sum(len(store.get(key)) for key in keys)

    @pytest.mark.parametrize("local", [True, False])
    def test_an_index_may_stand_first(self, tmp_path, local):
        serializer = {"name": "bytes", "configuration": {"endian": "little"}}
        configuration = {
            "chunk_shape": [2, 3],
            "codecs": [serializer, "zstd"],
            "index_codecs": [serializer, "crc32c"],
            "index_location": "start",
        }
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
        source = make(MemoryStore(), chunks=(4, 6), codecs=codecs, compressors=None)
        store = LocalStore(str(tmp_path)) if local else MemoryStore()
        target = beside(source, store, shards=(10, 6))
        assert target.metadata.shard.codec.index_location == "start"
        move(source, target)
        np.testing.assert_array_equal(read(target), VALUES)

    def test_from_shards_to_others(self):
        source = make(MemoryStore(), shards=(4, 12))
        target = beside(source, MemoryStore(), shards=(6, 6))
        assert move(source, target).units == 4
        expected = make(MemoryStore(), shards=(6, 6))
        for index in target.metadata.grid.indices():
            assert target.store.get(target.key(index)) == expected.store.get(expected.key(index))

    def test_shards_of_several_shapes(self):
        source = make(MemoryStore(), shards=((4, 6), 6))
        np.testing.assert_array_equal(read(source), VALUES)
        for shards in (False, (4, 6), ((2, 8), 12)):
            target = beside(source, MemoryStore(), shards=shards)
            move(source, target)
            np.testing.assert_array_equal(read(target), VALUES)

    def test_chunks_that_are_not_there_stay_away(self, tmp_path):
        holes = [np.s_[:4, :6], np.s_[8:, 9:]]
        source = make(MemoryStore(), shards=(4, 6), holes=holes)
        plain = beside(source, MemoryStore(), shards=False)
        assert move(source, plain).units == 20 - 4 - 1
        back = beside(plain, MemoryStore(), shards=(4, 6))
        assert move(plain, back).units == 5
        local = beside(plain, LocalStore(str(tmp_path)), shards=(4, 6))
        assert move(plain, local).units == 5
        for found in (back, local):
            assert (0, 0) not in set(StoredUnits(found).indices())
            np.testing.assert_array_equal(read(found), read(source))
        np.testing.assert_array_equal(read(back), read(source))

    def test_shards_that_are_transposed_as_a_whole(self):
        inner = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [3, 2],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        }
        turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
        source = make(MemoryStore(), chunks=(4, 6), codecs=[turned, inner], compressors=None)
        np.testing.assert_array_equal(read(source), VALUES)
        for changes in ({"shards": False}, {"shards": (8, 3)}, {"zarr_format": "v3-draft"}):
            target = beside(source, MemoryStore(), **changes)
            move(source, target)
            np.testing.assert_array_equal(read(target), VALUES)

    def test_arrays_without_axes(self):
        z = zarrdask.create_array({}, shape=(), chunks=(), shards=(), dtype="i4")
        z[...] = 7
        plain = beside(chunks_of(z), MemoryStore(), shards=False)
        assert move(chunks_of(z), plain).units == 1
        back = beside(plain, MemoryStore(), shards=())
        assert move(plain, back).units == 1
        assert (read(plain), read(back)) == (7, 7)

    def test_a_damaged_shard_is_an_error_that_names_it(self):
        source = make(MemoryStore(), shards=(4, 6))
        target = beside(source, MemoryStore(), shards=False)
        source.store.set("c/1/1", source.store.get("c/1/1")[:-5])
        with pytest.raises(CodecError, match="c/1/1"):
            move(source, target)

    def test_far_away_a_shard_is_read_at_once(self):
        source = make(MemoryStore(), shards=(4, 6))
        far = StoredChunks(FaultyStore(source.store, Faults()), "", source.metadata)
        target = beside(source, MemoryStore(), shards=False)
        move(far, target)
        np.testing.assert_array_equal(read(target), VALUES)

    def test_far_away_many_are_stored_at_once(self):
        source = make(MemoryStore(), shards=(4, 6))
        inner = MemoryStore()
        target = StoredChunks(
            FaultyStore(inner, Faults()), "", beside(source, inner, shards=False).metadata
        )
        assert move(source, target).units == 20
        np.testing.assert_array_equal(read(target), VALUES)
        again = beside(source, inner)
        far = StoredChunks(FaultyStore(source.store, Faults()), "", source.metadata)
        assert move(far, again).units == 6
        np.testing.assert_array_equal(read(again), VALUES)

    def test_nothing_is_nothing(self):
        source = make(MemoryStore(), shards=(4, 6))
        assert (
            move_inner(source, beside(source, MemoryStore(), shards=False), []) == TransferResult()
        )


class TestRecoding:
    def test_blocks_are_whole_units_and_as_long_as_those_of_the_source(self):
        source = make(MemoryStore(), chunks=(4, 3))
        target = beside(source, MemoryStore(), chunks=(3, 5))
        assert recode_grid(source.metadata, target.metadata).chunk_shape == (6, 5)

    def test_blocks_do_not_grow_to_the_whole_array(self):
        options = {"shape": (30_000, 30_000), "dtype": "i4"}
        tall = zarrdask.create_array({}, chunks=(30_000, 1), **options)
        wide = zarrdask.create_array({}, chunks=(1, 30_000), **options)
        grid = recode_grid(tall.metadata, wide.metadata)
        assert 30_000 <= grid.chunk_shape[0] * grid.chunk_shape[1] <= 2**24

    def test_values_of_another_type_and_fill_value(self):
        source = make(MemoryStore(), holes=[np.s_[:2]])
        target = beside(source, MemoryStore(), dtype="f8", fill_value=-1, compressors="zstd")
        blocks = [(slice(0, 10, 1), slice(0, 12, 1))]
        assert recode(source, target, blocks, empty=False, casting=Casting.EXACT) == TransferResult(
            20, 480, 960
        )
        np.testing.assert_array_equal(read(target), read(source))

    def test_absent_objects_are_texts(self):
        options = {"dtype": object, "filters": [{"id": "vlen-utf8"}], "fill_value": 0}
        array = zarrdask.create_array({}, shape=4, chunks=2, zarr_format=2, **options)
        source = chunks_of(array)
        target = beside(source, MemoryStore(), zarr_format=3)
        assert encoded_transfer(source.metadata, target.metadata) == "units"
        recode(source, target, [(slice(0, 4, 1),)], empty=True, casting=Casting.EXACT)
        assert read(target).tolist() == [""] * 4


class TestValues:
    def test_the_kernel_copies_where_both_are_local(self, tmp_path):
        one, other = LocalStore(str(tmp_path / "a")), LocalStore(str(tmp_path / "b"))
        for key, value in (("a", b""), ("b/c", bytes(range(256)) * 999)):
            one.set(key, value)
        pairs = [("a", "x/y"), ("none", "z"), ("b/c", "c")]
        assert copy_values(one, other, pairs) == [0, 256 * 999]
        assert (other.get("x/y"), other.get("c")) == (b"", one.get("b/c"))
        assert sorted(other.list()) == ["c", "x/y"]

    def test_what_the_kernel_can_not_do_is_done_here(self, tmp_path, monkeypatch):
        def unable(*_):
            raise OSError(18, "another device")

        monkeypatch.setattr("os.copy_file_range", unable)
        one, other = LocalStore(str(tmp_path / "a")), LocalStore(str(tmp_path / "b"))
        one.set("k", b"x" * 5_000_000)
        assert copy_values(one, other, [("k", "l")]) == [5_000_000]
        assert other.get("l") == one.get("k")

    def test_a_full_disk_leaves_nothing(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(28, "no space left")

        monkeypatch.setattr("os.copy_file_range", full)
        one, other = LocalStore(str(tmp_path / "a")), LocalStore(str(tmp_path / "b"))
        one.set("k", b"x")
        with pytest.raises(StoreError, match="no space left"):
            copy_values(one, other, [("k", "l")])
        assert list((tmp_path / "b").iterdir()) == []

    def test_chunks_of_drafts_are_files_too(self, tmp_path):
        one = DraftStore(LocalStore(str(tmp_path / "a")), "", PROTOCOL)
        other = LocalStore(str(tmp_path / "b"))
        one.set("x/c0", b"1")
        one.set("s/c", b"2")
        assert copy_values(one, other, [("x/c0", "k")]) == [1]
        assert copy_values(one, other, [("s/c", "0")]) == [1]
        assert copy_values(other, one, [("0", "t/c")]) == [1]
        assert (other.get("k"), other.get("0"), one.get("t/c")) == (b"1", b"2", b"2")


@for_each("order", ["c", "f", "morton"])
@for_each("is_local", [True, False])
def test_chunks_that_become_a_shard_are_in_the_order_of_the_setting(tmp_path, order, is_local):
    source = make({}, holes=[np.s_[2:4, 3:6]], order="F")
    with dask.config.set({"zarrdask.shard-order": order}):
        store = LocalStore(tmp_path / order) if is_local else MemoryStore()
        target = beside(source, store, shards=(10, 12))
        expected = make({}, shards=(10, 12), holes=[np.s_[2:4, 3:6]], order="F")
        move(source, target)
    assert target.units.get("c/0/0") == expected.units.get("c/0/0")


GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(chunk=GRIDS, one=GRIDS, other=GRIDS, plain=st.booleans(), seed=st.integers(0, 99))
def test_any_shards_become_any_others(chunk, one, other, plain, seed):
    shape = (9, 11)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, shape, "i2") * (rng.random(shape) < 0.3)
    shards = [tuple(c * n for c, n in zip(chunk, counts, strict=True)) for counts in (one, other)]
    options = {"shape": shape, "dtype": "i2", "chunks": chunk, "compressors": "zstd"}
    z = zarrdask.create_array({}, shards=shards[0], **options)
    z[...] = values
    target = beside(chunks_of(z), MemoryStore(), shards=False if plain else shards[1])
    how = encoded_transfer(z.metadata, target.metadata)
    assert how == ("units" if not plain and shards[0] == shards[1] else "inner")
    move(chunks_of(z), target)
    np.testing.assert_array_equal(read(target), values)
    expected = zarrdask.create_array({}, shards=None if plain else shards[1], **options)
    expected[...] = values
    assert sorted(StoredUnits(target).indices()) == sorted(
        StoredUnits(chunks_of(expected)).indices()
    )
