"""Layouts: the names of the keys under which the documents and the chunks of nodes are stored.

Nodes are laid out as directories: the document of the array at ``a/b`` is ``a/b/zarr.json``, and a
chunk ``a/b/c/0/1``. The v3 draft of May 2022 keeps documents below ``meta/`` and chunks below
``data/`` (conformance B-49, B-50), its older dialect below ``meta/root/`` and ``data/root/``
(X-B17).
"""

from zarrdask.errors import MetadataError

#: The format of the draft's text, and its older dialect, which existing files use.
DRAFT, PROTOCOL = "v3-draft", "v3-draft-protocol"
#: The names of documents of the draft, as if nodes were directories.
DOCUMENTS = ARRAY, GROUP = "array.json", "group.json"
_KINDS = {ARRAY: "array", GROUP: "group"}
#: The chunk of an array without dimensions (B-47).
SCALAR = "c"


class Layout:
    """The layout of nodes as directories, which can hold nodes of several formats."""

    #: The format of all nodes, if the layout determines it.
    zarr_format: str | None = None
    #: The minor version of that format.
    minor: int = 0
    #: The names of the documents of all nodes, if the layout determines them.
    documents: tuple[str, ...] | None = None
    #: The prefix of the entry point of the hierarchy, if there is one.
    base: str | None = None
    #: The properties that, with the base, determine the layout: dialect, suffix and minor version.
    view: tuple[str, str, int] | None = None
    #: Whether groups may have consolidated metadata.
    has_consolidated: bool = True
    #: Whether names that begin with "__" are reserved for other purposes than nodes.
    reserves_names: bool = True
    #: Whether each node is a directory.
    has_directories: bool = True

    def real(self, key: str) -> str:
        """Return the key under which a value is stored."""
        return key

    def inside(self, key: str) -> str:
        """Return a key or a path relative to the root of the hierarchy."""
        return key


#: The layout of all stores but hierarchies of the draft.
DIRECTORIES = Layout()


class DraftLayout(Layout):
    """The layout of a hierarchy of the draft.

    Parameters
    ----------
    base : str
        The prefix of the hierarchy's ``zarr.json``: "" or a text that ends with "/".
    zarr_format : {"v3-draft", "v3-draft-protocol"}
        The dialect.
    suffix : str
        The suffix of the keys of documents (B-14).
    minor : int
        The minor version of the format (B-11).

    Attributes
    ----------
    meta, data : str
        The prefixes of the keys of documents, and of chunks.
    """

    documents = DOCUMENTS
    has_consolidated = False
    reserves_names = False
    has_directories = False

    def __init__(self, base: str, zarr_format: str, suffix: str, minor: int) -> None:
        self.base: str = base
        self.zarr_format: str = zarr_format
        self.suffix = suffix
        self.minor = minor
        self.view = zarr_format, suffix, minor
        self._is_older = zarr_format == PROTOCOL
        root = "root/" if self._is_older else ""
        self.meta = f"{base}meta/{root}"
        self.data = f"{base}data/{root}"

    def real(self, key: str) -> str:
        """Return the key under which a value is stored.

        >>> layout = DraftLayout("", DRAFT, ".json", 0)
        >>> layout.real("foo/baz/array.json"), layout.real("foo/baz/c0/1")
        ('meta/foo/baz.array.json', 'data/foo/baz/c0/1')
        >>> layout.real("group.json")
        'meta/group.json'
        """
        inside = self.inside(key)
        path, _, name = inside.rpartition("/")
        if name in _KINDS:
            return self._document(path, _KINDS[name])
        return self.scalar(key)[0] if name == SCALAR else self.data + inside

    def inside(self, key: str) -> str:
        if not key.startswith(self.base):
            raise MetadataError(
                "the key is outside the hierarchy",
                key=key,
                expected=f"a key that begins with {self.base!r}",
            )
        return key[len(self.base) :]

    def node_documents(self, path: str) -> dict[str, str]:
        """Return the keys of the documents of a node, by name; the path is relative to the root."""
        return {name: self._document(path, kind) for name, kind in _KINDS.items()}

    def _document(self, path: str, kind: str) -> str:
        # The root of the older dialect has the documents meta/root.array.json.
        start = self.meta + path if path or not self._is_older else self.meta.rstrip("/")
        return f"{start}{'.' if path or self._is_older else ''}{kind}{self.suffix}"

    def document_name(self, key: str) -> str | None:
        """Return the name by which a node has a document; None for other keys (B-51).

        It is the inverse of `real` for documents, except for documents of the root.
        """
        path = key[len(self.meta) :]
        for name, kind in _KINDS.items():
            if path.endswith(f".{kind}{self.suffix}"):
                return f"{self.base}{path.removesuffix(f'.{kind}{self.suffix}')}/{name}"
        return None

    def scalar(self, key: str) -> tuple[str, str]:
        """Return the two possible keys of the chunk of an array without dimensions."""
        plain = self.data + key[len(self.base) :]
        counted = f"{plain}0"
        return (counted, plain) if self._is_older else (plain, counted)

    def nodes(self, keys: list[str], prefixes: list[str]) -> set[str]:
        """Return the names of the nodes of a group, given what is below its prefix in `meta`."""
        names = set(prefixes)
        for key in keys:
            for kind in _KINDS.values():
                name = key.removesuffix(f".{kind}{self.suffix}")
                # The root's own documents have no name before the dot (X-B10).
                if name and name != key:
                    names.add(name)
        return names

    @property
    def consolidated(self) -> str | None:
        """The name that zarr-python keeps consolidated metadata under, which is no group."""
        return "consolidated" if self._is_older else None
