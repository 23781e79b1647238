"""New arrays: their documents are written before their chunks, or after them."""

from dataclasses import dataclass

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.compliance import strictness
from zarrdask.errors import NodeExistsError
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.transaction import Change
from zarrdask.metadata.model import ArrayMetadata, Metadata


@dataclass(frozen=True)
class NewArray(Change):
    """A new array whose documents are written before its chunks."""

    #: The location of the array, in a store that may know what is there already.
    node: NodePath
    metadata: ArrayMetadata
    #: Whether an existing node is erased first.
    overwrite: bool
    #: Whether there was a node when the write was requested.
    existed: bool

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.node.location

    @property
    def is_blank(self) -> bool:
        """Whether chunks that were left here can be found, and are erased by `begin`."""
        is_listable = self.node.store.capabilities.listable
        return is_listable and not self.node.is_in_draft(self.metadata)

    def begin(self) -> None:
        """Erase the old node, if there is one, and write the documents."""
        node, metadata = self.node, self.metadata

        def check() -> None:
            # Of two writers that create the array, the other may be writing chunks by now.
            node.fresh.check_creation(metadata, overwrite=False)

        if not self.overwrite and not node.is_in_draft(metadata):
            erase_leftovers(node.chunks(metadata), unless=check)
        node.create(metadata, overwrite=self.overwrite)

    def abort(self) -> str:
        """Describe what the location holds now."""
        erased = "the previous content was erased; " if self.existed else ""
        return f"{erased}chunks or shards that were not written read as the fill value"


@dataclass(frozen=True)
class LateArray(Change):
    """A new array whose documents are written after its chunks."""

    #: The location of the array.
    node: NodePath
    #: The location as its hierarchy sees it.
    view: NodePath
    metadata: ArrayMetadata
    #: Whether an existing node may have to be erased first.
    erases: bool = False
    #: Whether there was a node when the write was requested.
    existed: bool = False

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.node.location

    def begin(self) -> None:
        """Erase the old node, if there is one."""
        if self.erases:
            self.view.erase()

    def commit(self) -> None:
        """Write the documents."""
        create_after_chunks(self.node, self.view, self.metadata)

    def abort(self) -> str:
        """Describe what the location holds now."""
        erased = ", and the previous content was erased" if self.existed else ""
        return f"there is no array{erased}; the next write here replaces chunks that may be left"


def create_after_chunks(
    node: NodePath, view: NodePath, metadata: Metadata, *, is_recorded: bool = False
) -> NodePath:
    """Write the documents of a new node below which all is stored; it may be done again.

    `view` is the node as its hierarchy sees it; `is_recorded` and the result are those of
    `NodePath.create`.
    """
    # Warnings about the metadata was given when the write was requested.
    with strictness(strict=False, quiet=True):
        try:
            return node.create(metadata, overwrite=False, is_recorded=is_recorded)
        except NodeExistsError:
            stored = view.stored_metadata(metadata.zarr_format)
            if stored is None or stored.render() != metadata.render():
                raise
            return view
