"""Levels that are added to a group that exists, as a change of a transaction."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, Journal
from zarrdask.arrays.hierarchy.changes.transaction import transaction
from zarrdask.arrays.hierarchy.claim import claimed
from zarrdask.arrays.hierarchy.node_creation import Replace
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite
from zarrdask.tools.conventions.listed import merge_conventions

#: The name of the record, which differs from the record of a rewrite of the whole group.
_RECORD = "levels"


@dataclass
class AddedLevels(Rewrite):
    """A rewrite of some arrays in a group, which has other members."""

    node: NodePath
    members: Mapping[str, ArrayMetadata]
    attributes: Mapping[str, Any]
    overwrite: bool

    def begin(self) -> None:
        """Erase the nodes that the levels replace, and store the record."""
        self.view.tidy(recursive=True)
        if not self.resumed:
            replaced: Replace = "always" if self.overwrite else "never"
            self.view.clear_members(self.members, replaced)
            self.journal.erase()
            self.journal.store()
        if self._is_early:
            self.view.create_members(self.members, has_chunks=True)
        self._has_begun = True

    def commit(self) -> None:
        """Write the last documents, then the attributes, and erase the record."""
        self.write_documents()
        change_attributes(self.node, lambda _: self.attributes)
        super().commit()


def is_adding(node: NodePath) -> bool:
    """Whether an earlier run that adds levels to a group, or updates them, was interrupted."""
    store, folder = node.beside()
    if store.capabilities.bounded or not store.capabilities.listable:
        return False
    return next(store.list_prefix(f"{folder}regions/{_RECORD}/"), None) is not None


def change_attributes(
    node: NodePath, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    """Merge the attributes that `change` returns into the attributes of a group.

    `change` takes the attributes as they are stored now: other processes may have changed them.
    """
    group = open_group(*node, mode="r+", consolidated=False)

    def updated(stored: Metadata | None) -> GroupMetadata:
        metadata = stored if isinstance(stored, GroupMetadata) else group.metadata
        attributes = _merged(metadata.attributes, change(metadata.attributes))
        return replace(metadata, attributes={**metadata.attributes, **attributes})

    if updated(group.metadata).attributes != group.metadata.attributes:
        group.node_path.update(group.zarr_format, updated)


def _merged(before: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes merged into existing ones, whose members with other names stay."""
    members = {
        name: {**before[name], **value}
        if isinstance(value, Mapping) and isinstance(before.get(name), Mapping)
        else value
        for name, value in attributes.items()
    }
    return members | merge_conventions(before, attributes)


@contextmanager
def adding_levels(
    node: NodePath,
    members: Mapping[str, ArrayMetadata],
    attributes: Mapping[str, Any],
    plan: Fingerprint,
    *,
    overwrite: bool,
    restart: bool,
) -> Iterator[Rewrite]:
    """Begin to write levels to a group, or go on with an earlier run of the same plan."""
    with ExitStack() as held:
        held.enter_context(node.lock("rewrite"))
        held.enter_context(claimed(node, members))
        held.enter_context(node.store.batch())
        journal = Journal(node, plan, members, region=_RECORD)
        resumed = journal.resume(overwrite=overwrite, restart=restart)
        change = AddedLevels(
            node, journal, resumed, node=node, members=members, attributes=attributes,
            overwrite=overwrite or restart,
        )  # fmt: skip
        with transaction([change]):
            yield change
