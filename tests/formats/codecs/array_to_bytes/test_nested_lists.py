import json

import msgpack
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v2
from tests.memory import at_most
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.numcodecs.adapter import ObjectCodec

LISTS = [[0, 1], [1, 2], [3, 4], [4, 5]]


def bound(name, shape):
    config = json.dumps({"id": name})
    return ObjectCodec(config).bind(ChunkSpec(shape, np.dtype(object), ""))


def objects(elements, shape):
    values = np.empty(len(elements), object)
    values[:] = elements
    return values.reshape(shape)


# ---- what zarr-python 2.18.7 with numcodecs 0.15.2 wrote


@for_each(
    ("name", "shape", "data", "elements"),
    [
        ("json2", (), b'["s0","|O",[]]', ["s0"]),
        ("json2", (), b'[[0,1],"|O",[]]', [[0, 1]]),
        ("json2", (), b'[{"a":0},"|O",[]]', [{"a": 0}]),
        ("json2", (2,), b'[[0,1],[1,2],"|O",[2]]', LISTS[:2]),
        ("json2", (2, 2), b'[["s0","s1"],["s3","s4"],"|O",[2,2]]', ["s0", "s1", "s3", "s4"]),
        ("json2", (2, 2), b'[[[0,1],[1,2]],[[3,4],[4,5]],"|O",[2,2]]', LISTS),
        ("json2", (2, 2), b'[[[2,3],null],[[5,6],null],"|O",[2,2]]', [[2, 3], None, [5, 6], None]),
        ("json2", (1, 2, 2), b'[[[[0,1],[1,2]],[[3,4],[4,5]]],"|O",[1,2,2]]', LISTS),
        ("msgpack2", (), b"\x94\x00\x01\xa2|O\x90", [[0, 1]]),
        ("msgpack2", (2,), b"\x94\xa2s0\xa2s1\xa2|O\x91\x02", ["s0", "s1"]),
        (
            "msgpack2",
            (2, 2),
            b"\x94\x92\xa2s0\xa2s1\x92\xa2s3\xa2s4\xa2|O\x92\x02\x02",
            ["s0", "s1", "s3", "s4"],
        ),
        (
            "msgpack2",
            (1, 2, 2),
            b"\x93\x92\x92\x92\x00\x01\x92\x01\x02\x92\x92\x03\x04\x92\x04\x05\xa2|O\x93\x01\x02\x02",
            LISTS,
        ),
    ],
)
def test_what_zarr_python_2_wrote_is_read(name, shape, data, elements):
    found = bound(name, shape).decode(data)
    assert found.shape == shape
    assert found.reshape(-1).tolist() == elements


# ---- what others wrote


def test_the_flat_lists_of_zarrita_js_are_read():
    # Written by zarrita.js 0.7.5.
    found = bound("json2", (2, 2)).decode(b'["a","b","d","e","|O",[2,2]]')
    assert found.tolist() == [["a", "b"], ["d", "e"]]


def test_a_flat_list_of_lists_is_read():
    found = bound("json2", (2, 2)).decode(b'[[1],[2,3],[],[4],"|O",[2,2]]')
    assert found.tolist() == [[[1], [2, 3]], [[], [4]]]


@pytest.mark.parametrize("shape", [(), (1, 4), (2, 2)])
def test_flat_lists_of_one_dimension_are_read(shape):
    # zarrdask wrote these for any number of dimensions.
    elements = ["a", "b", "c", "d"][: int(np.prod(shape))]
    data = json.dumps([*elements, "|O", [len(elements)]]).encode()
    assert bound("json2", shape).decode(data).reshape(-1).tolist() == elements
    packed = msgpack.packb([*elements, "|O", [len(elements)]])
    assert bound("msgpack2", shape).decode(packed).reshape(-1).tolist() == elements


# ---- what is written


@for_each(
    ("shape", "elements", "document"),
    [
        ((), ["s0"], ["s0", "|O", [1]]),
        ((), [[0, 1]], [[0, 1], "|O", [1]]),
        ((2,), LISTS[:2], [[0, 1], [1, 2], "|O", [2]]),
        ((2, 2), LISTS, [LISTS[:2], LISTS[2:], "|O", [2, 2]]),
        ((2, 1), ["a", "b"], [["a"], ["b"], "|O", [2, 1]]),
        ((1, 2, 2), ["a", "b", "c", "d"], [[["a", "b"], ["c", "d"]], "|O", [1, 2, 2]]),
    ],
)
@for_each("name", ["json2", "msgpack2"])
def test_lists_are_nested_as_numcodecs_nests_them(name, shape, elements, document):
    codec = bound(name, shape)
    data = bytes(codec.encode(objects(elements, shape)))
    parse = json.loads if name == "json2" else msgpack.unpackb
    assert parse(data) == document
    assert codec.decode(data).reshape(-1).tolist() == elements


@pytest.mark.parametrize("name", ["json2", "msgpack2"])
def test_in_order_f_the_lists_are_those_of_the_transposed_chunk(name):
    # zarr-python reads the elements of the lists in the order of the array.
    store = {}
    z = zarrdask.create_array(
        store,
        shape=(2, 3),
        chunks=(2, 3),
        dtype=object,
        filters={"id": name},
        compressors=[],
        order="F",
        zarr_format=2,
    )
    values = objects(["a", "b", "c", "d", "e", "f"], (2, 3))
    z[...] = values
    parse = json.loads if name == "json2" else msgpack.unpackb
    assert parse(store["0.0"]) == [["a", "d"], ["b", "e"], ["c", "f"], "|O", [3, 2]]
    assert z[...].tolist() == values.tolist()


def test_the_settings_of_the_codec_are_followed():
    config = {"id": "json2", "encoding": "utf-16", "strict": False}
    document = v2((1,), (1,), "|O", None, filters=[config])
    store = {".zarray": dump(document), "0": '["a\tb","|O",[1]]'.encode("utf-16")}
    assert zarrdask.open_array(store)[0] == "a\tb"


# ---- what is damaged


@for_each(
    "document",
    [
        {},
        [],
        "text",
        ["|O"],
        ["a", "b", "c", "d", "|O"],
        ["a", "b", "c", "d", "|O", 4],
        ["a", "b", "c", "d", "|O", ["4"]],
        ["a", "b", "c", "|O", [2, 2]],
        ["a", "b", "c", "|O", [3]],
        [["a", "b"], ["c"], "|O", [2, 2]],
        [["a"], ["b", "c", "d"], "|O", [2, 2]],
        ["a", "b", "c", "d", "|O", [-2, -2]],
        ["a", "b", "c", "d", "|O", [2, 2, 2]],
    ],
)
@for_each("name", ["json2", "msgpack2"])
def test_other_documents_are_codec_errors(name, document):
    render = (lambda d: json.dumps(d).encode()) if name == "json2" else msgpack.packb
    with pytest.raises(CodecError):
        bound(name, (2, 2)).decode(render(document))


def test_a_document_can_not_claim_memory():
    data = json.dumps(["a", "|O", [2**33]]).encode()
    with at_most(2**22), pytest.raises(CodecError):
        bound("json2", (1,)).decode(data)
