"""Opening arrays, and nodes of one format."""

import dask
import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.covering import for_each
from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, StoreError
from zarrdask.storage.memory import MemoryStore

FORMATS = [2, 3, "v3-draft", "v3-draft-protocol"]
DOCUMENTS = {2: {".zarray", ".zattrs", ".zgroup"}, 3: {"zarr.json"}}


@pytest.fixture
def both():
    """A store in which the array "a" is of v2 and of v3."""
    values = {}
    for number in (2, 3):
        written = {}
        group = zarrdask.create_group(written, zarr_format=number)
        group.create_array("a", shape=3, dtype="u1", attributes={"format": number})
        values |= written
    return values


class Guarded(CountingStore):
    """A store that denies access to what is not there, as S3 does where listing is denied."""

    def get(self, key):
        found = super().get(key)
        if found is None:
            raise StoreError("access denied", key=key, found="PermissionError")
        return found

    def get_many(self, keys, scratch):
        return map(self.get, list(keys))


class TestOneFormat:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    @pytest.mark.parametrize(
        "verb",
        [
            lambda url, **options: zarrdask.open(url, "a", **options).attrs["format"],
            lambda url, **options: zarrdask.open_array(url, "a", **options).attrs["format"],
            lambda url, **options: zarrdask.open_group(url, **options)["a"].attrs["format"],
            lambda url, **options: zarrdask.open(url, **options)["a"].attrs["format"],
        ],
        ids=["open", "open_array", "open_group", "open a group"],
    )
    def test_nothing_else_is_requested(self, both, verb, zarr_format):
        store = CountingStore(MemoryStore(both))
        assert verb(store, zarr_format=zarr_format) == zarr_format
        names = {key.rpartition("/")[2] for key in store.reads}
        assert names - {".zmetadata"} == DOCUMENTS[zarr_format]
        assert zarr_format == 2 or ".zmetadata" not in names

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_of_a_dask_array(self, both, zarr_format):
        store = CountingStore(MemoryStore(both))
        x = zarrdask.from_zarr(store, "a", zarr_format=zarr_format)
        assert set(store.reads) == {f"a/{name}" for name in DOCUMENTS[zarr_format]}
        np.testing.assert_array_equal(x.compute(scheduler="sync"), np.zeros(3))

    def test_a_store_that_denies_access_to_what_is_not_there(self):
        values = {}
        zarrdask.create_array(values, shape=3, dtype="u1")[...] = 7
        store = Guarded(MemoryStore(values))
        with pytest.raises(StoreError, match="denied"):
            zarrdask.open_array(store)
        assert zarrdask.open_array(store, zarr_format=3)[...].tolist() == [7, 7, 7]
        assert zarrdask.from_zarr(store, zarr_format=3).sum().compute(scheduler="sync") == 21

    @for_each("wanted", FORMATS)
    @for_each("stored", FORMATS)
    @for_each("verb", [zarrdask.open, zarrdask.open_group])
    def test_a_node_of_another_format_is_not_there(self, wanted, stored, verb):
        values = {}
        zarrdask.create_group(values, zarr_format=stored)
        if wanted == stored:
            assert verb(values, zarr_format=wanted).zarr_format == wanted
            return
        with pytest.raises((NodeNotFoundError, MetadataError)) as caught:
            verb(values, zarr_format=wanted)
        assert repr(wanted) in str(caught.value) or "draft" in str(caught.value)

    def test_members_of_another_format_are_no_members(self, both):
        values = {}
        zarrdask.create_group(values, zarr_format=3)
        with dask.config.set({"zarrdask.mixed-formats": True}):
            zarrdask.create_array(values, "a", shape=3, dtype="u1", zarr_format=2)
        assert list(zarrdask.open_group(values)) == ["a"]
        group = zarrdask.open_group(values, zarr_format=3)
        assert (list(group), "a" in group, group.get("a")) == ([], False, None)
        below = zarrdask.open_group(both, zarr_format=2)
        assert [member.zarr_format for member in below.values()] == [2]

    def test_an_opened_array_of_another_format(self, both):
        z = zarrdask.open_array(both, "a", zarr_format=2)
        assert zarrdask.open_array(z, zarr_format=2) is z
        assert zarrdask.open_array(z, zarr_format=3).zarr_format == 3

    @pytest.mark.parametrize("verb", [zarrdask.open, zarrdask.open_array, zarrdask.open_group])
    def test_an_unknown_format(self, verb):
        with pytest.raises(MetadataError, match="zarr_format"):
            verb({}, zarr_format=4)

    def test_a_group_of_one_format_does_not_take_the_place_of_another(self):
        values = {}
        zarrdask.create_group(values, zarr_format=3)
        with pytest.raises(NodeExistsError):
            zarrdask.open_group(values, mode="a", zarr_format=2)
        assert zarrdask.open_group(values, mode="a").zarr_format == 3
        assert set(values) == {"zarr.json"}

    def test_groups_that_are_implied_are_of_v3(self):
        values = {}
        zarrdask.create_array(values, "g/a", shape=3, dtype="u1")
        del values["g/zarr.json"]
        with dask.config.set({"zarrdask.implicit-groups": True}):
            assert list(zarrdask.open_group(values, "g", zarr_format=3)) == ["a"]
            with pytest.raises(NodeNotFoundError):
                zarrdask.open_group(values, "g", zarr_format=2)
            assert list(zarrdask.open_group(values, zarr_format=3)) == ["g"]


class TestModes:
    @for_each("mode", ["w", "w-", "a", "x"])
    @for_each("verb", [zarrdask.open, zarrdask.open_array])
    def test_one_that_creates_is_told_what_creates(self, verb, mode):
        with pytest.raises(MetadataError, match="create_array") as caught:
            verb({}, mode=mode)
        assert (caught.value.key, caught.value.found) == ("mode", mode)

    @pytest.mark.parametrize("verb", [zarrdask.open, zarrdask.open_array, zarrdask.open_group])
    def test_an_unknown_one(self, verb):
        with pytest.raises(MetadataError, match="unknown mode"):
            verb({}, mode="rw")
