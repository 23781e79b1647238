"""Consolidated metadata: read from one document, written on request, never out of date."""

import json
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import zarrdask
from tests.covering import covering, for_each
from tests.documents import dump, v2, v3
from zarrdask import config
from zarrdask.errors import (
    ComplianceWarning,
    MetadataError,
    NodeNotFoundError,
    NodeTypeError,
    UnsupportedError,
)
from zarrdask.formats.metadata.json import dump_json
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.partial_access import set_partial_values
from zarrdask.storage.zarr.consolidated_store import (
    ConsolidatedMetadata,
    ConsolidatedStore,
    uncached,
)
from zarrdask.testing import StoreContract

formats = pytest.mark.parametrize("zarr_format", [2, 3])
NODE = {2: ".zarray", 3: "zarr.json"}


class Counting(MemoryStore):
    """A store that counts what it is asked for: calls, and keys."""

    def __init__(self, values=None):
        super().__init__({} if values is None else values)
        self.calls = Counter()
        self.keys = []

    def get(self, key):
        self.calls["get"] += 1
        self.keys.append(key)
        return super().get(key)

    def get_many(self, keys, scratch):
        keys = list(keys)
        self.calls["get_many"] += 1
        self.keys += keys
        return map(super().get, keys)

    def list_dir(self, prefix):
        self.calls["list_dir"] += 1
        return super().list_dir(prefix)

    def list_prefix(self, prefix):
        self.calls["list_prefix"] += 1
        return super().list_prefix(prefix)


def hierarchy(store, zarr_format, **options):
    """Fill a store: ``a/x``, ``a/deep/y`` and ``z``, consolidated at the root."""
    root = zarrdask.create_group(store, zarr_format=zarr_format, attributes={"title": "all"})
    for name in ("a/x", "a/deep/y", "z"):
        array = root.create_array(
            name, shape=6, dtype="i4", chunks=4, attributes={"units": "K"}, **options
        )
        array[...] = np.arange(6)
    root.create_group("empty")
    return zarrdask.consolidate_metadata(store)


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


@pytest.fixture
def counted(zarr_format):
    """A store with a consolidated hierarchy, and nothing counted yet."""
    store = Counting()
    hierarchy(store, zarr_format)
    store.calls.clear()
    store.keys.clear()
    return store


def is_consolidated(store, path="", zarr_format=3):
    """Whether consolidated metadata are stored at a path."""
    prefix = f"{path}/" if path else ""
    if zarr_format == 2:
        return store.get(f"{prefix}.zmetadata") is not None
    return "consolidated_metadata" in json.loads(store.get(f"{prefix}zarr.json"))


# --------------------------------------------------------------------------------------------
# Reading


def test_everything_is_known_after_one_read(counted, zarr_format):
    root = zarrdask.open_group(counted)
    assert counted.calls == {"get_many": 1}
    assert [path for path, _ in root.walk()] == ["a", "a/deep", "a/deep/y", "a/x", "empty", "z"]
    assert list(root["a"]) == ["deep", "x"]
    assert list(root["empty"]) == []
    assert root["a"]["deep/y"].attrs["units"] == "K"
    assert root["a/x"].shape == (6,)
    assert "a/nothing" not in root
    assert (root.zarr_format, dict(root.attrs)) == (zarr_format, {"title": "all"})
    assert counted.calls == {"get_many": 1}


def test_chunks_are_read_where_they_are(counted):
    root = zarrdask.open_group(counted)
    assert root["a/x"][...].tolist() == [0, 1, 2, 3, 4, 5]
    assert all(key.rpartition("/")[2] in "01" for key in counted.keys[-2:])


def test_an_array_is_opened_without_asking_for_them(counted):
    zarrdask.open_array(counted, "z")
    assert counted.calls == {"get_many": 1}
    assert not any(".zmetadata" in key for key in counted.keys)


@pytest.mark.parametrize("verb", [zarrdask.open, zarrdask.open_array, zarrdask.from_zarr])
def test_an_array_of_a_consolidated_group_can_bypass_them(counted, verb):
    root = zarrdask.open_group(counted)
    counted.calls.clear()
    verb(root, "a/x")
    assert not counted.calls
    verb(root, "a/x", consolidated=False)
    assert counted.calls["get_many"] == 1


@pytest.mark.parametrize("verb", [zarrdask.open, zarrdask.open_array, zarrdask.from_zarr])
def test_an_array_can_be_demanded_of_those_above_it(counted, verb):
    for key in list(counted.list_prefix("a/")):
        if key.endswith((".zarray", ".zattrs", ".zgroup", "zarr.json")):
            counted.erase(key)
    with pytest.raises(NodeNotFoundError):
        verb(counted, "a/x")
    assert verb(counted, "a/x", consolidated=True).shape == (6,)
    with pytest.raises(NodeNotFoundError, match="a/nothing"):
        verb(counted, "a/nothing", consolidated=True)


@formats
@pytest.mark.parametrize("verb", [zarrdask.open, zarrdask.open_group])
def test_what_is_demanded_must_be_there(zarr_format, verb):
    store = MemoryStore()
    zarrdask.create_group(store, zarr_format=zarr_format)
    with pytest.raises(MetadataError, match="no consolidated metadata") as caught:
        verb(store, consolidated=True)
    assert ".zmetadata" in caught.value.expected


def test_an_empty_one_hides_nothing():
    group = {"zarr_format": 3, "node_type": "group"}
    empty = {"kind": "inline", "must_understand": False, "metadata": {}}
    store = {
        "zarr.json": dump(group | {"consolidated_metadata": empty}),
        "x/zarr.json": dump(v3()),
    }
    assert list(zarrdask.open_group(store)) == ["x"]
    assert list(zarrdask.open_group(store, consolidated=True)) == ["x"]
    flat = {"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}}
    old = {".zgroup": b'{"zarr_format": 2}', ".zmetadata": dump(flat), "x/.zarray": dump(v2())}
    assert list(zarrdask.open_group(old)) == ["x"]


def test_a_v2_group_without_documents_of_its_own_is_found():
    flat = {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": {"zarr_format": 2}, ".zattrs": {"n": 1}, "x/.zarray": v2()},
    }
    root = zarrdask.open_group({".zmetadata": dump(flat)})
    assert (list(root), dict(root.attrs)) == (["x"], {"n": 1})


def test_an_implicit_group_of_v2_is_none_here_either():
    flat = {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": {"zarr_format": 2}, "a/x/.zarray": v2(), "b/.zattrs": {}},
    }
    root = zarrdask.open_group({".zgroup": b'{"zarr_format": 2}', ".zmetadata": dump(flat)})
    assert list(root) == []
    assert root["a/x"].shape == (4,)


def test_v3_is_preferred_and_v2s_document_then_says_nothing():
    flat = {"zarr_consolidated_format": 1, "metadata": {"old/.zarray": v2()}}
    store = {
        "zarr.json": b'{"zarr_format": 3, "node_type": "group"}',
        "x/zarr.json": dump(v3()),
        ".zmetadata": dump(flat),
    }
    assert list(zarrdask.open_group(store)) == ["x"]


# ---- what is wrong


def broken(zarr_format, metadata, **members):
    """Return a store whose consolidated metadata hold what is given."""
    if zarr_format == 2:
        found = {"zarr_consolidated_format": 1, "metadata": metadata} | members
        return {".zgroup": b'{"zarr_format": 2}', ".zmetadata": dump(found)}
    found = {"kind": "inline", "must_understand": False, "metadata": metadata} | members
    return {"zarr.json": dump({**json.loads(GROUP), "consolidated_metadata": found})}


GROUP = b'{"zarr_format": 3, "node_type": "group"}'
WRONG = [
    (2, ["x/.zarray"], ".zmetadata metadata"),
    (2, None, ".zmetadata metadata"),
    (2, {"x/.zarray": 5}, ".zmetadata x/.zarray"),
    (2, {"x/.zattrs": [1]}, ".zmetadata x/.zattrs"),
    (2, {"../x/.zarray": v2()}, ".zmetadata ../x/.zarray"),
    (2, {"/x/.zarray": v2()}, ".zmetadata /x/.zarray"),
    (3, [], "consolidated_metadata metadata"),
    (3, {"x": "zarr.json"}, "consolidated_metadata x"),
    (3, {"": v3()}, "consolidated_metadata "),
    (3, {"a//b": v3()}, "consolidated_metadata a//b"),
    (3, {"a/..": v3()}, "consolidated_metadata a/.."),
]


@for_each(("zarr_format", "metadata", "key"), WRONG)
def test_what_is_wrong_is_an_error_that_names_it_and_says_how_to_do_without(
    zarr_format, metadata, key
):
    store = broken(zarr_format, metadata)
    for verb in (zarrdask.open, zarrdask.open_group):
        with pytest.raises(MetadataError) as caught:
            verb(store)
        assert caught.value.key.endswith(f": {key}")
        assert "consolidated=False" in str(caught.value)
        assert list(verb(store, consolidated=False)) == []


def test_what_is_no_json_is_an_error_that_names_it():
    store = {".zgroup": b'{"zarr_format": 2}', ".zmetadata": b'{"zarr_consolidated_format": 1'}
    with pytest.raises(
        MetadataError, match=r"\.zmetadata: this is not a JSON .*consolidated=False"
    ):
        zarrdask.open(store)
    assert len(zarrdask.open(store, consolidated=False)) == 0


@pytest.mark.parametrize(
    ("zarr_format", "metadata"),
    [(2, {"x/.zarray": {"zarr_format": 2}}), (3, {"x": {"zarr_format": 3, "node_type": "array"}})],
)
def test_an_entry_that_is_no_array_is_an_error_when_that_is_opened(zarr_format, metadata):
    root = zarrdask.open_group(broken(zarr_format, metadata | ENTRIES[zarr_format]))
    assert list(root) == ["good", "x"]
    assert root["good"].shape == (4,)
    with pytest.raises(MetadataError, match=r"/x: .*'shape' is missing"):
        root["x"]


ENTRIES = {2: {"good/.zarray": v2()}, 3: {"good": v3()}}


def test_a_stale_entry_is_an_error_that_names_the_array_when_it_is_changed(zarr_format):
    store = MemoryStore()
    hierarchy(store, zarr_format)
    for key in list(store.list_prefix("z/")):
        store.erase(key)
    z = zarrdask.open_group(store, mode="r+")["z"]
    assert z[...].tolist() == [0] * 6
    for change in (lambda: z.attrs.update(n=1), lambda: z.append([1]), lambda: z.resize(3)):
        with pytest.raises(NodeNotFoundError, match="/z: "):
            change()


def test_unknown_documents_among_them_are_passed_over():
    entries = {"x/.zarray": v2(), "x/.nczarray": {}, ".nczgroup": {}, "x": {}}
    assert list(zarrdask.open_group(broken(2, entries))) == ["x"]


# ---- the store


class TestConsolidatedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return ConsolidatedStore(
            MemoryStore(), "", ConsolidatedMetadata({}, {"": []}, frozenset(), dump_json)
        )


class TestConsolidatedStoreBelow(StoreContract):
    @pytest.fixture
    def store(self):
        names = frozenset(["zarr.json"])
        return ConsolidatedStore(
            MemoryStore(), "a", ConsolidatedMetadata({}, {"": []}, names, dump_json)
        )


def view(inner=None):
    """Return a view of the group ``g`` in a store: it holds ``g/x``, which the store does not."""
    inner = Counting({"g/x/c/0": b"1234", "zarr.json": GROUP}) if inner is None else inner
    documents = {"": {"zarr.json": json.loads(GROUP)}, "x": {"zarr.json": v3()}}
    held = ConsolidatedMetadata(
        documents, {"": ["x"]}, frozenset(["zarr.json", ".zarray"]), dump_json
    )
    return ConsolidatedStore(inner, "g", held)


def test_documents_below_the_group_are_held_and_others_are_not():
    store = view()
    keys = ["g/x/zarr.json", "g/x/c/0", "g/x/.zarray", "zarr.json", "gg/zarr.json", "g/zarr.json"]
    found = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
    assert json.loads(found[0]) == v3()
    assert found[1:5] == [b"1234", None, GROUP, None]
    assert [store.get(key) for key in keys] == found
    assert store.inner.keys[:3] == ["g/x/c/0", "zarr.json", "gg/zarr.json"]


def test_parts_of_documents_are_held_too():
    store = view()
    text = store.get("g/zarr.json")
    assert bytes(store.get_range("g/zarr.json", 1, 5)) == text[1:6]
    assert list(map(bytes, store.get_ranges("g/zarr.json", [(0, 3)], Scratch()))) == [text[:3]]
    assert store.get_partial_values([("g/x/.zarray", (0, None)), ("g/x/c/0", (1, 2))]) == [
        None,
        b"23",
    ]


def test_listing_a_group_needs_no_listing_and_listing_an_array_does():
    store = view()
    assert store.list_dir("g/") == (["zarr.json"], ["x"])
    assert not store.inner.calls
    assert store.list_dir("g/x/") == ([], ["c"])
    assert list(store.list_prefix("g/")) == ["g/x/c/0"]


def test_a_store_that_cannot_be_listed_can_be_discovered():
    class Unlistable(MemoryStore):
        def list_dir(self, prefix):
            raise UnsupportedError("no")

        list_prefix = list_dir

    store = Unlistable({})
    store.values |= broken(3, {"x": v3()})
    assert list(zarrdask.open_group(store)) == ["x"]
    with pytest.raises(UnsupportedError):
        list(zarrdask.open_group(store, consolidated=False))


@for_each(
    "change",
    [
        lambda store: store.set("other", b"1"),
        lambda store: store.erase("other"),
        lambda store: store.erase_prefix("other/"),
        lambda store: store.erase_values(["other"]),
        lambda store: set_partial_values(store, [("other", 0, b"1")]),
    ],
)
def test_after_a_change_through_it_nothing_is_held(change):
    store = view()
    change(store)
    assert store.get("g/x/zarr.json") is None
    assert store.members("") is None
    assert not store.holds("g")


def test_it_pickles_as_the_store_itself():
    store = view(MemoryStore())
    again = pickle.loads(pickle.dumps(store))
    assert again is store.inner
    assert again == store
    assert hash(again) == hash(store)
    assert uncached(store) is store.inner
    assert uncached(store.inner) is store.inner


def test_a_task_carries_nothing_of_it(tmp_path):
    root = zarrdask.create_group(tmp_path)
    for n in range(50):
        root.create_array(f"v{n}", shape=100, dtype="i4", chunks=10)
    root = zarrdask.consolidate_metadata(tmp_path)
    x = zarrdask.from_zarr(root["v7"])
    (task,) = (value for value in x.__dask_graph__().values() if callable(value))
    assert len(pickle.dumps(task)) < 1024
    assert zarrdask.from_zarr(root, "v7").name == x.name


# --------------------------------------------------------------------------------------------
# Writing


def test_each_node_keeps_its_documents(zarr_format):
    store, twin = {}, {}
    hierarchy(store, zarr_format)
    hierarchy(twin, zarr_format)
    for group in ("", "a"):
        zarrdask.consolidate_metadata(twin, group)
    changed = {key for key in twin if store.get(key) != twin[key]}
    assert changed == {"a/.zmetadata"} if zarr_format == 2 else {"a/zarr.json"}


def test_it_returns_the_group_opened_for_changes(zarr_format):
    store = MemoryStore()
    root = hierarchy(store, zarr_format)
    assert isinstance(root.store, ConsolidatedStore)
    assert root.mode == "r+"
    assert root == zarrdask.open_group(store)


def test_consolidating_again_gives_the_same(zarr_format):
    store = {}
    hierarchy(store, zarr_format)
    first = dict(store)
    zarrdask.consolidate_metadata(zarrdask.open_group(store))
    assert store == first


def test_what_cannot_be_opened_here_is_told_of():
    store = {"zarr.json": GROUP, "x/zarr.json": dump(v3(data_type="from-tomorrow"))}
    root = zarrdask.consolidate_metadata(store)
    assert list(root) == ["x"]
    with pytest.raises(UnsupportedError, match="from-tomorrow"):
        root["x"]


@for_each(
    ("store", "key"),
    [
        ({"zarr.json": GROUP, "old/.zarray": dump(v2())}, "old"),
        ({".zgroup": b'{"zarr_format": 2}', "new/zarr.json": dump(v3())}, "new"),
        ({"zarr.json": GROUP, "x/zarr.json": b"{"}, "x/zarr.json"),
        ({".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"x": '}, ".zattrs"),
    ],
)
def test_what_they_cannot_tell_of_is_an_error_and_nothing_is_written(store, key):
    before = dict(store)
    with pytest.raises(MetadataError) as caught:
        zarrdask.consolidate_metadata(store)
    assert caught.value.key.endswith(f": {key}")
    assert store == before


def test_an_array_has_none():
    with pytest.raises(NodeTypeError, match="array"):
        zarrdask.consolidate_metadata({"zarr.json": dump(v3())})
    with pytest.raises(NodeNotFoundError):
        zarrdask.consolidate_metadata({})


# --------------------------------------------------------------------------------------------
# After a change

CHANGES = {
    "attributes of an array": lambda root: root["a/x"].attrs.update(units="C"),
    "an attribute removed": lambda root: root["a/x"].attrs.pop("units"),
    "attributes of a group": lambda root: root["a"].attrs.update(n=1),
    "attributes of the root": lambda root: root.attrs.update(n=1),
    "resize": lambda root: root["a/x"].resize(3),
    "append": lambda root: root["a/x"].append([7, 8]),
    "create_array": lambda root: root.create_array("a/new", shape=3, dtype="i4"),
    "create_array with groups": lambda root: root.create_array("n/m/new", shape=3, dtype="i4"),
    "create_group": lambda root: root.create_group("a/deep/new"),
    "overwrite an array": lambda root: root.create_array(
        "a/x", shape=2, dtype="f8", overwrite=True
    ),
    "overwrite a group": lambda root: root.create_group("a", overwrite=True),
    "a group becomes an array": lambda root: root.create_array(
        "a", shape=2, dtype="f8", overwrite=True
    ),
    "delete an array": lambda root: root.__delitem__("a/x"),
    "delete a group": lambda root: root.__delitem__("a"),
    "to_zarr": lambda root: zarrdask.to_zarr(
        np.arange(3), root.store, "a/dask", zarr_format=root.zarr_format
    ),
    "require": lambda root: root.require_group("a/required"),
}
changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def told(store, **options):
    """Return everything that a group tells of what is below it."""
    root = zarrdask.open_group(store, **options)
    found = {path: (type(node), dict(node.attrs)) for path, node in root.walk()}
    arrays = {p: (n.shape, n.dtype) for p, n in root.walk() if isinstance(n, zarrdask.Array)}
    return dict(root.attrs), found, arrays


@covering(
    change=CHANGES,
    zarr_format=[2, 3],
    consolidated=[None, False],
    after=["drop", "update"],
    indirect=["zarr_format"],
)
def test_they_never_tell_what_is_no_longer_true(zarr_format, change, consolidated, after, setting):
    store = MemoryStore()
    setting({"zarrdask.consolidated-after-change": after})
    hierarchy(store, zarr_format)
    before = told(store)
    root = zarrdask.open_group(store, mode="r+", consolidated=consolidated)
    change(root)
    truth = told(store, consolidated=False)
    assert truth != before
    assert told(store) == truth
    # Also through the handle that the change was made with.
    assert {path for path, _ in root.walk()} == set(truth[1])
    assert is_consolidated(store, "", zarr_format) == (after == "update")
    if after == "update":
        assert told(store, consolidated=True) == truth


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_several_writers_may_drop_them_at_once(tmp_path, zarr_format):
    root = zarrdask.create_group(tmp_path, zarr_format=zarr_format)
    for n in range(8):
        root.create_array(f"x{n}", shape=4, dtype="i4")
    zarrdask.consolidate_metadata(tmp_path)
    start = Barrier(8)

    def change(n):
        array = zarrdask.open_array(tmp_path, f"x{n}", mode="r+")
        start.wait()
        array.append([n])
        array.attrs["n"] = n

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(8)))
    assert not is_consolidated(root.store, "", zarr_format)
    found = zarrdask.open_group(tmp_path)
    assert [(a.attrs["n"], a.shape) for _, a in found.arrays()] == [(n, (5,)) for n in range(8)]


@changes
def test_those_between_the_root_and_the_node_go_too(zarr_format, change):
    store = MemoryStore()
    hierarchy(store, zarr_format)
    for group in ("a/deep", "a", ""):
        zarrdask.consolidate_metadata(store, group)
    change(zarrdask.open_group(store, mode="r+"))
    truth = told(store, consolidated=False)
    assert told(store) == truth
    if isinstance(zarrdask.open(store).get("a"), zarrdask.Group):
        part = zarrdask.open_group(store, "a")
        assert [path for path, _ in part.walk()] == [
            path for path, _ in zarrdask.open_group(store, "a", consolidated=False).walk()
        ]


@pytest.mark.parametrize("after", ["drop", "update"])
def test_all_kinds_of_stores_keep_them_true(store, zarr_format, after, setting):
    setting({"zarrdask.consolidated-after-change": after})
    hierarchy(store, zarr_format)
    root = zarrdask.open_group(store, mode="r+")
    root["a/x"].append([1])
    del root["a/deep"]
    root.create_group("new")
    assert told(store) == told(store, consolidated=False)
    assert is_consolidated(store, "", zarr_format) == (after == "update")


@formats
@pytest.mark.parametrize("consolidated", [None, False])
def test_attributes_that_others_changed_are_not_taken_from_them(zarr_format, consolidated):
    # What is written is based on the node's own documents.
    store = MemoryStore()
    hierarchy(store, zarr_format)
    z = zarrdask.open_group(store, mode="r+", consolidated=consolidated)["z"]
    name = NODE[zarr_format]
    document = json.loads(store.get(f"z/{name}"))
    store.set(f"z/{name}", dump(document | {"shape": [9]}))
    z.append([1])
    assert z.shape == (10,)


def test_a_change_of_nothing_keeps_them(zarr_format):
    store = MemoryStore()
    hierarchy(store, zarr_format)
    root = zarrdask.open_group(store, mode="r+")
    root["z"].attrs.update(units="K")
    root["z"][...] = 5
    root.require_group("a")
    assert is_consolidated(store, "", zarr_format)


def test_a_failed_change_keeps_them(zarr_format):
    store = MemoryStore()
    hierarchy(store, zarr_format)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.create_array(store, "z", shape=3, dtype="i4", zarr_format=zarr_format)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.create_group(store, "z/below", zarr_format=zarr_format)
    assert is_consolidated(store, "", zarr_format)


def test_they_are_gone_before_the_node_changes(zarr_format):
    class Failing(MemoryStore):
        def set(self, key, value):
            if key.startswith("z/"):
                raise zarrdask.errors.StoreError("the disk is full", key=key)
            super().set(key, value)

    store = Failing({})
    hierarchy(MemoryStore(store.values), zarr_format)
    with pytest.raises(zarrdask.errors.StoreError):
        zarrdask.open_array(store, "z", mode="r+").attrs["n"] = 1
    assert not is_consolidated(store, "", zarr_format)


def test_what_others_put_into_the_groups_document_stays():
    note = {"must_understand": False, "n": float("nan")}
    store = {
        "zarr.json": dump(json.loads(GROUP) | {"note": note, "attributes": {"b": 1, "a": [2]}}),
        "x/zarr.json": dump(v3()),
    }
    document = json.loads(store["zarr.json"])
    told = {"kind": "inline", "must_understand": False, "metadata": {"x": v3()}}
    store["zarr.json"] = dump(document | {"consolidated_metadata": told})
    zarrdask.open_array(store, "x", mode="r+").attrs["n"] = 1
    assert dump(json.loads(store["zarr.json"])) == dump(document)


@pytest.mark.parametrize("found", [b"not JSON", b"[]", b'{"zarr_consolidated_format": 2}'])
@pytest.mark.parametrize("after", ["drop", "update"])
def test_those_that_cannot_be_read_are_dropped(found, after, setting, recwarn):
    setting({"zarrdask.consolidated-after-change": after})
    store = {".zgroup": b'{"zarr_format": 2}', "x/.zarray": dump(v2()), ".zmetadata": found}
    zarrdask.open_array(store, "x", mode="r+").attrs["n"] = 1
    assert ".zmetadata" not in store
    assert [w.category for w in recwarn] == ([ComplianceWarning] if after == "update" else [])


def test_a_node_of_the_other_format_drops_them_though_they_should_be_updated(setting):
    setting({"zarrdask.consolidated-after-change": "update", "zarrdask.mixed-formats": True})
    store = MemoryStore()
    hierarchy(store, 3)
    with pytest.warns(ComplianceWarning, match="of another format"):
        zarrdask.create_group(store, "old", zarr_format=2)
    assert not is_consolidated(store)
    assert "old" in zarrdask.open_group(store)


def test_what_to_do_after_a_change_is_checked(setting):
    setting({"zarrdask.consolidated-after-change": "keep"})
    with pytest.raises(MetadataError, match="'drop' or 'update'"):
        zarrdask.create_group({})
    assert config.DEFAULTS["consolidated-after-change"] == "drop"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_that_replaces_a_consolidated_group_has_no_such_metadata(setting, zarr_format):
    setting({"zarrdask.consolidated-after-change": "update"})
    values = {}
    zarrdask.create_group(values, zarr_format=zarr_format)
    zarrdask.consolidate_metadata(values)
    zarrdask.create_array(values, shape=1, dtype="u1", zarr_format=zarr_format, overwrite=True)
    assert sorted(values) == [".zarray" if zarr_format == 2 else "zarr.json"]
    assert b"consolidated_metadata" not in values[sorted(values)[0]]
