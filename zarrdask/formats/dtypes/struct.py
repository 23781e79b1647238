"""``struct``: named fields without gaps between them; and its older form (C-69, C-70)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.data_type import DataType, check_configuration
from zarrdask.formats.dtypes.fill_json import parse_element
from zarrdask.formats.dtypes.fill_values import bad_fill
from zarrdask.formats.dtypes.numpy_type import check_item_size
from zarrdask.formats.dtypes.registry import of_dtype, packed, parse_data_type

Fields = tuple[tuple[str, DataType], ...]


@dataclass(frozen=True)
class Struct(DataType):
    """A data type whose elements have named fields.

    Attributes
    ----------
    fields : tuple of (str, DataType)
        The names and types of the fields, in the order of their bytes.
    """

    fields: Fields = field(default=())

    def to_json(self) -> dict[str, Any]:
        fields = [{"name": name, "data_type": kind.to_json()} for name, kind in self.fields]
        return {"name": "struct", "configuration": {"fields": fields}}

    def parse_fill(self, value: Any) -> Any:
        names = [name for name, _ in self.fields]
        if not isinstance(value, dict) or set(value) != set(names):
            raise bad_fill(value, f"an object with a fill value for each of {', '.join(names)}")
        # Joined as bytes, because an assignment to a field can change the payload of a NaN.
        parts = (np.asarray(kind.parse_fill(value[name]), kind.dtype) for name, kind in self.fields)
        return np.frombuffer(b"".join(part.tobytes() for part in parts), self.dtype)[0]

    def render_fill(self, value: Any) -> dict[str, Any]:
        return {name: kind.render_fill(value[name]) for name, kind in self.fields}

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration, ("fields",))
        return cls._of([cls._parse_field(item) for item in _listed(name, configuration["fields"])])

    @classmethod
    def _parse_field(cls, value: Any) -> tuple[Any, Any]:
        """Return the JSON values of a field's name and type."""
        if not isinstance(value, dict) or set(value) != {"name", "data_type"}:
            raise _bad_field(value, '{"name": ..., "data_type": ...}')
        return value["name"], value["data_type"]

    @classmethod
    def _of(cls, named_types: list[tuple[Any, Any]]) -> Self:
        _check_names([name for name, _ in named_types])
        fields = tuple((name, parse_data_type(kind)) for name, kind in named_types)
        for name, kind in fields:
            if kind.dtype.hasobject:
                raise MetadataError(
                    "a field must have a data type of fixed size",
                    key=f"data_type field {name}",
                    found=kind.to_json(),
                    expected="a data type of fixed size",
                )
        size = sum(kind.dtype.itemsize for _, kind in fields)
        check_item_size(size, f"data_type {cls.__name__.lower()}")
        return cls(np.dtype([(name, kind.dtype) for name, kind in fields]), fields)

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        if not dtype.names or dtype.hasobject or dtype != packed(dtype):
            return None
        fields = tuple((name, of_dtype(dtype[name])) for name in dtype.names)
        # Fields of several elements, and fields of types without a v3 name, can't be stored.
        unnamed = any(type(kind) is DataType for _, kind in fields)
        return None if unnamed else cls(dtype, fields)


@dataclass(frozen=True)
class Structured(Struct):
    """``structured``, which zarr-python 3.1 writes; written again, it becomes ``struct`` (C-70)."""

    @classmethod
    def _parse_field(cls, value: Any) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise _bad_field(value, "[name, data type]")
        return value[0], value[1]

    def parse_fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return super().parse_fill(value)
        stored = self.dtype.newbyteorder("<")
        return np.array(parse_element(value, stored), stored).astype(self.dtype)[()]


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise MetadataError(
            "invalid fields",
            key=f"data_type {name}",
            found=value,
            expected="a list of at least one",
        )
    return value


def _bad_field(value: Any, expected: str) -> MetadataError:
    return MetadataError("invalid field", key="data_type field", found=value, expected=expected)


def _check_names(names: list[Any]) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or name in seen:
            raise _bad_field(name, "a name that is not empty and that no other field has")
        seen.add(name)
