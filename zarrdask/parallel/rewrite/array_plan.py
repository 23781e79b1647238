"""The plan to rewrite one array, and how it is executed: resumable, in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import cloudpickle
import dask
import dask.array as da

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, Journal, digest
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.indexing.regions import moved
from zarrdask.formats.indexing.selection import Region, region_shape, whole_region
from zarrdask.formats.metadata.losses import mask_loss, rewrite_loss
from zarrdask.parallel.execution.counter import Counter, Reporter, Tasks, reports
from zarrdask.parallel.execution.executor import Workers, check_reached, workers
from zarrdask.parallel.execution.workspace import release
from zarrdask.parallel.graph.encoded_sizes import EncodedSizes, stored_bytes
from zarrdask.parallel.graph.fuse.writes import fuse_writes
from zarrdask.parallel.graph.writing.tasks import write_blocks
from zarrdask.parallel.plan.plan_report import PlanReport
from zarrdask.parallel.plan.request_costs import UNCOMPRESSED, RequestCosts
from zarrdask.parallel.plan.strategies import Scheme
from zarrdask.parallel.rewrite.cluster import check_workers, run_exchange
from zarrdask.parallel.rewrite.copying.copy_costs import moved_costs
from zarrdask.parallel.rewrite.copying.move import with_storable_fill
from zarrdask.parallel.rewrite.destination import Destination, KeyPrefix, clear_prefix
from zarrdask.parallel.rewrite.exchange import Exchange
from zarrdask.parallel.rewrite.node_plan import check_unchanged, documents_of
from zarrdask.parallel.rewrite.passes import ArrayTiles, PackedRegions, Pass
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite, digest_of_parts, rewriting_array
from zarrdask.runtime.progress import Progress, Show
from zarrdask.runtime.progress import progress as progress_bar


@dataclass(frozen=True, eq=False, repr=False)
class RechunkPlan(PlanReport):
    """How an array is rewritten. `zarrdask.rechunk` returns it.

    Attributes
    ----------
    source : Array
        The array that is read.
    region : tuple of slice
        The part of it that is read.
    target : Destination
        The new array, or the one that grows.
    temp : (Store, str)
        The store and the key prefix of the temporary objects between passes.
    overwrite : bool
        Whether a node at the target is removed when the plan is executed.
    blocks : dask.array.Array, optional
        The Dask array that is stored as `source` first, or written directly.
    """

    source: Array
    region: Region
    target: Destination
    temp: KeyPrefix
    overwrite: bool
    blocks: da.Array | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """The values that identify this plan among all others, by their names."""
        source, target = self.source, self.target
        bounds = [(pick.start, pick.stop) for pick in self.region]
        edges = (each.tobytes() for regions in self.scheme.cuttings for each in regions.edges)
        return {
            "name of the Dask array": "" if self.blocks is None else self.blocks.name,
            "source": digest(
                chunks_of(source).canonical_location, documents_of(source.metadata), bounds
            ),
            "target": digest(target.metadata.render(), target.start, target.along),
            "location of temporary objects": digest(self.temp[0].identity.token, self.temp[1]),
            "division into tasks (max_mem, processes, threads)": digest(
                self.scheme.name, digest_of_parts(each + b"|" for each in edges)
            ),
        }

    @property
    def requests_planned(self) -> RequestCosts:
        """The requests by class, the encoded bytes, and the price by ``zarrdask.prices``."""
        return self._requests_planned

    @cached_property
    def _requests_planned(self) -> RequestCosts:
        costs, chunks = super().requests_planned, chunks_of(self.source)
        if self.blocks is not None:
            stages = self.scheme.stages
            return RequestCosts(
                costs.requests,
                sum(stage.bytes_read for stage in stages if stage.reads != "blocks"),
                sum(stage.bytes_written for stage in stages),
                {"fetched": UNCOMPRESSED, "stored": UNCOMPRESSED},
            )
        sizes = EncodedSizes.listed(chunks, fast=True)
        first, *later = self.scheme.stages
        if first.moves and sizes.units is not None:
            owners = chunks.metadata if self.grids.shards else self.target.metadata
            return moved_costs(first.moves, sizes, self.target.metadata, [*owners.grid.indices()])
        fetches = self._read_by_first(sizes)
        stored, basis = stored_bytes(self.target.metadata, self.objects, sizes)
        estimates = {} if basis is None else {"stored": basis}
        fetched, requests = first.bytes_read, dict(costs.requests)
        if fetches is not None:
            estimates |= fetches.estimates
            requests["GET"] += fetches.requests["GET"] - first.requests + self._stored_by(first)
        if fetches is None or fetches.fetched is None:
            estimates["fetched"] = UNCOMPRESSED
        else:
            fetched = fetches.fetched
        fetched += sum(stage.bytes_read for stage in later if stage.reads == "packed")
        packed = (stage for stage in self.scheme.stages if stage.writes == "packed")
        stored += sum(stage.bytes_written for stage in packed)
        return RequestCosts(requests, fetched, stored, estimates)

    def _read_by_first(self, sizes: EncodedSizes) -> RequestCosts | None:
        """Return the bytes that the first pass fetches; None if they are not known.

        If there are too many parts of chunks to look at, it is estimated from some chunks.
        """
        first, start = self.scheme.stages[0], tuple(pick.start for pick in self.region)
        tile = first.costs.slab // max(self.grids.itemsize, 1)
        try:
            fetches = sizes.read_all(first.regions, start, tile=tile)
            if fetches is None and self.grids.divided is not None:
                fetches = sizes.read_sample(first.regions, start)
        except (ZarrdaskError, OSError):
            return None  # a plan does not fail because of what is wrong with the store
        return fetches

    @property
    def _dimension_names(self) -> tuple[str | None, ...] | None:
        return self.target.metadata.dimension_names

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can represent: sizes are numbers of bytes."""
        return {
            "source": self.source.node_path.location,
            "target": self.target.node.location,
            "shape": list(self.grids.shape),
            "strategy": self.scheme.name,
            "bytes": self.scheme.moved,
            "requests": self.scheme.requests,
            **self.requests_planned.to_dict(),
            "tasks": self.tasks,
            "objects": self.objects,
            "peak_memory": self.peak,
            "description": dict(self.facts()),
        }

    @checks_booleans
    def execute(
        self,
        scheduler: Any = None,
        *,
        progress: Show = True,
        restart: bool = False,
    ) -> Array:
        """Rewrite the array. Readers see the new array when it is complete.

        A run that was interrupted is resumed if the same plan is made and executed again.

        Parameters
        ----------
        scheduler : str or distributed.Client, optional
            What the tasks run on: "threads", "processes", "sync", a client, or the address of a
            scheduler. The default is the current scheduler of Dask.
        progress : bool, file or callable, default True
            Whether and how to show a progress bar, as in `zarrdask.to_zarr`. It counts the bytes
            that are read and written.
        restart : bool, default False
            Whether to discard the work of earlier runs, with any plans.

        Returns
        -------
        Array
            The new array.

        Raises
        ------
        NodeExistsError
            If another process has created a node at the target since the plan was made.
        StoreError
            If a store fails, or if another write was interrupted here.
        MetadataError
            If the plan needs a cluster, and the scheduler is none.
        """
        with workers(scheduler) as on:
            self.check(on)
            self.check_source()
            options = {"overwrite": self.overwrite, "restart": restart}
            with rewriting_array(self.target, self.fingerprint, **options) as rewrite:
                guarded = replace(self, target=replace(self.target, guard=rewrite.guard))
                guarded.run(rewrite, "", 0, on, progress)
            return rewrite.array  # type: ignore[return-value]

    def run(self, rewrite: Rewrite, below: str, first: int, on: Workers, show: Show) -> None:
        """Rewrite the array at a path of a rewrite, whose record has its stages from `first` on."""
        journal = rewrite.journal
        done = [journal.done(first + stage) for stage in range(self.stages)]
        if done[-1] and rewrite.has_lost(self.target):
            for tasks in done:
                tasks.clear()
        if not any(done):
            clear_prefix(self.temp)
        target = rewrite.chunks(below, self.target, on)
        passes = self._passes(target)
        block_bytes = 0 if self.blocks is None else self.grids.nbytes
        pass_bytes = 2 * self.source.dtype.itemsize * prod(self.grids.shape)
        total = block_bytes + len(passes) * pass_bytes
        with progress_bar(total, "rechunk", show, unit="byte") as shown:
            self._store_blocks(target, journal, first, on)
            shown.advance(block_bytes)
            name = self.target.chunks.task_name("rechunk")
            run_passes(passes, rewrite, first + 1, name, on, shown)
        if len(passes) > 1 or block_bytes:
            journal.store()  # nothing is read again from the temporary objects
            clear_prefix(self.temp)
        rewrite.add(below, self.target)

    @property
    def stages(self) -> int:
        """The number of stages in the record: the storing of Dask blocks, and the passes."""
        return 1 + len(self.scheme.stages)

    def check(self, on: Workers) -> None:
        """Check that the workers suffice for the plan, and that they can access the stores."""
        if self.scheme.exchange is not None:
            check_workers(on, self.costs.processes)
        check_reached(on, self.source.store, self.temp[0], changed=self.target.node.store)

    def check_source(self) -> None:
        """Check that the source has not changed since the plan was made."""
        if self.blocks is None:
            check_unchanged(self.source)

    @property
    def _is_direct(self) -> bool:
        """Whether the blocks of a Dask array are written to the target directly."""
        return self.scheme.stages[0].reads == "blocks"

    def _before(self) -> Iterator[tuple[str, str]]:
        loss = rewrite_loss(self.source.metadata, self.target.metadata)
        if loss is not None:
            yield "values", loss
        if self.blocks is None:
            note = mask_loss(self.source.metadata, self.target.metadata)
            yield from () if note is None else (("note", note),)
        if self.blocks is not None and not self._is_direct:
            yield "blocks", f"{self.blocks.npartitions} Dask blocks are stored first, as they are"

    def _store_blocks(
        self, target: StoredChunks, journal: Journal, stage: int, on: Workers
    ) -> None:
        """Compute the blocks of a Dask array, and store them."""
        if self.blocks is None or journal.done(stage):
            return
        written = target if self._is_direct else chunks_of(self.source)
        blocks = self.blocks
        tasks = write_blocks(blocks, ArrayRegion(written, whole_region(blocks.shape)), "fill")
        try:
            dask.compute(*fuse_writes([tasks]), scheduler=on.get)
        except BaseException:
            tasks.writer.abort()
            raise
        journal.done(stage).add(0)
        journal.store()

    def _passes(self, chunks: StoredChunks) -> "list[AnyPass]":
        if self._is_direct:
            return []
        stored = with_storable_fill(chunks_of(self.source), self.target.metadata)
        divided = self.grids.divided
        parts = None if divided is None else tuple(axis.longest for axis in divided)
        source = ArrayTiles(ArrayRegion(stored, self.region), parts=parts)
        region = moved(whole_region(region_shape(self.region)), self.target.start)
        written = ArrayRegion(chunks, region)
        empty = config.get("write-empty-chunks")
        target = ArrayTiles(written, empty, beyond="fill", casting=Casting.chosen())
        return build_passes(self.scheme, source, target, self.temp)


# --------------------------------------------------------------------------------------------
# Running the passes

AnyPass = Pass | Exchange


class SharedPass:
    """A pass as it is sent to workers: unpickled once per process, not once per task."""

    def __init__(self, work: Any) -> None:
        self.work = work

    @cached_property
    def _pickled(self) -> bytes:
        return cloudpickle.dumps(self.work, 5)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._pickled,)


@lru_cache(maxsize=4)
def _unpickle(data: bytes) -> SharedPass:
    return SharedPass(cloudpickle.loads(data))


def build_passes(
    scheme: Scheme,
    source: ArrayTiles,
    target: ArrayTiles,
    temp: KeyPrefix,
) -> list[AnyPass]:
    """Return the passes that a strategy consists of."""
    stages, dtype = scheme.stages, source.region.dtype
    if scheme.exchange is not None:
        return [Exchange(scheme, source, target, dtype)]
    store, prefix = temp
    packed = [
        PackedRegions(store, f"{prefix}{number}/", one.regions, following.regions)
        for number, (one, following) in enumerate(pairwise(stages))
    ]
    readers: list[ArrayTiles | PackedRegions] = [source, *packed]
    writers: list[ArrayTiles | PackedRegions] = [*packed, target]
    return [Pass(*each, dtype) for each in zip(stages, readers, writers, strict=True)]


def region_bytes(work: AnyPass, number: int) -> int:
    """Return how many bytes a pass reads and writes for one of its regions."""
    return 2 * work.dtype.itemsize * prod(region_shape(work.regions.region(number)))


def run_passes(
    passes: Sequence[AnyPass],
    rewrite: Rewrite,
    first: int,
    name: str,
    on: Workers,
    shown: Progress,
) -> None:
    """Run passes one after another, without the regions that are recorded as done."""
    for stage, work in enumerate(passes, first):
        done = rewrite.journal.done(stage)
        shown.resume(sum(region_bytes(work, number) for number in done))
        try:
            if isinstance(work, Exchange):
                remaining = rewrite.remaining(stage, work.regions.size)
                finished = partial(rewrite.finish, stage)
                run_exchange(work, SharedPass(work), remaining, on, shown, finished)
            else:
                _run_pass(work, rewrite, stage, name, on, shown)
        finally:
            _free_memory(on)


def _run_pass(
    work: Pass, rewrite: Rewrite, stage: int, name: str, on: Workers, shown: Progress
) -> None:
    tasks = Tasks(shown)

    def finished(number: int, _: int) -> None:
        tasks.end(number, region_bytes(work, number))

    # The executor keeps the next tasks ready; a process still runs only this many at a time.
    on = on._replace(threads=work.stage.costs.at_once)
    with reports(tasks, on) as report:
        task = RechunkRegion(SharedPass(work), report)
        rewrite.run(stage, task, range(work.regions.size), finished, on, lambda _: name)


@dataclass(frozen=True)
class RechunkRegion:
    """Rewrites a region: a task."""

    shared: SharedPass
    report: Callable[[], Reporter] | None

    def __call__(self, number: int) -> int:
        count = None if self.report is None else Counter(number, self.report())
        stored: int = self.shared.work(number, count)
        return stored


def _free_memory(on: Workers) -> None:
    """Let all processes free the memory that they keep from task to task."""
    _clear()
    if on.client is not None:
        on.client.run(_clear, on_error="ignore")  # a lost worker keeps nothing


def _clear() -> None:
    release()
    _unpickle.cache_clear()
