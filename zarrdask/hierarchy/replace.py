"""Replace a node: the new one is written beside the old one, which stays until it is complete."""

import os
from typing import cast

from zarrdask.errors import StoreError
from zarrdask.hierarchy.change import changing
from zarrdask.hierarchy.find import version_stamp
from zarrdask.hierarchy.path import StorePath
from zarrdask.metadata.json import Documents
from zarrdask.storage.atomic import beside, tidy
from zarrdask.storage.local import LocalStore
from zarrdask.storage.staged import StagedStore, remove_directory, replace_directory


class Stage:
    """A new node in a hidden directory beside the node that it will replace.

    Parameters
    ----------
    node : StorePath
        The node to be replaced, in a `LocalStore`; see `can_stage`.

    Attributes
    ----------
    inner : StagedStore
        The store of the hidden directory. The new node is written at its root.
    """

    def __init__(self, node: StorePath) -> None:
        self.node = node
        self._old = _directory(node)
        self.inner = StagedStore(beside(self._old))

    def begin(self, documents: Documents) -> None:
        """Create the directory and write the documents of the new node."""
        tidy(os.path.dirname(self._old))
        try:
            os.mkdir(self.inner.root)
        except OSError as error:
            raise self._failed(error) from error
        for name, value in documents.items():
            if value is not None:
                self.inner.set(name, value)
        self.seal()

    def seal(self) -> None:
        """Take the documents as they are now for those of the new node."""
        self._stamp = version_stamp(StorePath(self.inner, ""))

    def finish(self) -> None:
        """Replace the old node by the new one, unless that is done already."""
        try:
            # A rename keeps the times and inode numbers of files, so the stamp identifies the node.
            if version_stamp(StorePath(self.inner, "")) == self._stamp:
                with changing(self.node, whole=True):
                    replace_directory(self.inner.root, self._old)
            elif version_stamp(self.node) != self._stamp:
                raise StoreError(
                    "the new node that was to replace this one no longer exists; write it again",
                    key=self.node.location,
                )
            self.give_up()
        except OSError as error:
            raise error if isinstance(error, StoreError) else self._failed(error) from error

    def give_up(self) -> None:
        """Remove the hidden directory, with the new node or the rest of the old one."""
        remove_directory(self.inner.root)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"a new node can't be written beside this one to replace it: {error.strerror or error}",
            key=self._old,
            found=type(error).__name__,
        )


def can_stage(node: StorePath) -> bool:
    """Whether a node can be replaced by one that is written beside it.

    Its path must be that of a directory that can be renamed: on a local disk, not behind a
    symbolic link, no mount point, and in a directory that this process may change.
    """
    if type(node.store) is not LocalStore:
        return False
    try:
        node.store.check_erasable([node.path])
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

    That is the target of a root that is a link, but the link of any other node that is one.
    """
    root = os.path.realpath(cast(LocalStore, node.store).root)
    return os.path.join(root, *node.path.split("/")).rstrip("/") or root
