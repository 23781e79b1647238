"""Data types by name, and by NumPy dtype. Built-in ones are registered like users'."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.complex_pairs import NAMES as PAIRS
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.ml import BITS
from zarrdask.formats.dtypes.numeric import ALIASES, NAMES
from zarrdask.formats.dtypes.numpy_type import check_item_size, numpy_type, unsupported_dtype
from zarrdask.formats.dtypes.providers import provider
from zarrdask.formats.extension import Registry, parse_definition

_HERE = "zarrdask.formats.dtypes"
#: Names for suggestions, besides the names of numbers.
_OTHER_NAMES = ("bool", "string", "bytes", "datetime64[ns]", "timedelta64[ns]")

DATA_TYPES: Registry[type[DataType]] = Registry(
    "data type",
    "data_type",
    "zarrdask.data_types",
    dict.fromkeys([*NAMES, *ALIASES, *BITS], f"{_HERE}.numeric:Scalar")
    | dict.fromkeys(PAIRS, f"{_HERE}.complex_pairs:ComplexPair")
    | {
        "r*": f"{_HERE}.numeric:RawBytes",
        "numpy.datetime64": f"{_HERE}.datetime:TimeCount",
        "numpy.timedelta64": f"{_HERE}.datetime:TimeCount",
        "fixed_length_utf32": f"{_HERE}.text:FixedText",
        "null_terminated_bytes": f"{_HERE}.text:FixedBytes",
        "raw_bytes": f"{_HERE}.text:FixedBytes",
        "string": f"{_HERE}.text:Text",
        "bytes": f"{_HERE}.text:Bytes",
        "variable_length_bytes": f"{_HERE}.text:Bytes",
        "struct": f"{_HERE}.struct:Struct",
        "structured": f"{_HERE}.struct:Structured",
    },
    provider,
)
#: The types that are tried, in this order, to store a NumPy dtype.
_BY_DTYPE = (
    "bool",
    "r*",
    "numpy.datetime64",
    "fixed_length_utf32",
    "null_terminated_bytes",
    "complex_bfloat16",
    "struct",
)


def parse_data_type(value: Any) -> DataType:
    """Return the data type that a v3 ``data_type`` describes: a name or an object (C-18).

    An unknown name raises an error for any ``must_understand`` (C-14).
    """
    if isinstance(value, dict) and "fallback" in value:
        return _parse_either(value)
    definition = parse_definition(value, "data_type")
    name = definition.name
    data_type = DATA_TYPES.find(name).from_configuration(name, definition.configuration)
    check_item_size(data_type.dtype.itemsize, f"data_type {name}")
    return data_type


def _parse_either(value: dict[str, Any]) -> DataType:
    """Return the data type of an object with a fallback, which drafts of 2023 had (X-C11)."""
    preferred = {name: member for name, member in value.items() if name != "fallback"}
    fallback = value["fallback"]
    fallbacks = fallback if isinstance(fallback, list) else [fallback]
    name = parse_definition(preferred, "data_type").name
    selected = preferred if DATA_TYPES.get(name) is not None else None
    for item in fallbacks if selected is None else ():
        if DATA_TYPES.get(parse_definition(item, "data_type fallback").name) is not None:
            selected = item
            break
    if selected is None:
        raise DATA_TYPES.unknown(name)
    report_deviation(
        "X-C11",
        "a data type must not have a fallback",
        key="data_type",
        found=value,
        warn=selected is not preferred,
    )
    return parse_data_type(selected)


def of_dtype(dtype: np.dtype[Any]) -> DataType:
    """Return the data type that stores a NumPy dtype.

    A dtype without a v3 name becomes a plain `DataType`, which v2 and the draft can still store.

    Examples
    --------
    >>> of_dtype(np.dtype(">f4")).to_json(), of_dtype(np.dtype("V3")).to_json()
    ('float32', 'r24')
    """
    for name in _BY_DTYPE:
        data_type = DATA_TYPES.find(name).from_dtype(dtype)
        if data_type is not None:
            return data_type
    return DataType(dtype)


def find_data_type(value: Any) -> DataType:
    """Return the data type for the `dtype` argument of a user.

    That is a v3 name or object (``{"name": ..., "configuration": ...}``), a data type, or anything
    that NumPy takes as a dtype. ``str``, ``object`` and ``numpy.dtypes.StringDType()``, text of any
    length, become ``string``; the type `bytes` becomes ``bytes``.

    >>> find_data_type("string") == find_data_type(str), find_data_type("<M8[s]").to_json()["name"]
    (True, 'numpy.datetime64')
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, Mapping) and "name" in value:
        return parse_data_type(dict(value))
    if isinstance(value, str) and DATA_TYPES.get(value) is not None:
        return parse_data_type(value)
    if value is bytes:
        return parse_data_type("bytes")
    try:
        dtype = numpy_type(value)
    except ValueError as error:
        names = [*NAMES, *BITS, *_OTHER_NAMES] if isinstance(value, str) else []
        near = get_close_matches(str(value), names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else unsupported_dtype(value)
        raise MetadataError(
            f"unknown data type{hint}",
            key="dtype",
            found=value,
            expected="a NumPy dtype, or a name of v3 such as 'bfloat16'",
        ) from error
    if dtype.itemsize or dtype.kind == "V":
        check_item_size(dtype.itemsize, "dtype")
    any_text = dtype.kind in "OT" or (dtype.kind == "U" and not dtype.itemsize)
    return parse_data_type("string") if any_text else of_dtype(dtype)


def portable(data_type: DataType) -> DataType:
    """Return a data type in v3's form: in native byte order, without gaps between fields (C-69)."""
    dtype = packed(data_type.dtype).newbyteorder("=")
    return data_type if dtype == data_type.dtype else of_dtype(dtype)


def packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype without gaps between its fields, if it has any.

    >>> packed(np.dtype("u1,f4", align=True)).itemsize
    5
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((packed(base), shape))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, packed(dtype[name])) for name in dtype.names])
