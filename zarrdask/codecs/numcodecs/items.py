"""The elements of ``vlen-utf8`` and ``vlen-bytes``, which are of one type of Python."""

from numbers import Number

import numpy as np

from zarrdask.errors import CodecError

#: The type of the elements that these codecs store.
ITEM_TYPES: dict[str, type] = {"vlen-utf8": str, "vlen-bytes": bytes}


def check_items(elements: np.ndarray, item: type) -> np.ndarray:
    """Return the elements as objects of Python, after a check that all have the type."""
    types = {type(element) for element in elements.flat}
    if np.ndarray in types:
        elements = python_objects(elements)
        types = {type(element) for element in elements.flat}
    others = {each for each in types if not issubclass(each, item)}
    if others:
        # numcodecs would store None and NaN as empty elements.
        raise CodecError(
            f"an element has the wrong type; the array stores {item.__name__}: {_remedy(types)}",
            found=", ".join(sorted(other.__name__ for other in others)),
            expected=item.__name__,
        )
    return elements


def _remedy(types: set[type]) -> str:
    """Return what to do with elements of these types."""
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
