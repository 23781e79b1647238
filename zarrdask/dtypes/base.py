"""What a data type is: a name in metadata, a NumPy dtype in memory, and fill values as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from zarrdask.dtypes.fill_values import cast, zero
from zarrdask.dtypes.v2 import render_dtype
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError


@dataclass(frozen=True)
class DataType:
    """A data type. Equal by value; pickles.

    Subclasses say how it is named and how its fill values are spelled in v3. The stored bytes
    are the affair of the codecs: under ``bytes`` they are those of `dtype`.

    Attributes
    ----------
    dtype : numpy.dtype
        Of the elements in memory; v2 and the draft also put their byte order there.
    """

    dtype: np.dtype[Any]

    #: The name of the array -> bytes codec that stores it, if the user asks for no other.
    serializer: ClassVar[str] = "bytes"

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
        """Return the scalar of `dtype` that a v3 ``fill_value`` stands for.

        Raises
        ------
        MetadataError
            If it is not a permitted fill value.
        """
        raise NotImplementedError

    def render_fill(self, value: Any) -> Any:
        """Return the JSON value of a fill value."""
        raise NotImplementedError

    def cast(self, value: Any) -> Any:
        """Return a user's fill value as a scalar of `dtype`.

        Raises
        ------
        MetadataError
            If it does not fit without loss of meaning.
        """
        return cast(value, self.dtype)

    @property
    def default(self) -> Any:
        """The fill value of an array for which none is given: all bytes zero."""
        return zero(self.dtype)


def _advice(dtype: np.dtype[Any]) -> str:
    """Return what a user can do who wants a type that v3 lacks."""
    try:
        render_dtype(dtype)
    except ZarrdaskError:
        return "another data type"
    return "another data type, or zarr_format=2, which has this one"


class DataTypeClass(Protocol):
    """A data type class, as the registry sees it; one class may serve several names."""

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> DataType:
        """Return the data type for its v3 metadata.

        Raises
        ------
        MetadataError
            If the configuration is wrong.
        """

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        """Return the data type that a NumPy dtype is stored as, or None if that is another's."""


def check_configuration(
    name: str, configuration: Mapping[str, Any], members: tuple[str, ...] = ()
) -> None:
    """Check that the configuration of a data type has just the members that it takes.

    Raises
    ------
    MetadataError
        If one is missing or unknown (conformance C-28).
    """
    if set(configuration) != set(members):
        raise MetadataError(
            f"not the configuration of {name}",
            key="data_type",
            found=dict(configuration),
            expected=f"the members {', '.join(members)}" if members else "no members",
        )


def integer(name: str, configuration: Mapping[str, Any], member: str, maximum: int) -> int:
    """Return a positive integer from the configuration of a data type.

    Raises
    ------
    MetadataError
        If it is none, or larger than `maximum`.
    """
    value = configuration[member]
    if type(value) is not int or not 1 <= value <= maximum:
        raise MetadataError(
            f"not a permitted {member}",
            key=f"data_type {name}",
            found=value,
            expected=f"an integer from 1 to {maximum}",
        )
    return value
