"""A node that is written beside the one that it replaces, which stays until the new one is done."""

import os

from zarrdask.errors import StoreError
from zarrdask.hierarchy.consolidated import changing
from zarrdask.hierarchy.find import version_stamp
from zarrdask.hierarchy.path import node_location
from zarrdask.metadata.json import Documents
from zarrdask.storage.atomic import tidy
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.staged import StagedStore, beside, remove_directory, replace_directory
from zarrdask.storage.v3_draft import DraftStore


class Stage:
    """A directory, which no listing shows, beside that of a node.

    Parameters
    ----------
    store : LocalStore
    path : str
        Of the node that is to be replaced.
    """

    def __init__(self, store: LocalStore, path: str) -> None:
        self.store = store
        self.path = path
        self._old = _directory(store, path)
        #: Where the new node is written, at the root.
        self.inner = StagedStore(beside(self._old))
        self._stamp = ""

    def begin(self, documents: Documents) -> None:
        """Make the directory, with the documents of the new node.

        Raises
        ------
        StoreError
            If it can't be made.
        """
        tidy(os.path.dirname(self._old))
        try:
            os.mkdir(self.inner.root)
        except OSError as error:
            raise self._failed(error) from error
        for name, value in documents.items():
            if value is not None:
                self.inner.set(name, value)
        self._stamp = version_stamp(self.inner, "")

    def finish(self) -> None:
        """Put the new node in the place of the old one; if that was done already, nothing.

        Raises
        ------
        StoreError
            If it can't be done, or the new node was given up.
        """
        try:
            # A rename leaves a file's times and its number as they are: they tell which node it is.
            if version_stamp(self.inner, "") == self._stamp:
                with changing(self.store, self.path, whole=True):
                    replace_directory(self.inner.root, self._old)
            elif version_stamp(self.store, self.path) != self._stamp:
                raise StoreError(
                    "what was to replace this node is no longer there",
                    key=node_location(self.store, self.path),
                )
            self.give_up()
        except OSError as error:
            raise error if isinstance(error, StoreError) else self._failed(error) from error

    def give_up(self) -> None:
        """Remove the new node, or what is left of the old one."""
        remove_directory(self.inner.root)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"a node can't be replaced by one that is written beside it: {error.strerror or error}",
            key=self._old,
            found=type(error).__name__,
        )


def can_stage(store: Store, path: str) -> bool:
    """Whether a node can be replaced by one that is written beside it.

    Its path must be that of a directory that can be renamed: on a local disk, not behind a
    symbolic link, no mount point, and in a directory that this process may change.
    """
    if type(store) is not LocalStore or isinstance(store, DraftStore):
        return False
    try:
        store.check_erasable([path])
    except StoreError:
        return False  # Nothing is replaced behind a link.
    directory = _directory(store, path)
    return (
        os.path.isdir(directory)
        and not os.path.ismount(directory)
        and os.access(os.path.dirname(directory), os.W_OK | os.X_OK)
    )


def _directory(store: LocalStore, path: str) -> str:
    """Return the path of the directory or link that is replaced.

    That is the target of a root that is a link, but the link of any other node that is one.
    """
    root = os.path.realpath(store.root)
    return os.path.join(root, *path.split("/")).rstrip("/") or root
