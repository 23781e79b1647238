"""Locate the node that a user names, and find it by the options of the user."""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from zarrdask import config
from zarrdask.arrays.hierarchy.find import UseConsolidated
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import normalise_path
from zarrdask.errors import MetadataError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata.detect import ANY, Search
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.model import Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import open_store

#: The endings of names of files in which a concatenation may be saved.
_SAVED = (".json", ".parquet")
#: The attribute of a group in which one is saved.
KEY = "zarrdask_concatenation"


def locate_node(
    url: Any, component: str | None, storage_options: dict[str, Any] | None
) -> NodePath:
    """Return the path of the node that a user names, and its store; the node need not exist.

    The arguments are the same as for `zarrdask.open`. An opened node is returned with its own
    store.
    """
    config.check_set()
    if component is not None and not isinstance(component, str):
        raise MetadataError(
            "a component is the path of a node; pass other arguments, such as chunks, by name",
            key="component",
            found=component,
            expected="a path, such as 'group/array'",
        )
    if isinstance(url, str | os.PathLike) and _may_be_saved(os.fsdecode(url)):
        # Imported here: few users save concatenations.
        from zarrdask.arrays.hierarchy.saved_files import open_manifest

        saved = open_manifest(url, storage_options)
        if saved is not None:
            return NodePath(saved, component or "")
    own = getattr(url, "node_path", None)
    store, path = getattr(url, "store", None), getattr(url, "path", None)
    if isinstance(own, NodePath):
        node = own
    elif store is None or not isinstance(path, str) or isinstance(url, Store):
        node = NodePath(open_store(url, storage_options), "")
    else:  # a node of zarr-python
        node = NodePath(open_store(store, storage_options), normalise_path(path))
    return node.join(component) if component else node


@dataclass(frozen=True)
class Lookup:
    """The node that a user names, and how it is read.

    `search` has the formats that the node may have, and `strict` says whether deviations from the
    specifications raise errors; if it is None, the setting does.
    """

    node: NodePath
    search: Search
    strict: bool | None

    def find(
        self,
        consolidated: bool | None,  # noqa: FBT001
        *,
        default: UseConsolidated,
    ) -> tuple[NodePath, Metadata]:
        """Return the node in the store as its hierarchy sees it, and the metadata.

        `consolidated` is the argument of the user: consolidated metadata is required, or never
        used. If it is None, `default` holds; see `UseConsolidated`.
        """
        use = default if consolidated is None else "required" if consolidated else "never"
        with nullcontext() if self.strict is None else strictness(self.strict):
            node, metadata = self.node.find(consolidated=use, search=self.search)
        if metadata.attributes and KEY in metadata.attributes:
            # Imported here: few users save concatenations.
            from zarrdask.arrays.hierarchy.saved_group import open_saved_group

            return open_saved_group(node)
        return node, metadata


def look_up(
    url: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
) -> Lookup:
    """Return where the node is that a user names, and how it is read; the node need not exist.

    The arguments are the same as for `zarrdask.open`. The members of an opened group are read as
    the group was, unless `zarr_format` and `strict` say otherwise.
    """
    search = ANY if zarr_format is None else Search(find_format(zarr_format).version, only=True)
    if not isinstance(url, str):
        inherited = getattr(url, "search", None), getattr(url, "strict", None)
        if zarr_format is None and isinstance(inherited[0], Search):
            search = inherited[0]
        if strict is None and isinstance(inherited[1], bool):
            strict = inherited[1]
    return Lookup(locate_node(url, component, storage_options), search, strict)


def _may_be_saved(url: str) -> bool:
    """Whether a concatenation may be saved at a URL: in a file that is not a document of a node."""
    return url.endswith(_SAVED) and url.rpartition("/")[2] != "zarr.json"
