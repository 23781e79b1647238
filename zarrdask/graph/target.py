"""Where a Dask array goes: what is done before its blocks are written, afterwards, and if not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import dask.array as da

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import Beyond
from zarrdask.compliance import strictness
from zarrdask.errors import MetadataError, NodeExistsError, SelectionError
from zarrdask.execution.client import check_visible
from zarrdask.graph.conflicts import Part
from zarrdask.graph.dependencies import needed_reads, reads
from zarrdask.graph.placement import chunk_options, find_place
from zarrdask.graph.read import stored_type
from zarrdask.graph.tasks import Action
from zarrdask.hierarchy.change import erase_node
from zarrdask.hierarchy.create import check_creation, create_node, is_draft_node, put_documents
from zarrdask.hierarchy.find import node_exists
from zarrdask.hierarchy.path import key_prefix, locate_node, node_location
from zarrdask.hierarchy.replace import Stage, can_stage
from zarrdask.indexing.selection import Region, whole_region
from zarrdask.metadata import detect
from zarrdask.metadata.chunking import GridLike
from zarrdask.metadata.create import plan_array
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.metadata.options import ArrayOptions
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.open import check_mode, open_array
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.v3_draft import DraftStore


class How(NamedTuple):
    """What a user may say of a write, besides the options of a new array; see `to_zarr`."""

    region: Any = None
    mode: str = "a"
    overwrite: bool = False
    grid: GridLike = "regular"
    commit: Literal["first", "last"] = "first"

    def check(self) -> None:
        """Check what has few values.

        Raises
        ------
        MetadataError
            If it has another.
        """
        check_mode(self.mode, ("a", "r+", "w", "w-"))
        if self.commit not in ("first", "last"):
            raise MetadataError(
                "unknown", key="commit", found=self.commit, expected="'first' or 'last'"
            )

    @property
    def replaces(self) -> bool:
        """Whether what is there goes."""
        return self.overwrite or self.mode == "w"


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Destination:
    """Where a Dask array goes. Nothing is written before `begin`.

    Attributes
    ----------
    array : Array
        What is there in the end.
    place : tuple of slice
        Where in it.
    chunks : Chunks
        What tasks write to.
    otherwise : str
        What is there if something fails, in words.
    begin : callable
        Makes ready.
    commit : callable, optional
        What is done when all blocks are written. It may be done again, and elsewhere.
    give_up : callable
        What is done if it comes to nothing. It may return what is there then, if it is not what
        `otherwise` tells.
    beyond : {"fill", "keep"}
        What becomes of what units hold beyond the end of the array; see `write_region`.
    """

    array: Array
    place: Region
    chunks: StoredChunks
    otherwise: str
    begin: Action = _nothing
    commit: Action | None = None
    give_up: Action = _nothing
    beyond: Beyond = "fill"

    @property
    def is_new(self) -> bool:
        """Whether the array is created, or replaced."""
        return self.begin is not _nothing or self.commit is not None

    @property
    def part(self) -> Part:
        """What is written, where it is in the end."""
        array = self.array
        location = node_location(array.store, array.path)
        return Part(array.stored.place, location, self.place)

    def failed(self, error: BaseException) -> None:
        """Clean up, and let an error say what is there now."""
        told = None
        try:
            told = self.give_up()
        except OSError as another:
            error.add_note(f"cleaning up failed, too: {another}")
        error.add_note(f"{self.part.location}: {told or self.otherwise}")


def find_destination(
    x: da.Array,
    url: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    how: How,
    options: dict[str, Any],
    together: Sequence[da.Array],
) -> Destination:
    """Return where an array goes: to a new array, or to one that is there. Nothing is written.

    Parameters
    ----------
    x, url, component, storage_options, how, options
        As in `zarrdask.to_zarr`.
    together : sequence of dask.array.Array
        All arrays of the call, with `x` among them.

    Raises
    ------
    ZarrdaskError
        If it can't go there.
    """
    how.check()
    store, path = locate_node(url, component, storage_options)
    check_visible(store)
    opened = isinstance(url, Array) and not component
    if not (opened or how.region is not None or how.mode == "r+"):
        options = {**chunk_options(x.chunks, how.grid, options), "dtype": stored_type(x)} | options
        if isinstance(store, DraftStore):
            options.setdefault("zarr_format", store.zarr_format)
        elif isinstance(url, Group):
            options.setdefault("zarr_format", url.zarr_format)
        metadata = plan_array(ArrayOptions(shape=x.shape, **options))
        return _new(store, path, metadata, how, together)
    if options or how.grid != "regular" or how.commit != "first":
        raise MetadataError(
            "options of a new array make no sense for one that is there",
            key=node_location(store, path),
            found=sorted(options) or ["grid" if how.grid != "regular" else "commit"],
        )
    found: Array = url if opened else open_array(store, path, mode="r+")
    found.check_writable()
    return _existing(found, find_place(x.shape, how.region, found.metadata), together)


# --------------------------------------------------------------------------------------------
# New arrays


def _new(
    store: Store, path: str, metadata: ArrayMetadata, how: How, together: Sequence[da.Array]
) -> Destination:
    view = check_creation(store, path, metadata, overwrite=how.replaces)
    array = Array(view, path, metadata, "r+")
    there = node_exists(plain(view), path)
    # A group of the draft may have no document.
    erases = how.replaces and (there or isinstance(view, DraftStore))
    is_read = erases and any(read.is_below(array.stored.place) for read in reads(together))
    if there and (is_read or how.commit == "last") and _can_stage(array):
        return _staged(array)
    if is_read:
        raise NodeExistsError(
            "the array to be replaced is what the new one is computed from; write it elsewhere",
            key=node_location(store, path),
        )
    found = Destination(array, whole_region(array.shape), array.stored, "")
    if how.commit == "first":
        gone = "what was here before is gone; " if there else ""
        return replace(
            found,
            otherwise=f"{gone}units of the new array that were not written read as its fill value",
            begin=partial(_create, store, array, overwrite=how.replaces),
        )
    return replace(
        found,
        otherwise=f"there is no array{', what was here before is gone' if there else ''}; chunks "
        "may be left, which the next write here replaces",
        begin=partial(erase_node, view, path) if erases else _nothing,
        commit=partial(_appear, store, array.store, path, detect.render(metadata)),
    )


def _create(store: Store, array: Array, *, overwrite: bool) -> None:
    if not overwrite and not is_draft_node(store, array.metadata):
        # Of two that create the array, one may be writing its chunks by now.
        check = partial(check_creation, store, array.path, array.metadata, overwrite=False)
        erase_leftovers(array.stored, unless=check)
    create_node(store, array.path, array.metadata, overwrite=overwrite)


def _appear(store: Store, view: Store, path: str, documents: Documents) -> None:
    """Write the documents of an array whose chunks are there, or those that are missing."""
    prefix = key_prefix(path)
    found = {name: view.get(prefix + name) for name in documents}
    if any(found.values()) and all(found[n] in (None, value) for n, value in documents.items()):
        # That was done before, or begun.
        put_documents(view, path, documents)
        return
    # Whatever was to be said of the metadata was said where the write was asked for.
    with strictness(strict=False, quiet=True):
        metadata = detect.parse(documents, detect.formats_of(view))
    if metadata is not None:
        create_node(store, path, metadata, overwrite=False)


def _can_stage(array: Array) -> bool:
    return not array.metadata.transformers and can_stage(plain(array.store), array.path)


def _staged(array: Array) -> Destination:
    """Return a place beside an array, which it takes over when it is complete."""
    stage = Stage(plain(array.store), array.path)  # type: ignore[arg-type]
    return Destination(
        array,
        whole_region(array.shape),
        StoredChunks(stage.inner, "", array.metadata),
        "what was here before is unchanged",
        begin=partial(stage.begin, detect.render(array.metadata)),
        commit=stage.finish,
        give_up=stage.give_up,
    )


# --------------------------------------------------------------------------------------------
# Arrays that are there


def _existing(array: Array, place: Region, together: Sequence[da.Array]) -> Destination:
    where = array.stored.place
    if any(read.overlaps(where, place) for read in reads(together)) and any(
        read.overlaps(where, place) for read in needed_reads(together)
    ):
        now = open_array(array.store, array.path, mode="r+", consolidated=False)
        if place == whole_region(now.shape) and _can_stage(now):
            return _staged(now)
        raise SelectionError(
            "what is to be written is computed from what is there; write it elsewhere, or read "
            "less: from_zarr(..., region=...)",
            key=node_location(array.store, array.path),
            found=place,
        )
    units = "each stored unit is as it was, or as it was to be"
    return Destination(array, place, array.stored, units, beyond="keep")
