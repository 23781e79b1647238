"""NumPy's times and durations: numpy.datetime64, numpy.timedelta64 (conformance C-71)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.data_type import DataType, check_configuration, positive_integer
from zarrdask.formats.dtypes.fill_values import bad_fill
from zarrdask.formats.dtypes.numpy_type import is_unitless

_KINDS = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
_NAMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}
_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
#: Microseconds with the Greek letter mu, and with the micro sign: both mean "us".
_MICRO = ("\u03bcs", "\u00b5s")
_MAX_SCALE_FACTOR = 2**31 - 1
_NAT = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class TimeCount(DataType):
    """A 64-bit count of a multiple of a unit of time: a time since 1970, or a duration."""

    def to_json(self) -> dict[str, Any]:
        unit, factor = np.datetime_data(self.dtype)
        settings = {"unit": unit, "scale_factor": factor}
        return {"name": _NAMES[self.dtype.kind], "configuration": settings}

    def parse_fill(self, value: Any) -> Any:
        count = _NAT if value == "NaT" else value
        if type(count) is not int or not -(2**63) <= count < 2**63:
            raise bad_fill(value, f"an integer of 64 bits or 'NaT' for {self.dtype}")
        return np.array(count, "i8").view(self.dtype.newbyteorder("="))[()]

    def render_fill(self, value: Any) -> Any:
        return "NaT" if np.isnat(value) else int(np.asarray(value).view("i8"))

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration, ("unit", "scale_factor"))
        unit_name = configuration["unit"]
        unit = "us" if unit_name in _MICRO else unit_name
        if unit not in _UNITS:
            raise MetadataError(
                "unknown unit of time",
                key=f"data_type {name}",
                found=unit_name,
                expected=", ".join(_UNITS),
            )
        factor = positive_integer(name, configuration, "scale_factor", _MAX_SCALE_FACTOR)
        return cls(np.dtype(f"{_KINDS[name]}[{factor}{unit}]"))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        if dtype.kind not in _NAMES:
            return None
        return cls(dtype.newbyteorder("=") if is_unitless(dtype) else dtype)
