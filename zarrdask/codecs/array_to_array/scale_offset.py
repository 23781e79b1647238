"""``scale_offset``: (x - offset) * scale, in the arithmetic of the data type (C-59)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.codecs.array_to_array.cast import cast
from zarrdask.codecs.base import ChunkSpec, Json, Kind, parse_configuration
from zarrdask.codecs.numeric import check_number, parse_scalar
from zarrdask.dtypes.ml import kind_of, limits, name_of
from zarrdask.errors import CodecError, MetadataError

_KEY = "codec scale_offset"


@dataclass(frozen=True)
class ScaleOffsetCodec:
    """Array -> array.

    Parameters
    ----------
    offset, scale : int, float or str, optional
        As fill values of the data type are written; 0 and 1 if absent.
    """

    offset: Any = None
    scale: Any = None

    name: ClassVar[str] = "scale_offset"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    def __post_init__(self) -> None:
        for member, value in (("offset", self.offset), ("scale", self.scale)):
            if isinstance(value, bool) or not isinstance(value, int | float | str | None):
                raise MetadataError(
                    "not a number", key=f"scale_offset.{member}", found=value, expected="a scalar"
                )

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(**parse_configuration(configuration, cls.name, {"offset": None, "scale": None}))

    def to_json(self) -> Json:
        given = {"offset": self.offset, "scale": self.scale}
        members = {member: value for member, value in given.items() if value is not None}
        return {"name": self.name, "configuration": members} if members else {"name": self.name}

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        check_number(spec.dtype, self.name)
        offset, scale = self._scalars(spec.dtype)
        for member, value in (("offset", offset), ("scale", scale)):
            if not np.isfinite(float(value)) or (member == "scale" and float(value) == 0):
                raise MetadataError(
                    "this could not be undone", key=f"scale_offset.{member}", found=value
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
        room = values.dtype.type
        found: np.ndarray = (values - room(offset)) * room(scale)
        return found.astype(dtype).reshape(chunk.shape)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        dtype = spec.dtype.newbyteorder("=")
        offset, scale = self._scalars(dtype)
        if kind_of(dtype) == "f":
            unscaled = _float(chunk.reshape(-1), np.divide, scale)
            return _float(unscaled, np.add, offset).reshape(chunk.shape)
        values, least, most = _integers(chunk, dtype)
        for end in (least, most):
            _check(end // int(scale) + int(offset), dtype, end // int(scale))
        room = values.dtype.type
        if (values % room(scale)).any():
            raise CodecError("a value is no multiple of the scale", key=_KEY, expected=str(scale))
        found: np.ndarray = values // room(scale) + room(offset)
        return found.astype(dtype).reshape(chunk.shape)


def _integers(chunk: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray, int, int]:
    """Return integers as a type that NumPy computes with, the least and the greatest of them."""
    if name_of(dtype):
        dtype = np.dtype("i1" if kind_of(dtype) == "i" else "u1")
    values = chunk.reshape(-1).astype(dtype, copy=False)
    # The map is monotonic: what holds for the two ends holds for all between.
    return values, *((int(values.min()), int(values.max())) if values.size else (0, 0))


def _check(result: int, dtype: np.dtype[Any], between: int) -> None:
    low, high = limits(dtype)
    for found in (between, result):
        if not low <= found <= high:
            raise CodecError(
                "the result is out of range",
                key=_KEY,
                found=found,
                expected=f"{low} to {high} for {name_of(dtype) or dtype}",
            )


def _float(values: np.ndarray, operation: np.ufunc, operand: Any) -> np.ndarray:
    """Return the result of floating-point arithmetic, if nothing finite left the range."""
    dtype = values.dtype.newbyteorder("=")
    with np.errstate(all="ignore"):
        if name_of(dtype):
            # Some of these types would take their greatest number for what is beyond it.
            found = operation(values.astype("f8"), float(operand))
        else:
            found = operation(values.astype(dtype, copy=False), operand)
        lost = np.isfinite(values) & ~np.isfinite(found)
    if lost.any():
        raise CodecError("the result is out of range", key=_KEY, found=values[lost].flat[0].item())
    if not name_of(dtype):
        return found  # type: ignore[no-any-return]
    try:
        return cast(found, dtype, "nearest-even", None)
    except CodecError as error:
        raise CodecError(error.message, key=_KEY, found=error.found) from error
