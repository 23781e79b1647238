"""The elements of ``vlen-utf8`` and ``vlen-bytes``, which are of one type of Python."""

from numbers import Number
from typing import Any

import numpy as np

from zarrdask.errors import CodecError

#: The type of the elements that these codecs store.
ITEM_TYPES: dict[str, type] = {"vlen-utf8": str, "vlen-bytes": bytes}


def check_items(elements: np.ndarray, item: type, fill_value: Any) -> np.ndarray:
    """Return the elements as objects of Python, after a check that all have the type.

    The fill value, which is 0 in arrays of zarr-python 2, is stored as an empty element.
    """
    others = _other_types(elements, item, fill_value)
    if np.ndarray in others:
        elements = python_objects(elements)
        others = _other_types(elements, item, fill_value)
    if others:
        # numcodecs would store None as an empty element.
        remedy = _remedy({type(element) for element in elements.flat})
        raise CodecError(
            f"an element has the wrong type; the array stores {item.__name__}: {remedy}",
            found=", ".join(sorted(other.__name__ for other in others)),
            expected=item.__name__,
        )
    return elements


def _other_types(elements: np.ndarray, item: type, fill_value: Any) -> set[type]:
    """Return the types of elements that are neither items nor the fill value."""
    return {
        type(element)
        for element in elements.flat
        if not isinstance(element, item)
        and not (type(element) is type(fill_value) and element == fill_value)
    }


def _remedy(types: set[type]) -> str:
    """Return advice for elements of these types."""
    if all(issubclass(each, Number | np.number | np.bool_) for each in types):
        return "store numbers with dtype='float64', or another data type of numbers"
    if types == {bytes}:
        return "store bytes with dtype=bytes"
    return "convert all elements first, or store any objects by zarr_format=2, filters=['json2']"


def python_objects(chunk: np.ndarray) -> np.ndarray:
    """Return a chunk of objects in which Python objects replace NumPy scalars and 0-d arrays."""
    objects = np.empty(chunk.size, object)
    for position, element in enumerate(chunk.flat):
        scalar = isinstance(element, np.generic) or (
            isinstance(element, np.ndarray) and not element.ndim
        )
        objects[position] = element.item() if scalar else element
    return objects.reshape(chunk.shape)
