"""The table of formats: detect the format of a node, and which documents to request for that."""

from dataclasses import dataclass
from types import ModuleType
from typing import cast

from zarrdask.errors import MetadataError
from zarrdask.metadata import v2, v3
from zarrdask.metadata.draft import document
from zarrdask.metadata.json import Documents, Format
from zarrdask.metadata.model import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.metadata.rules import V3_RULES, FormatRules
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore

#: The table: the module of each format, the preferred one first where a path holds several.
_MODULES: tuple[ModuleType, ...] = (v3, v2)
_PLAIN: tuple[Format, ...] = tuple(cast(Format, module) for module in _MODULES)
_ALL: tuple[Format, ...] = (*_PLAIN, *document.FORMATS)
FORMATS: dict[ZarrFormat, Format] = {form.VERSION: form for form in _ALL}
#: The names of the documents to request, except in a hierarchy of the draft.
NAMES: tuple[str, ...] = tuple(name for form in _PLAIN for name in form.NAMES)
#: The names of the documents whose presence makes a node, except in a hierarchy of the draft.
CHILD_NAMES: tuple[str, ...] = tuple(n for form in _PLAIN for n in form.CHILD_NAMES)
#: The same, also in a hierarchy of the draft.
NODE_NAMES = frozenset((*CHILD_NAMES, *document.DraftFormat.CHILD_NAMES))


def names(store: Store) -> tuple[str, ...]:
    """Return the names of the documents to request in a store."""
    return document.DraftFormat.NAMES if isinstance(store, DraftStore) else NAMES


@dataclass(frozen=True)
class Search:
    """The formats that a node may have, and the order in which their documents are requested."""

    #: The format that the node is expected to have, such as that of the group above it. Its
    #: documents, and those of formats that are preferred to it, are requested first, those of other
    #: formats only where there are none. By default all are requested together.
    zarr_format: ZarrFormat | None = None
    #: Whether the documents of other formats are never requested.
    only: bool = False

    def rounds(self, store: Store) -> tuple[tuple[str, ...], ...]:
        """Return the names of the documents to request, in rounds of concurrent requests.

        A later round is made only if the earlier ones found no document of the node. So a node
        with documents of several formats has the same one, whatever format is expected.

        >>> from zarrdask.storage.memory import MemoryStore
        >>> Search(3).rounds(MemoryStore())
        (('zarr.json',), ('.zarray', '.zgroup', '.zattrs'))
        >>> Search(2).rounds(MemoryStore())
        (('zarr.json', '.zarray', '.zgroup', '.zattrs'),)
        """
        if isinstance(store, DraftStore):
            return (document.DraftFormat.NAMES,)
        if self.zarr_format is None:
            return (NAMES,)
        # The entry point of a hierarchy of the draft has the name of a v3 node.
        form = FORMATS[self.zarr_format]
        own = form.NAMES if form in _PLAIN else v3.NAMES
        if self.only:
            return (own,)
        end = NAMES.index(own[-1]) + 1
        return tuple(filter(None, (NAMES[:end], NAMES[end:])))

    def accepts(self, zarr_format: ZarrFormat) -> bool:
        """Whether the search may return a node of a format."""
        return not self.only or self.zarr_format == zarr_format


#: The search for nodes of any format, with all documents requested at once.
ANY = Search()


def is_node(documents: Documents) -> bool:
    """Whether one of the documents is one whose presence makes a node."""
    return any(documents.get(name) is not None for name in NODE_NAMES)


def other_documents(documents: Documents) -> tuple[str, ...]:
    """Return the names of the documents that a node has besides the one that makes it a node.

    >>> other_documents({".zarray": b"{}"}), other_documents({"zarr.json": b"{}"})
    (('.zattrs',), ())
    """
    forms = (form for form in _ALL if any(documents.get(n) is not None for n in form.CHILD_NAMES))
    form = next(forms, None)
    return tuple(name for name in form.NAMES if name not in form.CHILD_NAMES) if form else ()


def parse(documents: Documents, store: Store | None = None) -> Metadata | None:
    """Return the node that documents (by name) describe, or None if there is none.

    A hierarchy of the draft has nodes of one format only. In any other store, those of all other
    formats are tried, the preferred one first.
    """
    formats: tuple[Format, ...] = _PLAIN
    if isinstance(store, DraftStore):
        formats = (document.DraftFormat(store.zarr_format, store.minor),)
    for form in formats:
        metadata = form.parse(documents)
        if metadata is not None:
            if isinstance(metadata, ArrayMetadata):
                vars(metadata)["documents"] = documents
            return metadata
    return None


def find(zarr_format: ZarrFormat) -> Format:
    """Return the format with a version, such as 3."""
    if not isinstance(zarr_format, int | str) or zarr_format not in FORMATS:
        raise MetadataError(
            "unknown format",
            key="zarr_format",
            found=zarr_format,
            expected=" or ".join(sorted(map(repr, FORMATS), key=lambda name: name.strip("'"))),
        )
    return FORMATS[zarr_format]


def rules(zarr_format: ZarrFormat) -> FormatRules:
    """Return the rules of a format: the features of its arrays, and how new ones are made."""
    own_rules: FormatRules = getattr(find(zarr_format), "RULES", V3_RULES)
    return own_rules


def render(metadata: Metadata) -> dict[str, bytes | None]:
    """Return the documents that describe a node in its own format."""
    return find(metadata.zarr_format).render(metadata)
