"""``copy``: arrays and hierarchies to another place, or into another format."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from zarrdask.compliance import strictness
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    ZarrdaskError,
)
from zarrdask.execution.executor import Workers, check_reached, workers
from zarrdask.hierarchy.change import erase_node, remove_keys
from zarrdask.hierarchy.create import check_creation, create_node, write_consolidated
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.path import (
    inherited_strictness,
    join_path,
    key_prefix,
    locate_node,
    node_location,
)
from zarrdask.metadata.convert import Changes
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.options import check_options
from zarrdask.rewrite.copy_tasks import ArrayJob, copy_arrays
from zarrdask.rewrite.node_plan import (
    CopyReport,
    Node,
    Selection,
    chunks_at,
    converted,
    patterns,
    plan_copy,
)
from zarrdask.rewrite.upgrade import upgrade
from zarrdask.runtime.locks import place_of
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore, plain
from zarrdask.storage.resolve import options_of_each
from zarrdask.storage.v3_draft import DraftStore


def copy(
    source: Any,
    target: Any = None,
    component: str | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    overwrite: bool = False,
    in_place: bool = False,
    remove_v2: bool = False,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    on_unsupported: Literal["raise", "skip"] = "raise",
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    scheduler: Any = None,
    progress: Any = False,
    **changes: Any,
) -> CopyReport:
    """Copy an array or a whole hierarchy, into another format if that is wanted.

    Attributes, names of dimensions, fill values and consolidated metadata go with it. Where the
    encoded bytes are the same in both, they are moved without being decoded: whole units, or the
    chunks of shards where an array gets shards or loses them. Everything is checked before
    anything is written. An array's metadata are written when all of it is there.

    Parameters
    ----------
    source : Array, Group, str, os.PathLike, MutableMapping or Store
        What is copied.
    target : str, os.PathLike, MutableMapping, Store or Group
        Where to.
    component : str, optional
        The path there.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        Of the copy: as the source, if absent, or as the group that is the target.
    overwrite : bool
        Whether a node that is there is removed first; it is an error otherwise.
    in_place : bool
        Write metadata of v3 beside those of v2, and touch no chunk. There is no target then.
    remove_v2 : bool
        Whether the documents of v2 are removed afterwards. For `in_place` only.
    include, exclude : str or iterable of str, optional
        Patterns of paths from the source, as ``"*/temperature"``: the arrays that are copied, and
        the arrays and groups that are not.
    on_unsupported : {"raise", "skip"}
        What is done with nodes that can't be read, or that the format can't hold.
    storage_options : dict, optional
        Options of fsspec for the source and the target; a local path, which takes none, is left
        out.
    source_options, target_options : dict, optional
        Options of fsspec for one of the two, instead of `storage_options`.
    scheduler : str or distributed.Client, optional
        What the tasks run on: "threads", "processes", "sync", a client, or an address; what is
        current for Dask, if absent.
    progress : bool or file
        Whether to show a progress bar on standard error, or the file to write it to.
    **changes
        What is to be different in all arrays: ``chunks``, ``shards`` (False for none),
        ``codecs``, ``compressors``, ``filters``, ``dtype``, ``fill_value``,
        ``chunk_key_encoding``. See `zarrdask.metadata.convert.Changes`.

    Returns
    -------
    CopyReport
        How each array was copied, and what could not be kept. It prints.

    Raises
    ------
    UnsupportedError, MetadataError
        If a node can't be converted. Nothing is written then.
    NodeExistsError
        If there is a node at the target already, or the target is in the source.
    NodeNotFoundError
        If the source is not there.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=6, dtype="i4", chunks=2, zarr_format=2)
    >>> z[...] = 7
    >>> store = {}
    >>> report = zarrdask.copy(z, store, zarr_format=3)
    >>> report.arrays[0].way, zarrdask.open_array(store).zarr_format
    ('moved', 3)
    """
    check_options(changes, copy, Changes)
    if on_unsupported not in ("raise", "skip"):
        raise MetadataError(
            "unknown", key="on_unsupported", found=on_unsupported, expected="'raise' or 'skip'"
        )
    select = Selection(patterns(include, "include"), patterns(exclude, "exclude") or ())
    of_source, of_target = options_of_each(
        storage_options, (source, source_options), (target, target_options)
    )
    origin, skip = _find(source, of_source), on_unsupported == "skip"
    if in_place:
        _check_in_place(target, zarr_format, overwrite=overwrite, changes=sorted(changes))
        return upgrade(*origin[:3], select=select, skip=skip, remove=remove_v2)
    if target is None or remove_v2:
        raise MetadataError(
            "a copy needs a target, and leaves its source as it is; in_place=True does not",
            key="target",
            found=target,
        )
    if isinstance(target, Array | Group):
        target.check_writable()
    store, path = locate_node(target, component, of_target)
    if zarr_format is None and isinstance(target, Group):
        zarr_format = target.zarr_format
    job = _Copy(origin, plain(store), path, overwrite)
    job.check()
    become = partial(converted, zarr_format=zarr_format, **changes)
    found, skipped = plan_copy(*origin[:3], become, select=select, skip=skip)
    with workers(scheduler) as on, store.batch():
        job.check_visible(on)
        return job.do(found, skipped, on, progress)


def _check_in_place(
    target: Any, zarr_format: ZarrFormat | None, *, overwrite: bool, changes: list[str]
) -> None:
    if target is not None or changes or overwrite or zarr_format not in (None, 3):
        raise MetadataError(
            "in place only metadata of v3 are written, where the source is",
            key="in_place",
            found=target or changes or zarr_format,
            expected="no target, and no changes",
        )


class Origin(NamedTuple):
    """What is copied: where it is, and whether it has consolidated metadata."""

    store: Store
    path: str
    metadata: Metadata
    consolidated: bool


def _find(source: Any, options: dict[str, Any] | None) -> Origin:
    """Return what a user wants to have copied."""
    strict = inherited_strictness(source, None)
    store, path = locate_node(source, None, options)
    with strictness(strict):
        view, metadata = find_node(plain(store), path, consolidated="own")
    return Origin(view, path, metadata, isinstance(view, ConsolidatedStore))


def _group_notes(found: Iterable[Node]) -> list[str]:
    """Return what could not be kept of groups, each with its path."""
    groups = (node for node in found if isinstance(node.after, GroupMetadata))
    return [f"{group.path or '/'}: {note}" for group in groups for note in group.notes]


# --------------------------------------------------------------------------------------------
# To another place


@dataclass(frozen=True)
class _Copy:
    """A copy that is being made.

    Attributes
    ----------
    origin : Origin
    store, path
        Where to.
    overwrite : bool
        Whether what is there goes.
    """

    origin: Origin
    store: Store
    path: str
    overwrite: bool

    def check(self) -> None:
        """Check that the copy is not in the source, nor the other way round."""
        there = place_of(plain(self.origin.store), key_prefix(self.origin.path))
        here = place_of(self.store, key_prefix(self.path))
        if here.startswith(there) or (self.overwrite and there.startswith(here)):
            raise NodeExistsError(
                "nothing can be copied into itself, or replace what it is copied from",
                key=node_location(self.store, self.path),
                found=node_location(self.origin.store, self.origin.path),
            )

    def check_visible(self, on: Workers) -> None:
        """Check that whoever does the work can see both stores."""
        for store in (plain(self.origin.store), self.store):
            try:
                check_reached(store, on)
            except StoreError as error:
                raise StoreError(
                    "this store is in the memory of one process, others can't see it",
                    key=store.url,
                    expected='scheduler="threads"',
                ) from error

    def do(
        self, found: list[Node], skipped: list[tuple[str, str]], on: Workers, show: Any
    ) -> CopyReport:
        """Copy nodes: groups first, then chunks, and the metadata of each array at last."""
        self._make_room(found[0].after)
        store, groups = self.store, 0
        for node in found:
            path = join_path(self.path, node.path)
            if isinstance(node.after, GroupMetadata):
                store = create_node(store, path, node.after, overwrite=False)
                groups += 1
        jobs = [self._job(store, n) for n in found if isinstance(n.after, ArrayMetadata)]
        copied = copy_arrays(jobs, on, show)
        notes = _group_notes(found)
        notes += self._consolidate(store, found[0].after)
        source = node_location(self.origin.store, self.origin.path)
        target = node_location(self.store, self.path)
        return CopyReport(source, target, tuple(copied), groups, tuple(skipped), tuple(notes))

    def _make_room(self, metadata: Metadata) -> None:
        """Remove what is there, if that is wanted; it is an error otherwise."""
        check_creation(self.store, self.path, metadata, overwrite=self.overwrite)
        if not self.overwrite:
            return
        store = self.store
        try:
            store, _ = find_node(store, self.path)
        except NodeNotFoundError:
            return
        except ZarrdaskError:
            pass  # what can't be read goes, too
        prefix = key_prefix(self.path)
        if isinstance(store, DraftStore) and store.base == prefix:
            remove_keys(store.inner, self.path)
        else:
            erase_node(store, self.path)

    def _job(self, store: Store, node: Node) -> ArrayJob:
        path = join_path(self.path, node.path)
        view = check_creation(store, path, node.after, overwrite=False)
        before = join_path(self.origin.path, node.path)
        source = chunks_at(self.origin.store, before, node.before)  # type: ignore[arg-type]
        target = chunks_at(view, path, node.after)  # type: ignore[arg-type]
        return ArrayJob(node, source, target, store, path)

    def _consolidate(self, store: Store, metadata: Metadata) -> list[str]:
        if not self.origin.consolidated or isinstance(metadata, ArrayMetadata):
            return []
        if metadata.zarr_format not in (2, 3) or not store.listable:
            return ["consolidated metadata are not there: the format, or the store, has none"]
        try:
            write_consolidated(store, self.path, metadata.zarr_format)
        except MetadataError as error:
            return [f"consolidated metadata could not be written: {error}"]
        return []
