"""The conventions by which the attributes of a group describe the levels of a pyramid."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Protocol

from zarrdask.errors import one_of
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.tools.conventions.geozarr import GeoZarr
from zarrdask.tools.conventions.ome import OmeZarr
from zarrdask.tools.pyramids.levels import Borders, Level


class Convention(Protocol):
    """How a group describes the levels of a pyramid."""

    #: The default of this convention for the end of axes that the factor does not divide.
    borders: Borders

    def adapted(self, metadata: ArrayMetadata, axes: Any = None) -> ArrayMetadata:
        """Return the metadata of an array as the convention requires, with the names of axes."""

    @property
    def attributes(self) -> Callable[..., Mapping[str, Any]]:
        """The function that returns the attributes of the group that describe the levels.

        Its arguments are the levels (the first need not be level 0), the names of the
        dimensions and the data type; ``zarr_format=`` and ``method=``; and the keyword arguments of
        `zarrdask.pyramid` that are not its own.
        """


class Plain:
    """No convention: no attributes are written."""

    borders: Borders = "partial"

    def adapted(self, metadata: ArrayMetadata, axes: Any = None) -> ArrayMetadata:
        """Return the metadata as it is."""
        return metadata

    def attributes(
        self, levels: Sequence[Level], names: Any, dtype: Any, *, zarr_format: Any, method: str
    ) -> Mapping[str, Any]:
        """Return no attributes."""
        return {}


#: The conventions by name, as `zarrdask.pyramid` takes them; None for no attributes.
CONVENTIONS: dict[str | None, Convention] = {
    "ome": OmeZarr(),
    "geozarr": GeoZarr(),
    None: Plain(),
}


def find_convention(name: str | None) -> Convention:
    """Return a convention by its name."""
    one_of(name, "convention", tuple(CONVENTIONS))
    return CONVENTIONS[name]


def arguments_of(name: str | None) -> frozenset[str]:
    """Return the names of the arguments of `zarrdask.pyramid` that belong to a convention."""
    parameters = signature(CONVENTIONS[name].attributes).parameters.values()
    names = frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    return names - {"zarr_format", "method"}
