"""Which format a node is in: every format's documents are asked for at once."""

from types import ModuleType
from typing import cast

from zarrdask.errors import MetadataError
from zarrdask.formats import v2, v3
from zarrdask.formats.base import Documents, Format
from zarrdask.metadata import Metadata

_MODULES: tuple[ModuleType, ...] = (v3, v2)
#: In order of preference, where a path holds more than one.
FORMATS: dict[int, Format] = {module.VERSION: cast(Format, module) for module in _MODULES}
#: The documents to ask for.
NAMES: tuple[str, ...] = tuple(name for form in FORMATS.values() for name in form.NAMES)
#: Those of which one must be there.
CHILD_NAMES: tuple[str, ...] = tuple(n for form in FORMATS.values() for n in form.CHILD_NAMES)


def parse(documents: Documents) -> Metadata | None:
    """Return the node that the documents describe, or None if there is none.

    Raises
    ------
    MetadataError, UnsupportedError
        If they are wrong.
    """
    for form in FORMATS.values():
        found = form.parse(documents)
        if found is not None:
            return found
    return None


def find(zarr_format: int) -> Format:
    """Return the format with a number.

    Raises
    ------
    MetadataError
        If there is none.
    """
    if zarr_format not in FORMATS:
        raise MetadataError(
            "unknown format",
            key="zarr_format",
            found=zarr_format,
            expected=" or ".join(map(str, sorted(FORMATS))),
        )
    return FORMATS[zarr_format]


def render(metadata: Metadata) -> dict[str, bytes | None]:
    """Return the documents that describe a node, in its own format."""
    return find(metadata.zarr_format).render(metadata)
