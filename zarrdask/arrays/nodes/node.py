"""The base of `Array` and `Group`: location, mode and the user's attributes."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeTypeError, ReadOnlyError, no_attribute
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Store

#: Python's numbers, which have no operators for stored arrays. Objects of other types may.
_NUMBERS = (bool, int, float, complex)
#: Returns the attributes of a node after a change, given those before.
Change = Callable[[Mapping[str, Any]], dict[str, Any]]


def _operator(name: str) -> Callable[..., Any]:
    """Return the method of an operator that arrays of NumPy have and stored arrays do not."""

    def operate(self: "Node", *operands: Any) -> Any:
        if not all(isinstance(each, Node) or type(each) in _NUMBERS for each in operands):
            return NotImplemented  # arrays of NumPy and Dask take a stored array as an operand
        kind = type(self).__name__
        raise TypeError(f"{kind!r} object has no operator {name}; {self._instead}")

    return operate


class Node:
    """A stored array or group, opened in a mode.

    Attributes
    ----------
    node_path : NodePath
        The store and the path as one value, with what can be done to the node there.
    mode : {"r", "r+"}
        Whether the node may be changed ("r+") or only read ("r").
    """

    node_path: NodePath
    mode: str
    metadata: Any
    #: The kind of the node, for messages.
    _kind: ClassVar[str]
    #: Advice in the message for an attribute that does not exist.
    _instead: ClassVar[str]
    #: The replacements of attributes that other software has.
    _other_names: ClassVar[Mapping[str, str]]

    if not TYPE_CHECKING:  # For type checkers, every attribute and operator would exist.

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, self._other_names.get(name, self._instead))

        __add__ = __radd__ = __pos__ = _operator("+")
        __sub__ = __rsub__ = __neg__ = _operator("-")
        __mul__ = __rmul__ = _operator("*")
        __truediv__ = __rtruediv__ = _operator("/")
        __floordiv__ = __rfloordiv__ = _operator("//")
        __mod__ = __rmod__ = _operator("%")
        __pow__ = __rpow__ = _operator("**")
        __matmul__ = __rmatmul__ = _operator("@")
        __and__ = __rand__ = _operator("&")
        __or__ = __ror__ = _operator("|")
        __xor__ = __rxor__ = _operator("^")
        __invert__ = _operator("~")
        __abs__ = _operator("abs()")
        __lt__, __le__ = _operator("<"), _operator("<=")
        __gt__, __ge__ = _operator(">"), _operator(">=")

    @property
    def store(self) -> Store:
        """The store that the node is in."""
        return self.node_path.store

    @property
    def path(self) -> str:
        """The path of the node in the store, in normal form; "" is the root."""
        return self.node_path.path

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def read_only(self) -> bool:
        """Whether the node was opened for reading only."""
        return self.mode == "r"

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format of the node: 2, 3, "v3-draft" or "v3-draft-protocol"."""
        return self.metadata.zarr_format  # type: ignore[no-any-return]

    @property
    def attrs(self) -> "Attributes":
        """The user's attributes, a mapping. Each change is stored immediately."""
        return Attributes(self)

    def _save_attributes(self, change: Change) -> None:
        """Change the stored attributes: another writer may have changed some."""
        raise NotImplementedError


class Attributes(MutableMapping[str, Any]):
    """The user's attributes of an array or a group.

    Each change writes the documents of the node once; `update` and `put` are a single change.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def _load(self) -> Mapping[str, Any]:
        return self._node.metadata.attributes  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Any:
        # A copy, as changes inside the value would not be stored.
        return deepcopy(self._load()[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._node._save_attributes(lambda stored: {**stored, name: value})

    def __delitem__(self, name: str) -> None:
        if name not in self._load():
            raise KeyError(name)
        self._node._save_attributes(
            lambda stored: {key: stored[key] for key in stored if key != name}
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def update(self, *args: Any, **names: Any) -> None:
        """Set several attributes in one write; the arguments are the same as for `dict`."""
        changed = dict(*args, **names)
        self._node._save_attributes(lambda stored: {**stored, **changed})

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replace all attributes by others in one write."""
        self._node._save_attributes(lambda _: dict(attributes))

    def asdict(self) -> dict[str, Any]:
        """Return a copy of all attributes as a dict."""
        return deepcopy(dict(self._load()))

    def __repr__(self) -> str:
        return repr(dict(self._load()))


def check_writable(node: Node) -> None:
    """Check that a node was opened for writing; a `ReadOnlyError` otherwise."""
    if not node.store.capabilities.writable:
        node.store.check_writable()
    if node.mode == "r":
        raise ReadOnlyError(
            f"the {node._kind} was opened for reading only",
            key=node.node_path.location,
            expected='mode="r+"',
        )


def is_array_error(hint: str, location: str) -> NodeTypeError:
    """Return the error for an array where a group is needed."""
    return NodeTypeError(hint, key=location, found="array", expected="group")


def is_group_error(hint: str, location: str) -> NodeTypeError:
    """Return the error for a group where an array is needed."""
    return NodeTypeError(hint, key=location, found="group", expected="array")


def as_group(node: NodePath, metadata: Metadata) -> GroupMetadata:
    """Return the metadata of a node that must be a group."""
    if isinstance(metadata, ArrayMetadata):
        hint = "an array can't be opened as a group; open it with zarrdask.open_array"
        raise is_array_error(hint, node.location)
    return metadata
