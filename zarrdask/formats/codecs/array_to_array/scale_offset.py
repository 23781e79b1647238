"""``scale_offset``: (x - offset) * scale, in the arithmetic of the data type (C-59)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.array_to_array.cast import cast
from zarrdask.formats.codecs.codec import ChunkSpec, Configured, Kind
from zarrdask.formats.codecs.numeric import check_number, parse_scalar
from zarrdask.formats.dtypes.ml import kind_of, limits, name_of


@dataclass(frozen=True)
class ScaleOffsetCodec(Configured):
    """Array -> array.

    Parameters
    ----------
    offset, scale : int, float or str, optional
        The numbers, written as fill values of the data type; 0 and 1 by default.
    """

    offset: Any = None
    scale: Any = None

    name: ClassVar[str] = "scale_offset"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    def __post_init__(self) -> None:
        for member, value in (("offset", self.offset), ("scale", self.scale)):
            if isinstance(value, bool) or not isinstance(value, int | float | str | None):
                raise MetadataError(
                    "the value must be a number",
                    key=f"scale_offset.{member}",
                    found=value,
                    expected="a number, or a text such as 'NaN'",
                )

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        check_number(spec.dtype)
        offset, scale = self._scalars(spec.dtype)
        for member, value in (("offset", offset), ("scale", scale)):
            if not np.isfinite(float(value)) or (member == "scale" and float(value) == 0):
                raise MetadataError(
                    "chunks could not be decoded with this number",
                    key=f"scale_offset.{member}",
                    found=value,
                    expected="a finite number, which is not 0 if it is the scale",
                )
        try:
            fill = self.encode(np.array(spec.fill_value, spec.dtype))[()]
        except CodecError as error:
            raise MetadataError(
                f"the fill value can't be encoded: {error}",
                key="scale_offset",
                found=spec.fill_value,
            ) from error
        return ChunkSpec(spec.shape, spec.dtype, fill)

    def _scalars(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        offset = 0 if self.offset is None else self.offset
        scale = 1 if self.scale is None else self.scale
        return (
            parse_scalar(offset, dtype, "scale_offset.offset"),
            parse_scalar(scale, dtype, "scale_offset.scale"),
        )

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        dtype = chunk.dtype.newbyteorder("=")
        offset, scale = self._scalars(dtype)
        if kind_of(dtype) == "f":
            shifted = _float(chunk.reshape(-1), np.subtract, offset)
            return _float(shifted, np.multiply, scale).reshape(chunk.shape)
        values, least, most = _integers(chunk, dtype)
        for end in (least, most):
            _check((end - int(offset)) * int(scale), dtype, end - int(offset))
        scalar = values.dtype.type
        encoded: np.ndarray = (values - scalar(offset)) * scalar(scale)
        return encoded.astype(dtype).reshape(chunk.shape)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        dtype = spec.dtype.newbyteorder("=")
        offset, scale = self._scalars(dtype)
        if kind_of(dtype) == "f":
            unscaled = _float(chunk.reshape(-1), np.divide, scale)
            return _float(unscaled, np.add, offset).reshape(chunk.shape)
        values, least, most = _integers(chunk, dtype)
        for end in (least, most):
            _check(end // int(scale) + int(offset), dtype, end // int(scale))
        scalar = values.dtype.type
        if (values % scalar(scale)).any():
            raise CodecError(
                "a value is not a multiple of the scale", expected=f"multiples of {scale}"
            )
        decoded: np.ndarray = values // scalar(scale) + scalar(offset)
        return decoded.astype(dtype).reshape(chunk.shape)


def _integers(chunk: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray, int, int]:
    """Return integers in a type that NumPy can compute with, and their minimum and maximum."""
    if name_of(dtype):
        dtype = np.dtype("i1" if kind_of(dtype) == "i" else "u1")
    values = chunk.reshape(-1).astype(dtype, copy=False)
    # The operation is monotonic: if the results for these two are in range, all others are.
    return values, *((int(values.min()), int(values.max())) if values.size else (0, 0))


def _check(result: int, dtype: np.dtype[Any], between: int) -> None:
    low, high = limits(dtype)
    for number in (between, result):
        if not low <= number <= high:
            raise CodecError(
                "the result is out of range",
                found=number,
                expected=f"{low} to {high} for {name_of(dtype) or dtype}",
            )


def _float(values: np.ndarray, operation: np.ufunc, operand: Any) -> np.ndarray:
    """Return the result of floating-point arithmetic, unless a finite number overflows."""
    dtype = values.dtype.newbyteorder("=")
    with np.errstate(all="ignore"):
        if name_of(dtype):
            # In some of these types, an overflow results in the highest number.
            result = operation(values.astype("f8"), float(operand))
        else:
            result = operation(values.astype(dtype, copy=False), operand)
        overflows = np.isfinite(values) & ~np.isfinite(result)
    if overflows.any():
        raise CodecError("the result is out of range", found=values[overflows].flat[0].item())
    if not name_of(dtype):
        return result  # type: ignore[no-any-return]
    try:
        return cast(result, dtype, "nearest-even", None)
    except CodecError as error:
        raise CodecError(error.message, found=error.found) from error
