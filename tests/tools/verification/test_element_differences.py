"""Elements of two arrays that differ, block by block."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.faults import Faults, FaultyStore
from tests.tools.verification.arrays import VALUES, make
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.memory import MemoryStore
from zarrdask.tools.verification.element_differences import block_shape, blocks, differing

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


class TestElements:
    @for_each("zarr_format", FORMATS)
    @for_each("chunks", [(1, 7), (5, 1), (2, 5)])
    def test_the_same_in_any_format_and_chunks(self, zarr_format, chunks):
        a, b = make(VALUES), make(VALUES, chunks=chunks, zarr_format=zarr_format)
        found = zarrdask.compare(a, b)
        assert found.ok, found
        assert [each.size for each in found.arrays] == [35]

    def test_shards_rectilinear_chunks_and_byte_order(self):
        a = make(VALUES.astype(">f4"), zarr_format=2, order="F")
        assert zarrdask.compare(a, make(VALUES, chunks=((1, 4), (3, 3, 1)))).ok
        assert zarrdask.compare(a, make(VALUES, chunks=(1, 1), shards=(4, 4))).ok

    def test_the_first_that_differs_and_how_many(self):
        a, b = make(VALUES), make(VALUES, chunks=(2, 2))
        for index in ((4, 0), (3, 6), (3, 5)):
            b[index] = -1
        (found,) = zarrdask.compare(a, b).arrays
        assert (found.differing, found.first) == (3, (3, 5))
        assert found.values == ("27.0", "-1.0")
        assert not zarrdask.compare(a, b).same_elements

    def test_every_bit_counts(self):
        a = np.array([0.0, np.nan, np.nan, 1.0])
        b = a.copy()
        assert zarrdask.compare(make(a), make(b)).ok
        b[0] = -0.0
        b[1] = np.array([0x7FF8000000000001], "u8").view("f8")[0]
        (found,) = zarrdask.compare(make(a), make(b)).arrays
        assert (found.differing, found.first, found.values) == (2, (0,), ("0.0", "-0.0"))
        (found,) = zarrdask.compare(make(a[1:]), make(b[1:])).arrays
        assert found.values == (
            "nan (float64 0x7ff8000000000000)",
            "nan (float64 0x7ff8000000000001)",
        )

    @for_each("dtype", ["?", "u1", "f2", "c8", "c16", "S3", "U2", "M8[s]", "i2,f8", "V3"])
    def test_data_types(self, dtype):
        options = {"zarr_format": 2}
        values = np.frombuffer(bytes(range(1, 1 + 4 * np.dtype(dtype).itemsize)), "u1")
        values = (values % 2 if dtype == "?" else values).view(dtype)
        if dtype == "U2":
            values = np.array(["a", "b", "cd", ""], "U2")
        other = values.copy()
        other[1] = other[2]
        if dtype == "?":
            other[1] = not values[1]
        assert not differing(values, values).any()
        assert differing(values, other).tolist() == [False, True, False, False]
        assert zarrdask.compare(make(values, **options), make(values, **options)).ok
        (found,) = zarrdask.compare(make(values, **options), make(other, **options)).arrays
        assert (found.differing, found.first) == (1, (1,))

    def test_text_of_variable_length(self):
        a = zarrdask.create_array({}, shape=4, dtype="string", chunks=2)
        b = zarrdask.create_array({}, shape=4, dtype="string", chunks=3)
        a[...] = b[...] = np.array(["a", "bc", "", "d"], object)
        assert zarrdask.compare(a, b).ok
        b[2] = "x"
        (found,) = zarrdask.compare(a, b).arrays
        assert (found.differing, found.first, found.values) == (1, (2,), ("''", "'x'"))

    def test_by_value_where_the_types_differ(self):
        a, b = make(np.array([1.0, np.nan, 2.0], "f4")), make(np.array([1.0, np.nan, 3.0]))
        found = zarrdask.compare(a, b)
        assert [d.what for d in found.differences] == ["data type", "fill value"]
        assert (found.arrays[0].differing, found.arrays[0].first) == (1, (2,))
        text = make(np.array(["1", "2", "3"], "U1"), zarr_format=2)
        assert zarrdask.compare(a, text).arrays[0].differing == 3

    @pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
    def test_without_axes_or_elements(self, shape):
        values = np.ones(shape)
        assert zarrdask.compare(make(values, chunks=1), make(values, chunks=1)).ok

    def test_a_scalar_that_differs(self):
        found = zarrdask.compare(make(np.ones(()), chunks=()), make(np.zeros(()), chunks=()))
        assert (found.arrays[0].differing, found.arrays[0].first) == (1, ())

    def test_what_is_missing_is_the_fill_value(self):
        a = zarrdask.create_array({}, shape=9, dtype="i4", chunks=2, fill_value=5)
        b = make(np.full(9, 5, "i4"), fill_value=5)
        assert zarrdask.compare(a, b).ok

    def test_what_can_not_be_read_is_told(self):
        a, b = make(VALUES), make(VALUES, chunks=(2, 2))
        a.store.set("c/0/0", b"?")
        found = zarrdask.compare(a, b)
        assert not found.ok
        assert "c/0/0" in found.arrays[0].errors[0]
        assert "can't be read" in str(found)

    def test_other_shapes_are_not_compared(self):
        found = zarrdask.compare(make(VALUES), make(VALUES[1:]))
        assert not found.same_elements
        assert not found.arrays
        assert [str(each) for each in found.differences] == ["/: shape: (5, 7) and (4, 7)"]

    def test_a_store_that_can_not_be_reached_is_an_error(self):
        make(VALUES, inner := MemoryStore())

        class Gone(FaultyStore):
            def get(self, key):
                if key.startswith("c/"):
                    raise ConnectionResetError("gone")
                return super().get(key)

        from dask import config

        with (
            config.set({"zarrdask.retry-delay": 0.001}),
            pytest.raises((ConnectionResetError, zarrdask.errors.StoreError)),
        ):
            zarrdask.compare(Gone(inner, Faults()), inner, scheduler="sync")

    def test_on_a_cluster_of_two_processes(self, tmp_path, cluster_address):
        a, b = make(VALUES, tmp_path / "a"), make(VALUES, tmp_path / "b", chunks=(1, 7))
        assert zarrdask.compare(a, b, scheduler=cluster_address).ok
        b[2, 3] = 0
        found = zarrdask.compare(a, b, scheduler=cluster_address)
        assert found.arrays[0].first == (2, 3)


class TestBlocks:
    @for_each("seed", range(20))
    def test_they_cover_all_once_and_are_bounded(self, seed):
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 4)))
        a, b = (
            zarrdask.create_array(
                {},
                shape=shape,
                dtype="i4",
                chunks=tuple(int(rng.integers(1, n + 3)) for n in shape),
            )
            for _ in range(2)
        )
        most = int(rng.integers(4, 4000))
        stored = rng.random(shape) < rng.choice([0.0, 0.02, 1.0])
        for array, part in ((a, stored), (b, rng.permutation(stored))):
            array[...] = part
        seen = np.zeros(shape, int)
        for region in blocks(chunks_of(a), chunks_of(b), most):
            seen[region] += 1
            assert seen[region].size * 4 <= most
        assert (seen <= 1).all()
        assert (seen == 1)[(a[...] != 0) | (b[...] != 0)].all()

    def test_what_neither_stores_is_not_read(self):
        options = {"shape": (10**9, 10**9), "dtype": "i4", "chunks": 1000}
        a, b = (zarrdask.create_array({}, **options, zarr_format=n) for n in (2, 3))
        a[10**6, 5] = b[10**6, 5] = 7
        assert zarrdask.compare(a, b).ok
        b[10**8, 6] = 7
        assert zarrdask.compare(a, b).arrays[0].first == (10**8, 6)

    def test_all_of_it_is_if_fill_values_differ(self):
        a, b = (zarrdask.create_array({}, shape=9, dtype="i4", fill_value=n) for n in (0, 1))
        assert zarrdask.compare(a, b).arrays[0].differing == 9
        a[...] = 1
        assert zarrdask.compare(a, b).same_elements

    def test_whole_chunks_of_both_where_they_fit(self):
        assert block_shape((100, 100), ((10, 100), (100, 10)), 10000) == (100, 100)

    def test_one_element_at_least(self):
        assert block_shape((9, 9), ((3, 3), (2, 2)), 0) == (1, 1)
