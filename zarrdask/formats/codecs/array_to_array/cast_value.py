"""``cast_value``: convert numbers to another data type (C-57, C-58)."""

from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import CodecError, MetadataError, one_of
from zarrdask.formats.codecs.array_to_array.cast import ROUNDINGS, OutOfRange, Rounding, cast
from zarrdask.formats.codecs.codec import ChunkSpec, Configured, Json, Kind, parse_configuration
from zarrdask.formats.codecs.numeric import check_number, parse_scalar
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.formats.dtypes.registry import parse_data_type

#: Pairs of JSON scalars: a number, and the number that replaces it.
Pairs = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class CastValueCodec(Configured):
    """Array -> array.

    Parameters
    ----------
    data_type : DataType
        The stored data type.
    rounding : str
        How numbers are rounded that the data type can't represent: "nearest-even" (the default),
        "nearest-away", "towards-zero", "towards-positive" or "towards-negative".
    out_of_range : {"clamp", "wrap"}, optional
        How numbers outside the range of the data type are converted; by default, they raise an
        error.
    encode_map, decode_map : tuple of pairs
        Numbers, as JSON fill values, and their replacements, which are used instead of a
        conversion. The first pair that matches is used.
    """

    data_type: DataType
    rounding: Rounding = "nearest-even"
    out_of_range: OutOfRange = None
    encode_map: Pairs = ()
    decode_map: Pairs = ()

    name: ClassVar[str] = "cast_value"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {
            "data_type": ...,
            "rounding": "nearest-even",
            "out_of_range": None,
            "scalar_map": None,
        }
        members = parse_configuration(configuration, cls.name, defaults)
        maps = _parse_maps(members["scalar_map"])
        return cls(
            parse_data_type(members["data_type"]),
            one_of(members["rounding"], "cast_value.rounding", ROUNDINGS),
            one_of(members["out_of_range"], "cast_value.out_of_range", (None, "clamp", "wrap")),
            maps.get("encode", ()),
            maps.get("decode", ()),
        )

    def to_json(self) -> Json:
        members = super().to_json()["configuration"]
        maps = {name: members.pop(f"{name}_map") for name in ("encode", "decode")}
        if members["rounding"] == "nearest-even":
            del members["rounding"]
        if any(maps.values()):
            members["scalar_map"] = {name: pairs for name, pairs in maps.items() if pairs}
        return {"name": self.name, "configuration": members}

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        stored = self.data_type.dtype
        for dtype in (spec.dtype, stored):
            check_number(dtype)
        if self.out_of_range == "wrap" and kind_of(stored) == "f":
            raise _bad("out_of_range", "wrap", f"'clamp': {stored} has no modulus")
        _parse_pairs(self.encode_map, spec.dtype, stored)
        _parse_pairs(self.decode_map, stored, spec.dtype)
        return ChunkSpec(spec.shape, stored, self._cast_fill(spec))

    def _cast_fill(self, spec: ChunkSpec) -> Any:
        """Return the fill value as it is stored."""
        fill = np.array(spec.fill_value, spec.dtype)
        try:
            stored = self.encode(fill)
            back = self.decode(stored, ChunkSpec((), spec.dtype, spec.fill_value))[()]
        except CodecError as error:
            raise MetadataError(
                f"the fill value can't be cast: {error}", key="cast_value", found=spec.fill_value
            ) from error
        if back != fill[()] and not (isnan(back) and isnan(fill[()])):
            raise MetadataError(
                "the fill value changes when it is cast and cast back",
                key="cast_value",
                found=spec.fill_value,
                expected=f"a value such as {back!r}",
            )
        return stored[()]

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        return self._cast(chunk, self.data_type.dtype, self.encode_map, self.out_of_range)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        wraps = self.out_of_range == "wrap" and kind_of(spec.dtype) == "f"
        out_of_range = None if wraps else self.out_of_range
        return self._cast(chunk, spec.dtype, self.decode_map, out_of_range)

    def _cast(
        self, chunk: np.ndarray, dtype: np.dtype[Any], pairs: Pairs, out_of_range: OutOfRange
    ) -> np.ndarray:
        if not pairs:
            return cast(chunk, dtype, self.rounding, out_of_range)
        result = np.empty(chunk.shape, dtype)
        left = np.ones(chunk.shape, bool)
        for old, new in _parse_pairs(pairs, chunk.dtype, dtype):
            here = left & (np.isnan(chunk) if isnan(old) else chunk == old)
            result[here] = new
            left &= ~here
        result[left] = cast(chunk[left], dtype, self.rounding, out_of_range)
        return result


def _bad(member: str, value: Any, expected: str) -> MetadataError:
    return MetadataError(
        "this value is not permitted", key=f"cast_value.{member}", found=value, expected=expected
    )


def _parse_maps(value: Any) -> dict[str, Pairs]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not set(value) <= {"encode", "decode"}:
        raise _bad("scalar_map", value, '{"encode": [[from, to], ...], "decode": [...]}')
    for pairs in value.values():
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs
        ):
            raise _bad("scalar_map", pairs, "a list of pairs")
    return {direction: tuple((old, new) for old, new in value[direction]) for direction in value}


def _parse_pairs(
    pairs: Pairs, before: np.dtype[Any], after: np.dtype[Any]
) -> list[tuple[Any, Any]]:
    key = "cast_value.scalar_map"
    return [(parse_scalar(old, before, key), parse_scalar(new, after, key)) for old, new in pairs]
