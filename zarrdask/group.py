"""Groups: nodes that hold nodes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from zarrdask import hierarchy, nodes
from zarrdask.array import Array
from zarrdask.attributes import Attributes
from zarrdask.creation import ArrayOptions, given_attributes, plan_array
from zarrdask.errors import MetadataError, NodeNotFoundError, NodeTypeError, ReadOnlyError
from zarrdask.metadata import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.opening import check_mode, create_array
from zarrdask.storage.base import Store
from zarrdask.tolerance import strictness

MODES = ("r", "r+", "a", "w", "w-")


class Group(Mapping[str, "Array | Group"]):
    """A mapping of names to arrays and groups. Make one with `open_group` or `create_group`.

    A name may be a path: ``group["a/b"]``.

    Parameters
    ----------
    store : Store
    path : str
        In the store, in normal form; "" is the root.
    metadata : GroupMetadata
    mode : {"r", "r+"}
        Whether it and its members may be changed.
    strict : bool, optional
        As in `open_group`; it holds for what is read below, too.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: GroupMetadata,
        mode: str = "r",
        *,
        strict: bool | None = None,
    ) -> None:
        self.store = store
        self.path = path
        self.metadata = metadata
        self.mode = mode
        self.strict = strict

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format it is stored in: 2, 3, or a dialect of the draft of 3."""
        return self.metadata.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user's attributes; changes are stored at once."""
        return Attributes(lambda: self.metadata.attributes, self._save_attributes)

    def _save_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.check_writable()
        # What there was to allow, or to say, was where it was opened.
        with strictness(strict=False, quiet=True):
            before = open_group(self.store, self.path, consolidated=False).metadata
        metadata = replace(before, attributes=dict(attributes))
        hierarchy.write(self.store, self.path, metadata, before=before)
        self.metadata = metadata

    def check_writable(self) -> None:
        """Check that the group was opened for changes.

        Raises
        ------
        ReadOnlyError
            If it was not.
        """
        if self.mode == "r":
            raise ReadOnlyError(
                "the group was opened for reading",
                key=hierarchy.location(self.store, self.path),
                expected='mode="r+"',
            )

    # ---- members

    def _node(self, path: str, metadata: Metadata) -> "Array | Group":
        return node(self.store, path, metadata, self.mode, strict=self.strict)

    def __getitem__(self, name: str) -> "Array | Group":
        path = self._below(name)
        with strictness(self.strict):
            metadata = None if path is None else hierarchy.read(self.store, path)
        if path is None or metadata is None:
            raise self._missing(name)
        return self._node(path, metadata)

    def _below(self, name: object) -> str | None:
        """Return the path of a name, or None if nothing below can have it."""
        try:
            path = hierarchy.join(self.path, name) if isinstance(name, str) else self.path
        except MetadataError:
            return None
        return None if path == self.path else path

    def _missing(self, name: str) -> NodeNotFoundError:
        return NodeNotFoundError(
            "there is no array or group here",
            key=f"{hierarchy.location(self.store, self.path)}/{name}",
        )

    def __contains__(self, name: object) -> bool:
        path = self._below(name)
        return path is not None and (
            hierarchy.exists(self.store, path) or hierarchy.is_implied(self.store, path)
        )

    def _members(self) -> Iterator[tuple[str, "Array | Group"]]:
        with strictness(self.strict):
            found = list(hierarchy.children(self.store, self.path))
        for name, metadata in found:
            yield name, self._node(hierarchy.join(self.path, name), metadata)

    def __iter__(self) -> Iterator[str]:
        return iter(hierarchy.member_names(self.store, self.path))

    def __len__(self) -> int:
        return len(hierarchy.member_names(self.store, self.path))

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield name and array of each array right below."""
        return ((name, found) for name, found in self._members() if isinstance(found, Array))

    def groups(self) -> Iterator[tuple[str, "Group"]]:
        """Yield name and group of each group right below."""
        return ((name, found) for name, found in self._members() if isinstance(found, Group))

    def walk(self) -> Iterator[tuple[str, "Array | Group"]]:
        """Yield path (from here) and node of everything below, parents first."""
        for name, found in self._members():
            yield name, found
            if isinstance(found, Group):
                yield from ((f"{name}/{path}", below) for path, below in found.walk())

    def tree(self) -> str:
        """Return a drawing of everything below."""
        return "\n".join([self.path or "/", *_branches(self)])

    def __delitem__(self, name: str) -> None:
        self.check_writable()
        if name not in self:
            raise self._missing(name)
        hierarchy.erase(self.store, hierarchy.join(self.path, name))

    # ---- making members

    def create_array(self, name: str, **options: Any) -> Array:
        """Create an array below; options as in `zarrdask.create_array`."""
        self.check_writable()
        options.setdefault("zarr_format", self.zarr_format)
        return create_array(self.store, hierarchy.join(self.path, name), **options)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> "Group":
        """Create a group below."""
        self.check_writable()
        metadata = GroupMetadata(self.zarr_format, given_attributes(attributes))
        path = hierarchy.join(self.path, name)
        return _create(self.store, path, metadata, overwrite=overwrite, strict=self.strict)

    def require_group(self, name: str) -> "Group":
        """Return the group below, created if there is none.

        Raises
        ------
        NodeTypeError
            If it is an array.
        """
        if name not in self:
            return self.create_group(name)
        found = self[name]
        if isinstance(found, Array):
            raise NodeTypeError("an array is here", key=found.path, found="array", expected="group")
        return found

    def require_array(self, name: str, *, shape: Any, dtype: Any, **options: Any) -> Array:
        """Return the array below, created if there is none.

        Raises
        ------
        NodeTypeError
            If it is a group.
        MetadataError
            If its shape or data type are others.
        """
        if name not in self:
            return self.create_array(name, shape=shape, dtype=dtype, **options)
        found = self[name]
        if isinstance(found, Group):
            raise NodeTypeError("a group is here", key=found.path, found="group", expected="array")
        wanted = plan_array(
            ArrayOptions(shape=shape, dtype=dtype, zarr_format=found.zarr_format, chunks=-1)
        )
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise MetadataError(
                "the array that is here is another one",
                key=found.path,
                found=(found.shape, str(found.dtype)),
                expected=f"{wanted.shape} of {wanted.dtype}",
            )
        return found

    def __repr__(self) -> str:
        return f"<zarrdask.Group {hierarchy.location(self.store, self.path)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self.store, self.path) == (other.store, other.path)

    __hash__ = None  # type: ignore[assignment]


def _branches(group: Group) -> list[str]:
    members = list(group._members())
    lines = []
    for position, (name, found) in enumerate(members):
        last = position == len(members) - 1
        text = name if isinstance(found, Group) else f"{name} {found.shape} {found.dtype}"
        lines.append(f"{'└── ' if last else '├── '}{text}")
        if isinstance(found, Group):
            lines += [f"{'    ' if last else '│   '}{line}" for line in _branches(found)]
    return lines


def node(
    store: Store, path: str, metadata: Metadata, mode: str, *, strict: bool | None = None
) -> Array | Group:
    """Return the array or group that metadata describes."""
    if isinstance(metadata, ArrayMetadata):
        return Array(store, path, metadata, mode)
    return Group(store, path, metadata, mode, strict=strict)


# --------------------------------------------------------------------------------------------
# Verbs


def open(  # noqa: A001
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    strict: bool | None = None,
    consolidated: bool | None = None,
) -> Array | Group:
    """Open whatever node is stored there: an array or a group, of any format.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        Where it is: a path, any fsspec URL, a mapping of keys to bytes, a store.
    component : str, optional
        The node's path within.
    mode : {"r", "r+"}
        Whether it may be changed.
    storage_options : dict, optional
        For fsspec.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        Whether a group's consolidated metadata are used: by default if there are any, of the
        group itself. True demands them, of the node or of a group above it; False reads each
        node's own documents.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    MetadataError, UnsupportedError
        If its metadata is wrong, or needs what isn't there.
    """
    check_mode(mode, ("r", "r+"))
    strict = hierarchy.strict_below(url, strict)
    store, path = hierarchy.locate(url, component, storage_options)
    with strictness(strict):
        store, metadata = hierarchy.find(store, path, consolidated=consolidated)
    return node(store, path, metadata, mode, strict=strict)


def open_group(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat = 3,
    strict: bool | None = None,
    consolidated: bool | None = None,
) -> Group:
    """Open a group.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    mode : {"r", "r+", "a", "w", "w-"}
        Read; change; create if there is none; replace; create, or fail if there is one.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}
        Of a group that is created.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        As in `open`.

    Raises
    ------
    NodeNotFoundError
        If nothing is there and the mode does not create.
    NodeTypeError
        If it is an array.
    """
    check_mode(mode, MODES)
    strict, new = hierarchy.strict_below(url, strict), GroupMetadata(zarr_format)
    store, path = hierarchy.locate(url, component, storage_options)
    if mode in ("w", "w-"):
        return _create(store, path, new, overwrite=mode == "w", strict=strict)
    try:
        with strictness(strict):
            store, metadata = hierarchy.find(store, path, consolidated=consolidated)
    except NodeNotFoundError:
        if mode != "a":
            raise
        return _create(store, path, new, overwrite=False, strict=strict)
    if isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "an array is here", key=hierarchy.location(store, path), found="array", expected="group"
        )
    return Group(store, path, metadata, "r" if mode == "r" else "r+", strict=strict)


def create_group(
    url: Any,
    component: str | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: ZarrFormat = 3,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Group:
    """Create a group, and groups above it where there are none.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    attributes : mapping, optional
        The user's attributes.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}
    overwrite : bool
        Whether a node that is there is removed first, with all that it holds; it is an error
        otherwise.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false.
    """
    store, path = hierarchy.locate(url, component, storage_options)
    metadata = GroupMetadata(zarr_format, given_attributes(attributes))
    strict = hierarchy.strict_below(url, None)
    return _create(store, path, metadata, overwrite=overwrite, strict=strict)


def _create(
    store: Store, path: str, metadata: GroupMetadata, *, overwrite: bool, strict: bool | None
) -> Group:
    store = nodes.create(store, path, metadata, overwrite=overwrite)
    return Group(store, path, metadata, "r+", strict=strict)
