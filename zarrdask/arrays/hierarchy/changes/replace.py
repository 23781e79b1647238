"""Replace a node: the new one is written beside the old one, which stays until it is complete."""

import os
from typing import cast

from zarrdask.arrays.hierarchy.changes.change import changing
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive
from zarrdask.arrays.hierarchy.changes.removal import disown_members
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.find import version_stamp
from zarrdask.arrays.hierarchy.node_creation import create_parents
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.formats.metadata.model import Metadata
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.staged import StagedStore


class ReplacedNode(Change):
    """A node that is replaced by a new one, which is written in a hidden directory beside it.

    Parameters
    ----------
    node : StorePath
        The node to be replaced, in a `LocalStore`; see `can_stage`.
    metadata : Metadata
        The metadata of the new node.
    new : NodePath, optional
        The location of the new node, if it has been chosen already; see `staged`.
    """

    def __init__(self, node: StorePath, metadata: Metadata, new: NodePath | None = None) -> None:
        self._node, self._metadata = node, metadata
        self.new = staged(node) if new is None else new
        self._staging = cast(StagedStore, self.new.store)

    @property
    def location(self) -> str:
        """The location of the node."""
        return self._node.location

    def begin(self) -> None:
        """Create the directory and write the documents of the new node."""
        try:
            self._staging.begin()
        except OSError as error:
            raise self._failed(error) from error
        for name, value in self._metadata.render().items():
            if value is not None:
                self.new.store.set(name, value)
        self.seal()

    def seal(self) -> None:
        """Take the present documents for the documents of the new node."""
        self._stamp = version_stamp(self.new)

    def commit(self) -> None:
        """Replace the old node by the new one, unless that is done already."""
        create_parents(self._node, self._metadata)
        try:
            # A rename keeps the times and inode numbers of files, so the stamp identifies the node.
            if version_stamp(self.new) == self._stamp:
                with changing(self._node, whole=True):
                    disown_members(self._node)
                    # The marker of the old node goes with it.
                    with exclusive(self._node, "owner"):
                        self._staging.commit()
            elif version_stamp(self._node) != self._stamp:
                raise StoreError(
                    "the new node that was to replace this one no longer exists; write it again",
                    key=self.location,
                )
            # It holds the new node, or the rest of the old one.
            self._staging.remove()
        except OSError as error:
            raise error if isinstance(error, ZarrdaskError) else self._failed(error) from error

    def abort(self) -> str:
        """Remove the new node, and describe what is left."""
        unchanged = "the previous content is unchanged"
        try:
            self._staging.remove()
        except OSError as error:
            return f"{unchanged}, but the hidden directory of the new node is left: {error}"
        return unchanged

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"a new node can't be written beside this one to replace it: {error.strerror or error}",
            key=self._staging.replaces,
            found=type(error).__name__,
        )


def staged(node: StorePath) -> NodePath:
    """Return a location for a new node, which replaces another one: a hidden directory beside it.

    It is at the root of a store of its own.
    """
    return NodePath(StagedStore.beside(_directory(node)), "")


def can_stage(node: StorePath) -> bool:
    """Whether a node can be replaced by one that is written beside it.

    Its path must lead to a directory that can be renamed: on a local disk, not behind a
    symbolic link, no mount point, and in a directory that this process may change.
    """
    if type(node.store) is not LocalStore:
        return False
    try:
        node.store.check_writable(erasing=[node.path])
    except StoreError:
        return False  # Nothing is replaced behind a link.
    directory = _directory(node)
    return (
        os.path.isdir(directory)
        and not os.path.ismount(directory)
        and os.access(os.path.dirname(directory), os.W_OK | os.X_OK)
    )


def _directory(node: StorePath) -> str:
    """Return the path of the directory or link that is replaced.

    If the root is a link, that is its target; for any other node that is a link, it is the link.
    """
    root = os.path.realpath(cast(LocalStore, node.store).root)
    return os.path.join(root, *node.path.split("/")).rstrip("/") or root
