"""Complex numbers that NumPy does not have, such as complex_bfloat16 (conformance C-68).

In memory they are structured values with the fields ``re`` and ``im``. As complex64, NumPy could
compute with them, but the payload of a NaN would be lost, they would take up to eight times the
memory, and a copy would have another data type.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrdask.formats.dtypes.data_type import DataType, check_configuration
from zarrdask.formats.dtypes.fill_json import parse_v3, render_v3
from zarrdask.formats.dtypes.fill_values import bad_fill
from zarrdask.formats.dtypes.ml import BITS, dtype_named, kind_of, name_of

_PREFIX = "complex_"
#: The types that the real and imaginary part may have.
PARTS = ("float16", *(name for name in BITS if "float" in name))
NAMES = tuple(f"{_PREFIX}{part}" for part in PARTS)
_FIELDS = ("re", "im")


@dataclass(frozen=True)
class ComplexPair(DataType):
    """A complex number as a pair of narrow floats."""

    @property
    def part(self) -> np.dtype[Any]:
        """The type of the real and of the imaginary part."""
        return self.dtype["re"]

    def to_json(self) -> str:
        return f"{_PREFIX}{name_of(self.part) or self.part.name}"

    def parse_fill(self, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != 2:
            raise bad_fill(value, f"[real, imaginary] for {self.to_json()}")
        return self._join(*(parse_v3(half, self.part) for half in value))

    def render_fill(self, value: Any) -> Any:
        return [render_v3(value[field], self.part) for field in _FIELDS]

    def cast(self, value: Any) -> Any:
        if isinstance(value, int | float | complex | np.number):
            number = complex(value)
            value = (number.real, number.imag)
        return super().cast(value)

    def _join(self, real: Any, imaginary: Any) -> Any:
        halves = b"".join(np.asarray(half, self.part).tobytes() for half in (real, imaginary))
        return np.frombuffer(halves, self.dtype)[0]

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        part = name.removeprefix(_PREFIX)
        dtype = dtype_named(part) if part in BITS else np.dtype(part)
        return cls(_pair_of(dtype))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        if dtype.names != _FIELDS:
            return None
        part = dtype["re"]
        is_known = kind_of(part) == "f" and (name_of(part) or part.name) in PARTS
        return cls(dtype) if is_known and dtype == _pair_of(part) else None


def _pair_of(part: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([(field, part) for field in _FIELDS])
