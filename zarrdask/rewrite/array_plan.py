"""The plan to rewrite one array, as it is executed: resumable, in bounded memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TextIO

import dask
import dask.array as da

from zarrdask import config
from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.errors import StoreError
from zarrdask.execution.executor import Workers, check_reached, workers
from zarrdask.execution.locks import shape_lock
from zarrdask.execution.progress import progress as progress_bar
from zarrdask.graph.tasks import write_blocks
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.change import erase_node
from zarrdask.hierarchy.create import check_creation, create_node, exists_error
from zarrdask.hierarchy.find import has_document
from zarrdask.hierarchy.journal import Journal, beside, journal_of
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.hierarchy.resize import check_shape, grow, rewrite_lock, stored_metadata
from zarrdask.indexing.selection import Region, whole_region
from zarrdask.metadata import detect
from zarrdask.metadata.losses import cast_loss
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.open import open_array
from zarrdask.plan.report import Report
from zarrdask.rewrite.cluster import check_workers
from zarrdask.rewrite.passes import Stored
from zarrdask.rewrite.run import AnyPass, bytes_of, passes, run_passes
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain

#: A store, and the prefix of keys in it.
Corner = tuple[Store, str]


def clear(corner: Corner) -> None:
    """Remove what is kept there."""
    store, prefix = corner
    if store.listable:
        store.erase_prefix(prefix)


def resumes(journal: Journal, place: str, *, restart: bool) -> bool:
    """Whether the same plan was begun before.

    Parameters
    ----------
    place : str
        Of the node, for people.
    restart : bool
        Whether it is to begin anew, whatever was begun.

    Raises
    ------
    StoreError
        If another plan was begun, and not finished.
    """
    found = None if restart else journal.read()
    if found in (None, journal.plan):
        return found is not None
    raise StoreError(
        "another rewrite was begun here and not finished: do that again to finish it, or begin "
        "anew with restart=True",
        key=place,
    )


@dataclass(frozen=True, eq=False, repr=False)
class RechunkPlan(Report):
    """How an array is rewritten; made by `zarrdask.rechunk`.

    Attributes
    ----------
    source : Array
        What is read.
    region : tuple of slice
        Which part of it.
    store : Store
        Where the new array is to be.
    view : Store
        The same, as its hierarchy will see it.
    path : str
        Its path there.
    metadata : ArrayMetadata
        The new array's.
    temp : (Store, str)
        Where passes leave what the next one reads, and the prefix of its keys.
    overwrite : bool
        Whether an array that is there goes.
    start : tuple of int
        Where what is new begins in the new array: not at its origin, where one grows.
    along : int, optional
        The axis along which an array that is there grows.
    blocks : dask.array.Array, optional
        What the source is made of, before it is read: it does not stay.
    """

    source: Array
    region: Region
    store: Store
    view: Store
    path: str
    metadata: ArrayMetadata
    temp: Corner
    overwrite: bool
    start: Shape
    along: int | None = None
    blocks: da.Array | None = None

    @property
    def fingerprint(self) -> str:
        """What tells this plan from all others."""
        parts: list[Any] = [
            self.source.stored.place,
            detect.render(self.source.metadata),
            [(pick.start, pick.stop) for pick in self.region],
            detect.render(self.metadata),
            self.start,
            self.along,
            self.temp[0].token,
            self.temp[1],
            None if self.blocks is None else self.blocks.name,
            self.scheme.name,
        ]
        found = sha256(repr(parts).encode(errors="surrogateescape"))
        for regions in self.scheme.cuttings:
            for edges in regions.edges:
                found.update(edges.tobytes() + b"|")
        return found.hexdigest()

    def execute(
        self,
        scheduler: Any = None,
        *,
        progress: bool | TextIO = True,
        restart: bool = False,
    ) -> Array:
        """Do it. The new array is there when it is complete.

        A run that was killed goes on where it was, if the same is planned and executed again.

        Parameters
        ----------
        scheduler : str or distributed.Client, optional
            "threads", "processes", "sync", a client, or the address of a scheduler; the one that
            is current, if absent.
        progress : bool or file
            Whether to show a progress bar on standard error, which counts the bytes that are read
            and written; or the file to write it to.
        restart : bool
            Whether what an earlier run has done is thrown away, whatever its plan was.

        Returns
        -------
        Array
            The new array.

        Raises
        ------
        NodeExistsError
            If an array was made there meanwhile.
        StoreError
            If a store fails; or if another plan was begun here and not finished.
        MetadataError
            If workers are to hand each other values, and are of no cluster.
        """
        return self.run(scheduler, progress=progress, restart=restart)

    def run(
        self,
        scheduler: Any,
        *,
        progress: bool | TextIO,
        restart: bool,
        finished: Callable[[], None] | None = None,
    ) -> Array:
        """Do it, as `execute` does.

        Parameters
        ----------
        finished : callable, optional
            Called when all is done but the last step.
        """
        with self._alone(), workers(scheduler) as on, self.store.batch():
            self.check_workers(on)
            for store in (self.source.store, self.store, self.temp[0]):
                check_reached(store, on)
            journal = journal_of(self.view, self._prefix, self.fingerprint)
            begun = resumes(journal, self.place, restart=restart)
            self._check(begun=begun)
            if not begun:
                self._begin()
                journal.store()
            todo = self._passes()
            of_blocks = 0 if self.blocks is None else self.grids.nbytes
            total = of_blocks + sum(map(bytes_of, todo))
            with progress_bar(total, "rechunk", progress, unit="byte") as shown:
                self._store_blocks(journal, on)
                shown.advance(of_blocks)
                run_passes(todo, journal, on, shown)
            clear(self.temp)
            if finished is not None:
                finished()
            # The record goes before the array is there: who finds both was not the one.
            clear(beside(self.view, self._prefix))
            self._commit()
        return open_array(self.store, self.path, mode="r+", consolidated=False)

    def check_workers(self, on: Workers) -> None:
        """Check that those who are to do it can, before anything is done; see `check_workers`."""
        if self.scheme.exchange is not None:
            check_workers(on, self.costs.processes)

    def _check(self, *, begun: bool) -> None:
        """Check that source and target are as they were when this was planned, or begun.

        Raises
        ------
        NodeExistsError
            If somebody else made a node here meanwhile.
        StoreError
            If the source was changed, or the shape of the array that grows.
        """
        self._check_source()
        if self.grows:
            metadata = stored_metadata(self.store, self.path, self.metadata.zarr_format)
            check_shape(metadata, (self._old,), self.place)
        elif begun and has_document(plain(self.view), self.path):
            raise exists_error(self.view, self.path)

    def _check_source(self) -> None:
        """Check that the source still is what the plan was made for."""
        if self.blocks is not None:
            return
        source = self.source
        found = stored_metadata(source.store, source.path, source.zarr_format)
        if found is None or _as_read(found) != _as_read(source.metadata):
            raise StoreError(
                "the source was changed after this was planned; plan it again",
                key=node_location(source.store, source.path),
                found=getattr(found, "shape", None),
                expected=f"{source.shape}",
            )

    @property
    def _prefix(self) -> str:
        return key_prefix(self.path)

    @property
    def place(self) -> str:
        """Where the new array is to be, for people."""
        return node_location(self.store, self.path)

    @property
    def grows(self) -> bool:
        """Whether an array that is there becomes longer."""
        return self.along is not None

    def _alone(self) -> Any:
        """Keep others from doing this, too, or from giving the array that grows another shape."""
        lock = shape_lock if self.grows else rewrite_lock
        return lock(self.store, self.path)

    @property
    def _old(self) -> Shape:
        """The shape of the array that grows, as it is before."""
        both = zip(self.start, self.metadata.shape, strict=True)
        return tuple(at if axis == self.along else n for axis, (at, n) in enumerate(both))

    @property
    def _target(self) -> StoredChunks:
        return StoredChunks(self.view, self._prefix, self.metadata)

    def _begin(self) -> None:
        """Make the place ready."""
        clear(self.temp)
        clear(beside(self.view, self._prefix))
        if self.grows:
            return
        if has_document(plain(self.view), self.path):
            check_creation(self.store, self.path, self.metadata, overwrite=self.overwrite)
            erase_node(self.view, self.path)
        erase_leftovers(self._target)

    @property
    def _is_direct(self) -> bool:
        """Whether blocks of a Dask array are the target's, too."""
        return self.scheme.stages[0].reads == "blocks"

    def _before(self) -> Iterator[tuple[str, str]]:
        changed = cast_loss(self.source.dtype, self.metadata.dtype)
        if changed is not None:
            yield "values", changed
        if self.blocks is not None and not self._is_direct:
            yield "blocks", f"{self.blocks.npartitions} Dask blocks are stored first, as they are"

    def _store_blocks(self, journal: Journal, on: Workers) -> None:
        """Compute the blocks of a Dask array."""
        last = len(self.scheme.stages)
        if self.blocks is None or journal.done(last):
            return
        place = self._target if self._is_direct else self.source.stored
        receipts, _, to = write_blocks(self.blocks, place, whole_region(self.blocks.shape), "fill")
        try:
            dask.compute(receipts, scheduler=on.get)
        except BaseException:
            to.abort()
            raise
        journal.add(last, 0)
        journal.store()

    def _passes(self) -> list[AnyPass]:
        if self._is_direct:
            return []
        source = Stored(self.source.stored, tuple(pick.start for pick in self.region))
        empty = config.get("write-empty-chunks")
        target = Stored(self._target, self.start, empty=empty, beyond="fill")
        return passes(self.scheme, source, target, self.temp, self.costs.processes)

    def _commit(self) -> None:
        """Let the new array be there."""
        if self.grows:
            grow(self.store, self.path, self.metadata.zarr_format, self._old, self.metadata.shape)
        else:
            create_node(self.store, self.path, self.metadata, overwrite=False)


def _as_read(metadata: Metadata) -> Any:
    """Return what of an array's metadata makes its elements what they are."""
    if not isinstance(metadata, ArrayMetadata):
        return None
    plain = replace(metadata, attributes={}, dimension_names=None, extra={})
    return detect.render(plain)
