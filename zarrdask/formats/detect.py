"""Which format a node is in: every format's documents are asked for at once."""

from types import ModuleType
from typing import cast

from zarrdask.errors import MetadataError
from zarrdask.formats import v2, v3, v3_draft
from zarrdask.formats.base import Documents, Format
from zarrdask.metadata import Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.draft import DraftStore

_MODULES: tuple[ModuleType, ...] = (v3, v2)
#: In order of preference, where a path holds more than one.
_PLAIN: tuple[Format, ...] = tuple(cast(Format, module) for module in _MODULES)
_ALL: tuple[Format, ...] = (*_PLAIN, *v3_draft.FORMATS)
FORMATS: dict[ZarrFormat, Format] = {form.VERSION: form for form in _ALL}
#: The documents to ask for, but in a hierarchy of the draft.
NAMES: tuple[str, ...] = tuple(name for form in _PLAIN for name in form.NAMES)
#: Those of which one must be there.
CHILD_NAMES: tuple[str, ...] = tuple(n for form in _PLAIN for n in form.CHILD_NAMES)


def formats_of(store: Store) -> tuple[Format, ...]:
    """Return the formats that nodes of a store may have; in a hierarchy of the draft that is one.

    In order of preference, where a path holds more than one.
    """
    if isinstance(store, DraftStore):
        return (v3_draft.DraftFormat(store.zarr_format, store.minor),)
    return _PLAIN


def names(store: Store) -> tuple[str, ...]:
    """Return the documents to ask for in a store."""
    return v3_draft.DraftFormat.NAMES if isinstance(store, DraftStore) else NAMES


def parse(documents: Documents, formats: tuple[Format, ...] = _PLAIN) -> Metadata | None:
    """Return the node that the documents describe, or None if there is none.

    Parameters
    ----------
    formats : tuple of Format
        As `formats_of` gives them.

    Raises
    ------
    MetadataError, UnsupportedError
        If they are wrong.
    """
    for form in formats:
        found = form.parse(documents)
        if found is not None:
            return found
    return None


def passed_over(documents: Documents, found: Metadata) -> list[str]:
    """Return the documents of another format than the one that a node was read in."""
    own = find(found.zarr_format)
    return [
        name
        for form in _PLAIN
        if form is not own
        for name in form.CHILD_NAMES
        if name not in own.NAMES and documents.get(name) is not None
    ]


def find(zarr_format: ZarrFormat) -> Format:
    """Return the format with a number.

    Raises
    ------
    MetadataError
        If there is none.
    """
    if not isinstance(zarr_format, int | str) or zarr_format not in FORMATS:
        raise MetadataError(
            "unknown format",
            key="zarr_format",
            found=zarr_format,
            expected=" or ".join(sorted(map(repr, FORMATS), key=lambda name: name.strip("'"))),
        )
    return FORMATS[zarr_format]


def render(metadata: Metadata) -> dict[str, bytes | None]:
    """Return the documents that describe a node, in its own format."""
    return find(metadata.zarr_format).render(metadata)
