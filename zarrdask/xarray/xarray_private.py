"""The classes of xarray that are not public: they are used in this module and nowhere else.

Everything here has a fallback for a release of xarray that moves or changes these classes;
``tests/xarray/test_xarray_private.py`` fails when that happens.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zarrdask.errors import SelectionError
from zarrdask.formats.indexing.regions import compose_axis
from zarrdask.formats.indexing.selection import Region, basic, is_basic, pick_size
from zarrdask.runtime.packages import load_module


def _find_class(name: str, *modules: str) -> type | None:
    """Return a class by name from the first of several modules that has it."""
    for module in modules:
        try:
            return getattr(load_module(module), name)  # type: ignore[no-any-return]
        except (ImportError, AttributeError):
            continue
    return None


_INDEXING, _VARIABLES = "xarray.core.indexing", "xarray.coding.variables"
#: By role: the classes that `unwrap` looks through. None where this xarray has no such class.
CLASSES: dict[str, type | None] = {
    "adapter": _find_class("ImplicitToExplicitIndexingAdapter", _INDEXING),
    "copy": _find_class("CopyOnWriteArray", _INDEXING),
    "cache": _find_class("MemoryCachedArray", _INDEXING),
    "lazy": _find_class("LazilyIndexedArray", _INDEXING),
    "function": _find_class("_ElementwiseFunctionArray", "xarray.coding.common", _VARIABLES),
    "native": _find_class("NativeEndiannessArray", _VARIABLES),
    "bool": _find_class("BoolTypeArray", _VARIABLES),
}
ROLES = {kind: role for role, kind in CLASSES.items() if kind is not None}


class LazyParts(NamedTuple):
    """A lazily decoded variable, taken apart."""

    #: The backend's array.
    array: Any
    #: The part of it that the variable holds; steps are positive.
    region: Region
    #: The elementwise functions that decode it, in the order of their application.
    functions: tuple[Callable[[np.ndarray], np.ndarray], ...]
    #: The type of the decoded elements.
    dtype: np.dtype[Any]


def unwrap(data: Any) -> LazyParts | None:
    """Take xarray's layers off a lazy array.

    The result is None if there is a layer that is not known here (a fancy index, a class of another
    release, ...): the array must then be used as a whole.
    """
    functions: list[Callable[[np.ndarray], np.ndarray]] = []
    keys: list[tuple[Any, ...]] = []
    inner = data
    while (role := ROLES.get(type(inner))) is not None:
        if role == "function":
            functions.append(inner.func)
        elif role in ("native", "bool"):
            functions.append(partial(cast, dtype=inner.dtype))
        elif role == "lazy":
            keys.append(inner.key.tuple)
        inner = inner.array
    try:
        region = _region_of(keys, inner.shape)
        dtype = np.dtype(data.dtype)
    except (AttributeError, TypeError, SelectionError):
        return None
    if region is None:
        return None
    return LazyParts(inner, region, tuple(reversed(functions)), dtype)


def cast(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values as a dtype: what xarray's casting layers do when they are read."""
    return np.asarray(values).astype(dtype, copy=False)


def _region_of(keys: list[tuple[Any, ...]], shape: tuple[int, ...]) -> Region | None:
    """Compose the keys of nested lazy arrays, the outermost first, or None if they drop axes."""
    region = basic((), shape).slices
    for key in reversed(keys):
        if not is_basic(key):
            return None
        selection = basic(key, tuple(map(pick_size, region)))
        if not selection.plain:
            return None
        region = tuple(map(compose_axis, region, selection.slices))
    return region


#: Whether xarray's engine zarr keeps the text of NumPy; older releases make objects of it.
KEEPS_TEXT = hasattr(
    _find_class("ZarrArrayWrapper", "xarray.backends.zarr"), "_preserve_string_dtype"
)


def text_dtype() -> np.dtype[Any]:
    """Return the dtype that xarray's engine zarr gives to texts of any length."""
    return np.dtypes.StringDType() if KEEPS_TEXT else vlen_dtype(str)


def vlen_dtype(element_type: type) -> np.dtype[Any]:
    """Return the dtype by which xarray marks objects that are all of one type."""
    return np.dtype("O", metadata={"element_type": element_type})
