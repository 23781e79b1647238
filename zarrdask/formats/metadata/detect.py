"""Detect the format of a node, and list the documents to request for that."""

from dataclasses import dataclass
from functools import cache

from zarrdask.formats.metadata.formats import find_format, formats
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import ArrayMetadata, Known, Metadata, ZarrFormat
from zarrdask.formats.metadata.node_layout import DIRECTORIES, DOCUMENTS, Layout


@cache
def all_names() -> tuple[str, ...]:
    """Return the names of the documents to request, except in a hierarchy of the draft."""
    return tuple(name for form in formats() for name in form.documents)


@cache
def entry_names() -> tuple[str, ...]:
    """Return the names of the documents that make nodes, except in a hierarchy of the draft."""
    return tuple(name for form in formats() for name in form.node_documents)


@cache
def node_names() -> frozenset[str]:
    """Return the names of the documents whose presence makes a node."""
    return frozenset((*entry_names(), *DOCUMENTS))


def names(layout: Layout) -> tuple[str, ...]:
    """Return the names of the documents to request, where nodes have a layout."""
    return layout.documents or all_names()


@dataclass(frozen=True)
class Search:
    """The formats that a node may have, and the order in which their documents are requested."""

    #: The format that the node is expected to have, such as the format of the group above
    #: it. Its documents and the documents of preferred formats are requested first, other documents
    #: only where these are missing. By default all are requested together.
    zarr_format: ZarrFormat | None = None
    #: Whether the documents of other formats are never requested.
    only: bool = False

    def rounds(self, layout: Layout = DIRECTORIES) -> tuple[tuple[str, ...], ...]:
        """Return the names of the documents to request, in rounds of concurrent requests.

        A later round is made only if the earlier ones found no document of the node. So a node with
        documents of several formats has the same format for any expected one.

        >>> Search(3).rounds()
        (('zarr.json',), ('.zarray', '.zgroup', '.zattrs'))
        >>> Search(2).rounds()
        (('zarr.json', '.zarray', '.zgroup', '.zattrs'),)
        """
        requested = layout.documents or all_names()
        if self.zarr_format is None or layout.documents:
            return (requested,)
        own = find_format(self.zarr_format).entry_documents
        if self.only:
            return (own,)
        end = requested.index(own[-1]) + 1
        return tuple(filter(None, (requested[:end], requested[end:])))

    def accepts(self, zarr_format: ZarrFormat) -> bool:
        """Whether the search may return a node of a format."""
        return not self.only or self.zarr_format == zarr_format

    @property
    def enters_hierarchies(self) -> bool:
        """Whether the node may be one that is found from the entry point of its hierarchy."""
        if not self.only or self.zarr_format is None:
            return True
        return find_format(self.zarr_format).has_entry_point


#: The search for nodes of any format, with all documents requested at once.
ANY = Search()


def is_node(documents: Documents, name: str | None = None) -> bool:
    """Whether one of the documents is one whose presence makes a node.

    With a `name`, that is a node of a format that does not reserve this name.
    """
    makes_node = node_names()
    if name is not None:
        free = (form for form in formats() if not form.is_reserved(name))
        makes_node = frozenset(each for form in free for each in form.node_documents)
    return any(data is not None and each in makes_node for each, data in documents.items())


def other_documents(documents: Documents) -> tuple[str, ...]:
    """Return the names of the documents that a node has besides the one that makes it a node.

    >>> other_documents({".zarray": b"{}"}), other_documents({"zarr.json": b"{}"})
    (('.zattrs',), ())
    """
    for form in formats():
        if any(documents.get(name) is not None for name in form.node_documents):
            return tuple(name for name in form.documents if name not in form.node_documents)
    return ()


def other_nodes(documents: Documents, metadata: Metadata) -> list[str]:
    """Return the names of documents that make nodes of other formats at the same path."""
    return [
        name
        for form in formats()
        if form.version != metadata.zarr_format
        for name in form.node_documents
        if documents.get(name) is not None
    ]


def parse(
    documents: Documents, layout: Layout = DIRECTORIES, known: Known | None = None
) -> Metadata | None:
    """Return the node that documents (by name) describe, or None if there is none.

    A hierarchy of the draft has nodes of one format only. In any other layout, all other formats
    are tried, the preferred one first. Arrays share parts of metadata in `known`, if given.
    """
    metadata = None
    if layout.zarr_format is not None:
        metadata = find_format(layout.zarr_format).parse(documents, layout.minor)
    else:
        for form in formats():
            metadata = (
                form.parse(documents) if known is None else form.parse_shared(documents, known)
            )
            if metadata is not None:
                break
    if isinstance(metadata, ArrayMetadata):
        vars(metadata)["documents"] = documents
    return metadata
