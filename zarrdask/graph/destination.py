"""Where a Dask array goes: what is done before its blocks are written, afterwards, and if not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import dask.array as da

from zarrdask import hierarchy, nodes
from zarrdask.array import Array
from zarrdask.chunkio import Chunks
from zarrdask.chunkwrite import Beyond
from zarrdask.creation import ArrayOptions, plan_array
from zarrdask.errors import MetadataError, NodeExistsError, SelectionError
from zarrdask.fit import chunk_options, find_place
from zarrdask.formats import detect
from zarrdask.formats.base import Documents
from zarrdask.graph.client import check_visible
from zarrdask.graph.read import stored_type
from zarrdask.graph.reads import needed_reads, reads
from zarrdask.graph.tasks import Action
from zarrdask.graph.together import Part
from zarrdask.group import Group
from zarrdask.indexing import Region, whole_region
from zarrdask.metadata import ArrayMetadata
from zarrdask.opening import check_mode, open_array
from zarrdask.sizes import GridLike
from zarrdask.staging import Stage, can_stage
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.draft import DraftStore
from zarrdask.stored import erase_leftovers
from zarrdask.tolerance import strictness


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
    chunks: Chunks
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
        location = hierarchy.location(array.store, array.path)
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
    store, path = hierarchy.locate(url, component, storage_options)
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
            key=hierarchy.location(store, path),
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
    view = nodes.prepare(store, path, metadata, overwrite=how.replaces)
    array = Array(view, path, metadata, "r+")
    there = hierarchy.exists(plain(view), path)
    # A group of the draft may have no document.
    erases = how.replaces and (there or isinstance(view, DraftStore))
    is_read = erases and any(read.is_below(array.stored.place) for read in reads(together))
    if there and (is_read or how.commit == "last") and _can_stage(array):
        return _staged(array)
    if is_read:
        raise NodeExistsError(
            "the array to be replaced is what the new one is computed from; write it elsewhere",
            key=hierarchy.location(store, path),
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
        begin=partial(hierarchy.erase, view, path) if erases else _nothing,
        commit=partial(_appear, store, array.store, path, detect.render(metadata)),
    )


def _create(store: Store, array: Array, *, overwrite: bool) -> None:
    if not overwrite and not nodes.is_draft(store, array.metadata):
        # Of two that create the array, one may be writing its chunks by now.
        check = partial(nodes.prepare, store, array.path, array.metadata, overwrite=False)
        erase_leftovers(array.stored, unless=check)
    nodes.create(store, array.path, array.metadata, overwrite=overwrite)


def _appear(store: Store, view: Store, path: str, documents: Documents) -> None:
    """Write the documents of an array whose chunks are there, or those that are missing."""
    prefix = hierarchy.prefix_of(path)
    found = {name: view.get(prefix + name) for name in documents}
    if any(found.values()) and all(found[n] in (None, value) for n, value in documents.items()):
        # That was done before, or begun.
        nodes.put(view, path, documents)
        return
    # Whatever was to be said of the metadata was said where the write was asked for.
    with strictness(strict=False, quiet=True):
        metadata = detect.parse(documents, detect.formats_of(view))
    if metadata is not None:
        nodes.create(store, path, metadata, overwrite=False)


def _can_stage(array: Array) -> bool:
    return not array.metadata.transformers and can_stage(plain(array.store), array.path)


def _staged(array: Array) -> Destination:
    """Return a place beside an array, which it takes over when it is complete."""
    stage = Stage(plain(array.store), array.path)  # type: ignore[arg-type]
    return Destination(
        array,
        whole_region(array.shape),
        Chunks(stage.inner, "", array.metadata),
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
            key=hierarchy.location(array.store, array.path),
            found=place,
        )
    units = "each stored unit is as it was, or as it was to be"
    return Destination(array, place, array.stored, units, beyond="keep")
