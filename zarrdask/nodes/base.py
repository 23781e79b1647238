"""What arrays and groups have in common."""

from typing import ClassVar

from zarrdask.errors import ReadOnlyError
from zarrdask.hierarchy.path import node_location
from zarrdask.storage.base import Store


class Node:
    """A stored array or group, opened in a mode.

    Attributes
    ----------
    store : Store
        The store that the node is in.
    path : str
        The path of the node in the store, in normal form; "" is the root.
    mode : {"r", "r+"}
        Whether the node may be changed ("r+") or only read ("r").
    """

    store: Store
    path: str
    mode: str
    #: What the node is, in messages.
    _kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The last part of the path, or "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def read_only(self) -> bool:
        """Whether the node was opened for reading only."""
        return self.mode == "r"

    def check_writable(self) -> None:
        """Check that the node was opened for writing."""
        if self.mode == "r":
            raise ReadOnlyError(
                f"the {self._kind} was opened for reading only",
                key=node_location(self.store, self.path),
                expected='mode="r+"',
            )
