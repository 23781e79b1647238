"""Data types: the base class, which joins a NumPy dtype, its v3 name and its fill values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.dtypes.fill_json import parse_v3, render_v3
from zarrdask.formats.dtypes.fill_values import cast, zero
from zarrdask.formats.dtypes.v2 import render_dtype
from zarrdask.formats.extension import members_of


@dataclass(frozen=True)
class DataType:
    """A data type. It is equal by value, and pickles.

    Subclasses define its name and the spelling of its fill values in v3, by default as in the
    core specification (C-31 to C-34). Codecs define the stored bytes: the ``bytes`` codec stores
    the bytes of `dtype`.

    Attributes
    ----------
    dtype : numpy.dtype
        The type of the elements in memory. For v2 and the draft it includes the byte order.
    """

    dtype: np.dtype[Any]

    #: The name of the array -> bytes codec of new arrays, unless the user chooses another.
    serializer: ClassVar[str] = "bytes"

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> "DataType":
        """Return the data type for its v3 metadata.

        Raises
        ------
        MetadataError
            If the configuration is not valid.
        """
        raise NotImplementedError

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> "DataType | None":
        """Return the data type for a NumPy dtype, or None if this class does not store it.

        By default it stores none: its types are chosen by name only.
        """
        return None

    def to_json(self) -> str | dict[str, Any]:
        """Return the v3 ``data_type``: a name, or ``{"name": ..., "configuration": ...}``.

        Raises
        ------
        UnsupportedError
            If v3 has no such type.
        """
        raise UnsupportedError(
            "Zarr v3 has no such data type",
            key="data_type",
            found=str(self.dtype),
            expected=_advice(self.dtype),
        )

    def parse_fill(self, value: Any) -> Any:
        """Return a v3 ``fill_value`` as a scalar of `dtype`.

        Raises
        ------
        MetadataError
            If the JSON value is not a valid fill value of this type.
        """
        return parse_v3(value, self.dtype)

    def render_fill(self, value: Any) -> Any:
        """Return a fill value as v3's JSON value."""
        return render_v3(value, self.dtype)

    def cast(self, value: Any) -> Any:
        """Return a user's fill value as a scalar of `dtype`.

        Raises
        ------
        MetadataError
            If the type can't hold the value without loss.
        """
        return cast(value, self.dtype)

    @property
    def default(self) -> Any:
        """The fill value of new arrays, unless the user chooses another: all bytes are zero."""
        return zero(self.dtype)


def _advice(dtype: np.dtype[Any]) -> str:
    """Return advice about a type that v3 lacks, for the error."""
    try:
        render_dtype(dtype)
    except ZarrdaskError:
        return "another data type"
    return "another data type, or zarr_format=2, which has this one"


def check_configuration(
    name: str, configuration: Mapping[str, Any], members: tuple[str, ...] = ()
) -> None:
    """Check that the configuration of a data type has exactly the expected members (C-28)."""
    members_of(configuration, f"data_type {name}", dict.fromkeys(members, ...))


def positive_integer(name: str, configuration: Mapping[str, Any], member: str, maximum: int) -> int:
    """Return an integer from 1 to `maximum` from the configuration of a data type."""
    value = configuration[member]
    if type(value) is not int or not 1 <= value <= maximum:
        raise MetadataError(
            f"invalid {member}",
            key=f"data_type {name}",
            found=value,
            expected=f"an integer from 1 to {maximum}",
        )
    return value
