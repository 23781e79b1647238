"""Decode ``json2`` and ``msgpack2``: the objects of a chunk as one document (A-65).

The document is a list of the elements, of their NumPy type and of the shape of the chunk. Writers
differ in how they store more than one dimension::

    [["a","b"],["c","d"],"|O",[2,2]]    numcodecs, and with it zarr-python
    ["a","b","c","d","|O",[2,2]]        zarrita.js, which numcodecs can't read
    ["a","b","c","d","|O",[4]]          zarrdask before it wrote what numcodecs writes

All three are read.
"""

import json
from collections.abc import Mapping
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from zarrdask.errors import CodecError
from zarrdask.formats.codecs.codec import Buffer

#: The codecs whose documents these are.
NAMES = frozenset({"json2", "msgpack2"})


def decode(data: Buffer, config: Mapping[str, Any], count: int) -> np.ndarray:
    """Return the `count` objects in a document, as a 1-d array.

    `config` is the complete configuration of the codec, with its ``id``. This does not use
    numcodecs, which allocates an array of any shape in the document, and reads nested lists
    only.
    """
    name = config["id"]
    document = _parse(data, config)
    shape = document[-1] if isinstance(document, list) and len(document) >= 2 else None
    if not isinstance(shape, list) or any(
        type(length) is not int or length < 0 for length in shape
    ):
        raise CodecError(
            "the document is not a list of elements that ends with their type and shape"
        )
    if prod(shape) != count:
        raise CodecError(
            "the number of elements in the document differs from the chunk's",
            found=shape,
            expected=f"a shape of {count} elements",
        )
    # For a chunk without dimensions, msgpack2 of numcodecs stores the items of its only element,
    # which must be a list.
    listed = document[:-2]
    elements = [listed] if not shape and name == "msgpack2" else _in_a_row(listed, shape)
    if len(elements) != count:
        raise CodecError(
            "the number of elements in the document does not match its shape",
            found=len(elements),
            expected=str(count),
        )
    values = np.empty(count, object)
    values[:] = elements
    return values


def _parse(data: Buffer, config: Mapping[str, Any]) -> Any:
    if config["id"] == "json2":
        text = str(bytes(data), config["encoding"])
        return json.loads(text, strict=config["strict"])
    # Imported here, as only chunks of this codec need it.
    import msgpack

    return msgpack.unpackb(data, raw=config["raw"])


def _in_a_row(listed: list[Any], shape: list[int]) -> list[Any]:
    """Return the elements of nested lists in C order, or the list itself if it is not nested."""
    if not shape:
        return listed
    rows: list[Any] = [listed]
    for length in shape:
        if not all(isinstance(row, list) and len(row) == length for row in rows):
            return listed
        rows = list(chain.from_iterable(rows))
    return rows
