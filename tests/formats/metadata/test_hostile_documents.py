"""Documents that ask for more than any array needs: refused by name, in little time and memory."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, named, sharding, stored, v2, v3
from tests.memory import at_most
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes import bytes as bytes_codec
from zarrdask.formats.codecs.codec import MAX_CODECS, MAX_DIMENSIONS
from zarrdask.formats.dtypes.numpy_type import MAX_ITEM_BYTES
from zarrdask.formats.metadata.json import MAX_DEPTH

GROUP = b'{"zarr_format": 3, "node_type": "group"}'


def dumped(document):
    """Return a document's bytes, however deep it is: `json.dumps` recurses."""
    text, pending = [], [document]
    while pending:
        item = pending.pop()
        if isinstance(item, Token):
            text.append(item)
        elif isinstance(item, dict):
            members = [
                part
                for key, value in item.items()
                for part in (Token(","), Token(f"{json.dumps(key)}:"), value)
            ][1:]
            pending += _reversed("{", members, "}")
        elif isinstance(item, list | tuple):
            pending += _reversed("[", [part for v in item for part in (Token(","), v)][1:], "]")
        else:
            text.append(json.dumps(item))
    return "".join(text).encode()


class Token(str):
    """Text that is part of the document as it is."""

    __slots__ = ()


def _reversed(start, parts, end):
    """Return the parts of a list or an object, the last first."""
    return [Token(end), *reversed(parts), Token(start)]


def one(document):
    return {"zarr.json" if document["zarr_format"] == 3 else ".zarray": dumped(document)}


# ---- depth


def nested(depth, value=1):
    for _ in range(depth):
        value = [value]
    return value


def nested_fields(depth):
    dtype = "<u2"
    for _ in range(depth):
        dtype = [["a", dtype]]
    return dtype


def nested_struct(depth):
    data_type, fill_value = "uint16", 0
    for _ in range(depth):
        data_type = named("struct", fields=[{"name": "a", "data_type": data_type}])
        fill_value = {"a": fill_value}
    return {"data_type": data_type, "fill_value": fill_value}


def nested_shards(depth):
    codecs = [LITTLE]
    for _ in range(depth):
        codecs = [sharding((2,), codecs)]
    return codecs


def nested_conditions(depth):
    codecs = [CRC32C]
    for _ in range(depth):
        codecs = [named("conditional", codecs=codecs)]
    return [LITTLE, *codecs]


DEEP = {
    "attributes": one(v3(attributes={"a": nested(450)})),
    "attributes of v2": {".zattrs": dumped({"a": nested(450)}), **one(v2())},
    "conditional codecs": one(v3(codecs=nested_conditions(200))),
    "fields of v2": one(v2(dtype=nested_fields(450), fill_value=None)),
    "fields of v3": one(v3(**nested_struct(450))),
    "filters": one(v2(filters=[{"id": "delta", "dtype": "<u2", "more": nested(450)}])),
    "shards": one(v3(codecs=nested_shards(200))),
    "deeper than the parser goes": one(v3(attributes={"a": Token("[" * 20_000 + "]" * 20_000)})),
}


@for_each("name", DEEP)
def test_documents_that_are_nested_too_deeply_are_an_error_that_names_the_limit(name):
    with pytest.raises(MetadataError, match=r"nested too deeply; expected at most \d+ levels"):
        zarrdask.open(DEEP[name])


@for_each("name", DEEP)
def test_verify_reports_such_a_node_and_goes_on(name):
    store = {"zarr.json": GROUP}
    store |= {f"bad/{key}": value for key, value in DEEP[name].items()}
    store |= {f"later/{key}": value for key, value in stored(v3()).items()}
    report = zarrdask.verify(store)
    [problem] = report.problems
    assert (problem.kind, problem.path) == ("invalid", "bad")
    assert "nested too deeply" in problem.message
    assert [array.path for array in report.arrays] == ["later"]


@for_each(
    "document",
    [
        v3(attributes={"a": nested(MAX_DEPTH - 2)}),
        v3(codecs=nested_shards(MAX_DEPTH // 3 - 1)),
        v3(codecs=nested_conditions(MAX_DEPTH // 3 - 1)),
        v3(**nested_struct(MAX_DEPTH // 4 - 1)),
        v2(dtype=nested_fields(MAX_DEPTH // 2 - 1), fill_value=None),
    ],
)
def test_documents_within_the_limit_are_read_and_rewritten(document):
    z = zarrdask.open_array(one(document), mode="r+")
    z[...] = np.zeros(4, z.dtype)
    z.resize(3)
    z.attrs["b"] = 1
    assert zarrdask.open_array(z.store)[...].tolist() == np.zeros(3, z.dtype).tolist()


def test_consolidated_metadata_hold_the_deepest_nodes():
    store = {"zarr.json": GROUP}
    zarrdask.create_array(
        store, "a/b", shape=3, dtype="i4", attributes={"a": nested(MAX_DEPTH - 2)}
    )
    zarrdask.consolidate_metadata(store)
    for consolidated in (True, False):
        root = zarrdask.open_group(store, consolidated=consolidated)
        assert root["a/b"].attrs["a"] == nested(MAX_DEPTH - 2)


def test_attributes_that_contain_themselves_are_an_error_and_change_nothing():
    store = stored(v3())
    before = dict(store)
    endless = {}
    endless["again"] = endless
    with pytest.raises(MetadataError, match="nested too deeply"):
        zarrdask.open_array(store, mode="r+").attrs["a"] = endless
    assert store == before


# ---- elements


LARGE = {
    "|V2147483647": v2(dtype="|V2147483647", fill_value=0),
    "|S2147483647": v2(dtype="|S2147483647", fill_value=""),
    "<U536870911": v2(dtype="<U536870911", fill_value="a"),
    "open": v2(dtype="|V2147483647", fill_value=None),
    "field": v2(dtype=[["a", "|V2147483647"]], fill_value=None),
    "fields": v2(dtype=[[f"a{n}", "|V60000000"] for n in range(9)], fill_value=None),
    "field of many elements": v2(dtype=[["a", "|u1", [2147483647]]], fill_value=None),
    "r*": v3(data_type="r17179869176", fill_value=[]),
    "raw_bytes": v3(data_type=named("raw_bytes", length_bytes=2**31 - 1), fill_value=""),
    "fixed_length_utf32": v3(
        data_type=named("fixed_length_utf32", length_bytes=2**31 - 4), fill_value=""
    ),
}


@for_each("name", LARGE)
def test_elements_of_gigabytes_are_refused_before_any_is_made(name):
    store = one(LARGE[name])
    expected = f"too large.*at most {MAX_ITEM_BYTES} bytes"
    with at_most(2**24), pytest.raises(UnsupportedError, match=expected):
        zarrdask.open(store)


@for_each("zarr_format", [2, 3, "v3-draft"])
@for_each("dtype", [f"V{2**30}", f"S{2**30}", f"U{2**28}"])
def test_they_are_not_created_either(dtype, zarr_format):
    with pytest.raises(UnsupportedError, match="too large"):
        zarrdask.create_array({}, shape=1, dtype=dtype, zarr_format=zarr_format)


def test_a_record_with_an_image_is_read():
    dtype = [["id", "<i8"], ["image", "<f4", [2048, 2048]]]
    z = zarrdask.open_array(one(v2(dtype=dtype, fill_value=None)))
    assert z[0]["image"].shape == (2048, 2048)


def test_a_field_of_many_elements_is_not_looked_at_one_by_one(monkeypatch):
    calls = []
    original = bytes_codec.name_of
    monkeypatch.setattr(
        bytes_codec, "name_of", lambda dtype: calls.append(dtype) or original(dtype)
    )
    zarrdask.open_array(one(v2(dtype=[["a", "|u1", [4096, 1024]]], fill_value=None)))
    assert len(calls) < 100


@pytest.mark.parametrize("dtype", [[["a", "|u1", [0]]], [["a", [["b", "<i4", [0, 3]]]]]])
def test_elements_of_no_bytes_are_refused(dtype):
    with pytest.raises(UnsupportedError, match="size of 0 bytes"):
        zarrdask.open(one(v2(dtype=dtype, fill_value=None)))


@for_each("zarr_format", [2, 3])
@for_each("dtype", [np.dtype([]), np.dtype("V0"), np.dtype([("a", "u1", (0,))])])
def test_nor_are_they_created_or_rewritten(dtype, zarr_format):
    x = zarrdask.from_zarr(stored(v2())).map_blocks(
        lambda block: np.zeros(block.shape, dtype), dtype=dtype
    )
    before = {}
    for act in (
        lambda: zarrdask.create_array(before, shape=4, dtype=dtype, zarr_format=zarr_format),
        lambda: zarrdask.to_zarr(x, before, zarr_format=zarr_format),
        lambda: zarrdask.rechunk(x, before, chunks=3, zarr_format=zarr_format),
    ):
        with pytest.raises(UnsupportedError, match="size of 0 bytes"):
            act()
    assert before == {}


# ---- dimensions


@for_each("count", [MAX_DIMENSIONS + 1, 10_000])
@for_each("make", [v2, v3])
def test_more_dimensions_than_numpy_has_are_refused_when_opened(make, count):
    with pytest.raises(UnsupportedError, match=f"shape: NumPy.*found {count}; expected at most 64"):
        zarrdask.open(one(make((1,) * count, (1,) * count)))


@pytest.mark.parametrize("make", [v2, v3])
def test_as_many_as_numpy_has_are_read_and_written(make):
    z = zarrdask.open_array(one(make((2,) + (1,) * 63, (1,) * 64)), mode="r+")
    z[...] = np.arange(2).reshape(z.shape)
    again = zarrdask.open_array(z.store)
    assert again[...].ravel().tolist() == [0, 1]
    assert zarrdask.from_zarr(z.store).compute(scheduler="sync").ravel().tolist() == [0, 1]


def test_codecs_that_need_more_dimensions_are_refused_when_opened():
    shape = (2,) + (1,) * 63
    with pytest.raises(UnsupportedError, match="dimensions; found 65"):
        zarrdask.open(one(v3(shape, shape, codecs=[sharding((1,) * 64)])))
    reshape = named("reshape", shape=[2] + [1] * 64)
    with pytest.raises(UnsupportedError, match="dimensions; found 65"):
        zarrdask.open(one(v3(codecs=[reshape, LITTLE])))


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_they_can_not_be_created(zarr_format):
    with pytest.raises(UnsupportedError, match="shape: NumPy"):
        zarrdask.create_array({}, shape=(1,) * 65, dtype="i4", zarr_format=zarr_format)


# ---- lists


MANY = {
    "codecs": v3(codecs=[LITTLE, *[CRC32C] * 2_000]),
    "codecs in shards": v3(codecs=[sharding((2,), [LITTLE, *[CRC32C] * 2_000])]),
    "filters": v2(filters=[{"id": "delta", "dtype": "<u2"}] * 2_000),
    "storage_transformers": v3(storage_transformers=["indexed"] * 2_000),
}


@for_each("name", MANY)
def test_lists_of_too_many_codecs_are_refused_before_any_is_made(name):
    with pytest.raises(
        MetadataError, match=rf"too many.*found 200\d; expected at most {MAX_CODECS}"
    ):
        zarrdask.open(one(MANY[name]))


def test_arrays_with_too_many_codecs_can_not_be_created():
    with pytest.raises(MetadataError, match=f"too many.*at most {MAX_CODECS}"):
        zarrdask.create_array({}, shape=1, dtype="i4", codecs=[LITTLE, *[CRC32C] * MAX_CODECS])


# ---- messages


@for_each(
    "document",
    [
        v3(data_type="x" * 10**5),
        v3(dimension_names=["x"] * 10**5),
        v3(**{"x" * 10**5: 1}),
        v3(attributes=["x" * 10**5]),
        v2(dtype=[["x" * 10**5, "foo"]]),
        v2(compressor={"id": "x" * 10**5}),
        v2(fill_value="x" * 10**5),
    ],
)
def test_messages_cut_what_they_quote(document):
    with pytest.raises(zarrdask.ZarrdaskError, match="characters left out") as caught:
        zarrdask.open(one(document))
    assert len(str(caught.value)) < 5000
