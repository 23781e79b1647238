"""Cast values to the data type of a stored array: one rule for all writes and rewrites."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, Protocol

import numpy as np

from zarrdask import config
from zarrdask.errors import CodecError, SelectionError, UnsupportedError
from zarrdask.formats.dtypes.checked_cast import check_meaning, checked_cast
from zarrdask.formats.dtypes.fill_values import as_array
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.formats.dtypes.numpy_type import unsupported_dtype
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.losses import dtype_label


class HasLocation(Protocol):
    """An object with a location, which is rendered for errors only."""

    @property
    def location(self) -> str: ...


#: The smallest data type of each kind of Python's numbers.
_SMALLEST = {"b": "?", "i": "i1", "u": "i1", "f": "f2", "c": "c8"}

#: The kinds of data types that hold small numbers of Python; NumPy checks the range of integers.
_NUMBERS_TO: dict[type, str] = {int: "iufc", float: "fc"}
#: No floating-point type of NumPy overflows below this number.
_SMALL_NUMBER = 65504


class Casting(Enum):
    """The rule for casts: the values of the setting ``zarrdask.casting``."""

    NUMPY = "numpy"
    SAME_KIND = "same_kind"
    SAFE = "safe"
    #: No value may become another one.
    EXACT = None

    @classmethod
    def chosen(cls) -> "Casting":
        """Return the setting ``zarrdask.casting``, in a task as in the call that made the task."""
        return _REQUESTED.get() or cls(config.get("casting"))

    @contextmanager
    def requested(self) -> Iterator[None]:
        """Use this rule, of the call that this task does the work of."""
        token = _REQUESTED.set(self)
        try:
            yield
        finally:
            _REQUESTED.reset(token)

    @property
    def of_values(self) -> "Casting":
        """The rule that is applied to values of any data type: it checks each, or none."""
        return self if self is Casting.NUMPY else Casting.EXACT

    def check(self, before: np.dtype[Any], after: np.dtype[Any], target: HasLocation | str) -> None:
        """Check that the rule permits to write values of a data type to an array.

        `target` is the array, or the argument, that an error names. The rule that checks the values
        permits all data types here, but for times.

        Codecs of objects and of text check each value.
        """
        if before == after or (before.kind in "OTU" and after.kind in "OT"):
            return
        if self is Casting.NUMPY:
            return
        try:
            check_meaning(before, after)
        except CodecError as error:
            raise error.within(_name(target)) from None
        if self is not Casting.EXACT and not np.can_cast(before, after, self.value):
            raise CodecError(
                "the setting zarrdask.casting does not permit writing values of this data type to "
                f"the array; convert them first, by astype({dtype_label(after)!r}), or set it to "
                "'numpy'",
                key=_name(target),
                found=dtype_label(before),
                expected=f"a data type that NumPy casts to {dtype_label(after)} by {self.value!r}",
            )

    def cast(
        self, values: np.ndarray, dtype: np.dtype[Any], target: HasLocation | str
    ) -> np.ndarray:
        """Return values cast to the data type of an array; the same object if they have it already.

        Raises
        ------
        CodecError
            If the rule does not permit the cast: by default, if a value would become another one.
        """
        if values.dtype == dtype:
            return values
        if self is not Casting.EXACT:
            self.check(values.dtype, dtype, target)
            return values.astype(dtype)
        try:
            return checked_cast(values, dtype)
        except CodecError as error:
            raise error.within(_name(target)) from error.__cause__

    def cast_block(
        self, values: Any, shape: Shape, dtype: np.dtype[Any], target: HasLocation | str
    ) -> np.ndarray:
        """Return a block of a Dask array as it is stored.

        A function may compute blocks that differ from the declaration of Dask's array: in shape or
        data type, or because they are masked or sparse.
        """
        if type(values) is not np.ndarray:
            check_dense(values, target)
            values = _plain_array(values, target)
        if values.shape != shape:
            raise SelectionError(
                "a block has another shape than its Dask array declares; correct chunks=, "
                "drop_axis= or new_axis= where the array is made, such as in map_blocks",
                key=_name(target),
                found=values.shape,
                expected=f"{shape}",
            )
        return self.cast(values, dtype, target)


#: The rule of the call that this task does the work of; None outside of such tasks.
_REQUESTED: ContextVar[Casting | None] = ContextVar("casting", default=None)


def _name(target: HasLocation | str) -> str:
    return target if isinstance(target, str) else target.location


def _check_python_cast(value: Any, after: np.dtype[Any], target: HasLocation) -> None:
    """Check that the setting permits writing a value of Python, which can be converted.

    As in NumPy, a number of Python has a kind but no size: 1 is safe as int8, and 1.5 as float32.
    Whether it is in the range of the data type was checked when it was converted.
    """
    before = np.asarray(value).dtype
    smallest = _SMALLEST.get(before.kind) if _is_plain(value) else None
    is_safe = smallest is not None and np.can_cast(smallest, after) and after.kind not in "mM"
    if not is_safe and (smallest is None or _SMALLEST.get(kind_of(after)) != smallest):
        Casting.chosen().check(before, after, target)


def check_numpy_dtype(dtype: Any, target: HasLocation | str) -> None:
    """Check that a data type is none of pandas that has to be converted first."""
    advice = unsupported_dtype(dtype)
    if advice:
        raise UnsupportedError(
            advice.removeprefix("; "),
            key=_name(target),
            found=str(dtype),
        )


def check_dense(values: Any, target: HasLocation | str) -> None:
    """Check that no element is masked, and that values are not sparse.

    A Dask array must not have such blocks at all. A stored array has no mask: what is below it
    would be stored as if it were valid.
    """
    if type(values) is np.ndarray:
        return
    meta = getattr(values, "_meta", None)
    if hasattr(values if meta is None else meta, "__cuda_array_interface__"):
        raise UnsupportedError(
            "arrays in the memory of a device can't be stored; copy them to the host: x.get(), or "
            "x.map_blocks(lambda block: block.get()) of a Dask array",
            key=_name(target),
            found=type(values if meta is None else meta).__name__,
        )
    check_numpy_dtype(getattr(values, "dtype", None), target)
    if hasattr(values if meta is None else meta, "todense"):
        raise UnsupportedError(
            "sparse arrays can't be stored as they are; make them dense first: x.todense(), or "
            "x.map_blocks(lambda block: block.todense()) of a Dask array",
            key=_name(target),
            found=type(values if meta is None else meta).__name__,
        )
    if isinstance(meta, np.ma.MaskedArray) or (
        isinstance(values, np.ma.MaskedArray) and any(np.ma.getmaskarray(values).tobytes())
    ):
        raise UnsupportedError(
            "masked elements can't be stored; replace them by a value first, such as the fill "
            "value of the array: numpy.ma.filled(x, 0), or dask.array.ma.filled(x, 0) of a Dask "
            "array",
            key=_name(target),
            found=type(values if meta is None else meta).__name__,
        )


def _is_plain(value: Any) -> bool:
    """Whether a value or a nested list has numbers of Python only, and none of NumPy."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return not hasattr(value, "dtype")


def _plain_array(values: Any, target: HasLocation | str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UnsupportedError(
            f"a block can't be converted to an array of NumPy: {error}",
            key=_name(target),
            found=type(values).__name__,
        ) from error


def from_user(value: Any, dtype: np.dtype[Any], target: HasLocation) -> np.ndarray:
    """Return a value that a user assigns, of NumPy or Python, cast to the data type of an array."""
    if hasattr(value, "dtype"):
        values = np.asarray(value)
        return values if values.dtype == dtype else Casting.chosen().cast(values, dtype, target)
    if dtype.kind in _NUMBERS_TO.get(type(value), "") and -_SMALL_NUMBER < value < _SMALL_NUMBER:
        return as_array(value, dtype)  # every rule permits it
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
        return as_array(value, dtype)  # the array has no unit: it holds counts
    if Casting.chosen() is not Casting.EXACT:
        values = as_array(value, dtype)
        _check_python_cast(value, dtype, target)
        return values
    # NumPy checks the range of integers of Python only if they are converted directly.
    with np.errstate(over="ignore", invalid="ignore"):
        values = as_array(value, dtype)
    # A tuple is one structured value.
    before = None if dtype.names is None else _of_objects(dtype)
    Casting.EXACT.cast(np.asarray(value, before), dtype, target)
    return values


def _of_objects(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a structured data type with objects instead of numbers and texts."""
    if dtype.subdtype is not None:
        return np.dtype((_of_objects(dtype.base), dtype.shape))
    if dtype.names is None:
        return np.dtype(object)
    return np.dtype([(name, _of_objects(dtype[name])) for name in dtype.names])
