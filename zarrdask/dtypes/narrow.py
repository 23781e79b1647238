"""Numbers narrower than NumPy's: bfloat16, float8, float6, float4, int4, int2 ... (C-68).

In memory they have the types of the package ml_dtypes, which is optional.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrdask.dtypes.base import DataType, check_configuration
from zarrdask.dtypes.ml import dtype_named, name_of
from zarrdask.dtypes.numeric import CoreType


@dataclass(frozen=True)
class NarrowNumber(CoreType):
    """A number type of ml_dtypes, which has the same name in v3."""

    def to_json(self) -> str:
        return str(name_of(self.dtype))

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        return cls(dtype_named(name))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        return None if name_of(dtype) is None else cls(dtype)
