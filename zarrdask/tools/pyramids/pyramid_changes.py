"""Levels that are added to a group that exists: a rewrite of some of its members."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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
    replaced: Replace = "always" if overwrite or restart else "never"
    with node.lock("rewrite"), claimed(node, members) as claim, node.store.batch():
        journal = Journal(node, plan, members, region=_RECORD)
        resumed = journal.resume(overwrite=overwrite, restart=restart)

        def prepare() -> NodePath:
            if not resumed:
                node.tidy(recursive=True)
                node.clear_members(members, replaced)
            journal.begin(resumed=resumed)
            if node.store.capabilities.bounded:
                node.create_members(members, has_chunks=True)
            return node

        rewrite = Rewrite(node, journal, resumed, prepare, claim=claim)
        rewrite.completions.append(partial(change_attributes, node, lambda _: attributes))
        with transaction([rewrite]):
            yield rewrite
