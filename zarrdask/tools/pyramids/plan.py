"""The plan of a pyramid, and how it is executed: resumable, in bounded memory."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import dask
import dask.array as da
import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, digest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.display.words import byte_size, counted
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.model import GroupMetadata, Metadata
from zarrdask.parallel.execution.executor import Workers, check_reached, workers
from zarrdask.parallel.graph.encoded_sizes import EncodedSizes, stored_bytes
from zarrdask.parallel.plan.plan_report import PlanReport
from zarrdask.parallel.plan.request_costs import UNCOMPRESSED, RequestCosts, overlaps
from zarrdask.parallel.plan.strategies import Stage
from zarrdask.parallel.rewrite.array_plan import SharedPass, run_passes
from zarrdask.parallel.rewrite.copying.move import encoded_transfer
from zarrdask.parallel.rewrite.destination import Destination, KeyPrefix, clear_prefix
from zarrdask.parallel.rewrite.passes import ArrayTiles, PackedRegions, RegionReader
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite, rewriting
from zarrdask.runtime.progress import Show
from zarrdask.runtime.progress import progress as progress_bar
from zarrdask.tools.pyramids.display_windows import store_windows
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.labels import list_label
from zarrdask.tools.pyramids.level_blocks import Blocks
from zarrdask.tools.pyramids.levels import Level
from zarrdask.tools.pyramids.passes import CastTiles, PyramidPass
from zarrdask.tools.pyramids.pyramid_changes import adding_levels
from zarrdask.tools.pyramids.record import PyramidRecord
from zarrdask.tools.pyramids.sources import PyramidSource


@dataclass(frozen=True, eq=False, repr=False)
class PyramidPlan(PlanReport):
    """How the levels of a pyramid are computed. `zarrdask.pyramid` returns it.

    Attributes
    ----------
    source : PyramidSource
        The array that is read: level 0.
    node : NodePath
        The group of the pyramid.
    group : GroupMetadata
        The format of the group, and the attributes of the convention.
    levels : tuple of Level
        All levels, with level 0.
    targets : mapping of int to Destination
        The arrays that are written, by the numbers of their levels.
    reductions : tuple of Reduction
        How each level becomes the next one.
    blocks : Blocks
        The blocks of the levels, and the passes over them.
    temp : (Store, str)
        The store and the key prefix of the temporary objects between passes.
    overwrite : bool
        Whether a node at the target is removed when the plan is executed.
    is_inside : bool
        Whether the source is an array of the group, to which the other levels are added.
    record : PyramidRecord
        What is stored about the pyramid, so that it can be updated.
    changed : mapping of int to tuple of slice, optional
        The regions of the levels that are written, if they are not written as a whole.
    """

    source: PyramidSource
    node: NodePath
    group: GroupMetadata
    levels: tuple[Level, ...]
    targets: Mapping[int, Destination]
    reductions: tuple[Reduction, ...]
    blocks: Blocks
    temp: KeyPrefix
    overwrite: bool
    is_inside: bool
    record: PyramidRecord
    changed: Mapping[int, Region] | None = None

    @property
    def objects(self) -> int:
        """The number of chunks or shards that are written."""
        return sum(target.metadata.grid.size for target in self.targets.values())

    @property
    def requests_planned(self) -> RequestCosts:
        """The requests for chunks, shards and packed pieces by class, and the price."""
        fetches = packed = 0
        for number, stage in enumerate(self.scheme.stages):
            read, _ = self._boundaries(number)
            if stage.reads != "blocks":
                fetches += overlaps(read, stage.regions.edges)
            if number:
                # Where borders are trimmed, some blocks of the pass before are reduced to nothing.
                packed += prod(len(edges) - 1 for edges in read)
        requests = {"GET": fetches, "PUT": self.objects + packed}
        return self._with_bytes(RequestCosts(requests))

    def _with_bytes(self, costs: RequestCosts) -> RequestCosts:
        """Return the costs with the encoded bytes, which are not known for changed regions."""
        if self.changed is not None:
            return costs
        array, estimates = self.source.array, dict[str, str]()
        sizes = None if array is None else EncodedSizes.listed(chunks_of(array), fast=True)
        first, *later = self.scheme.stages
        fetches = sizes and sizes.read_all(
            first.regions,
            (0,) * len(self.grids.shape),
            tile=first.costs.slab // max(self.grids.itemsize, 1),
            whole=self._moves,
        )
        requests, fetched = dict(costs.requests), first.bytes_read
        if fetches and fetches.fetched is not None:
            fetched = fetches.fetched
            read, _ = self._boundaries(0)
            requests["GET"] += fetches.requests["GET"] - overlaps(read, first.regions.edges)
        elif fetched:
            estimates["fetched"] = UNCOMPRESSED
        stored = 0
        for number, target in self.targets.items():
            metadata = target.metadata
            if number == 0 and self._moves and sizes and sizes.units is not None:
                stored += sizes.total() or 0
                continue
            nbytes, basis = stored_bytes(metadata, metadata.grid.size, sizes)
            stored += nbytes
            if basis is not None:
                estimates["stored"] = basis
        packed = sum(stage.bytes_read for stage in later if stage.reads == "packed")
        return RequestCosts(requests, fetched + packed, stored + packed, estimates)

    @property
    def fingerprint(self) -> Fingerprint:
        """The values that identify this plan among all others, by their names."""
        targets = [(level, target.metadata.render()) for level, target in self.targets.items()]
        spans = [(span.first, span.last) for span in self.blocks.spans]
        return {
            "source": digest(self.source.fingerprint, self.changed),
            "target": digest(self.group.render(), targets, self.levels, self.reductions),
            "location of temporary objects": digest(self.temp[0].identity.token, self.temp[1]),
            "division into tasks (max_mem, threads)": digest(spans, self.blocks.grids),
        }

    # ----------------------------------------------------------------------------------------
    # Text and drawings

    def summary(self) -> str:
        """Return one line: the shape, and the numbers of levels and tasks."""
        counts = f"{counted(len(self.levels), 'level')}, {counted(self.tasks, 'task')}"
        return f"{self.levels[0].shape}, {counts}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the text: a name and a description each."""
        for number, level in enumerate(self.levels):
            yield f"level {number}", self._describe_level(number, level)
        method = self.reductions[0].method if self.reductions else "none"
        yield "method", f"{method}, from level to level"
        read = "each chunk of the source is decoded once"
        if not self.blocks.is_aligned:
            read = "chunks of the source that lie in several tasks are decoded several times"
        yield "reads", f"{read}, and no level is read"
        yield "costs", str(self.requests_planned)
        for number, (stage, span) in enumerate(self._stages(), 1):
            levels = f"levels {span.first} to {span.last}" if span.last > span.first else None
            tasks = counted(stage.tasks, "task")
            source = "packed pieces" if stage.reads == "packed" else "chunks"
            become = f"{source} become {levels or f'level {span.first}'}"
            yield f"pass {number}", f"{tasks}; {become}; up to {byte_size(stage.peak)} per task"
        at_once = max((stage.costs.at_once for stage in self.scheme.stages), default=1)
        peak, limit = byte_size(self.scheme.peak), byte_size(self.costs.memory)
        yield (
            "memory",
            f"up to {peak} of {limit} per process, for {counted(at_once, 'task')} at a time",
        )

    def _describe_level(self, number: int, level: Level) -> str:
        target, size = self.targets.get(number), np.prod(level.shape, dtype=object)
        text = f"{level.path}: {level.shape}, {byte_size(int(size) * self.grids.itemsize)}"
        if target is None:
            return f"{text}, not written"
        units = counted(target.metadata.grid.size, "chunk or shard")
        return f"{text} in {units}{', copied as they are' * (number == 0 and self._moves)}"

    def _stages(self) -> Iterator[tuple[Stage, Any]]:
        return zip(self.scheme.stages, self.blocks.spans, strict=True)

    def _boundaries(self, number: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        spans, grids = self.blocks.spans, self.blocks.grids
        first = spans[number].first
        read = grids[first - 1].cutting(first) if number else self.grids.pieces
        target = self.targets.get(first)
        written = grids[first].cutting(first) if target is None else None
        axes = written.edges if written else [axis.edges for axis in target.metadata.grid.axes]  # type: ignore[union-attr]
        return read.edges, tuple(axes)

    def _drawn_shape(self, number: int) -> Shape:
        return self.levels[self.blocks.spans[number].first].shape

    @property
    def _dimension_names(self) -> tuple[str | None, ...] | None:
        return next(iter(self.targets.values())).metadata.dimension_names

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can represent: sizes are numbers of bytes."""
        return {
            "source": self.source.location,
            "target": self.node.location,
            "levels": [
                {
                    "path": level.path,
                    "shape": list(level.shape),
                    "factors": list(level.factors),
                    "is_written": number in self.targets,
                }
                for number, level in enumerate(self.levels)
            ],
            "tasks": self.tasks,
            "objects": self.objects,
            "peak_memory": self.peak,
            **self.requests_planned.to_dict(),
            "description": dict(self.facts()),
        }

    # ----------------------------------------------------------------------------------------
    # Execution

    @checks_booleans
    def execute(
        self,
        scheduler: Any = None,
        *,
        progress: Show = True,
        restart: bool = False,
    ) -> Group:
        """Compute and store the levels. Readers see each of them when all are complete.

        A run that was interrupted is resumed if the same plan is made and executed again. The
        parameters and the errors are the same as for `RechunkPlan.execute`.

        Returns
        -------
        Group
            The group of the pyramid.
        """
        with workers(scheduler) as on:
            check_reached(on, *self.source.stores, self.temp[0], changed=self.node.store)
            self.source.check_unchanged()
            # Before it is read, so that concurrent changes by other writers are noticed later.
            versions = self._versions() if self.is_inside else None
            with self._begun(versions, restart=restart) as rewrite:
                rewrite.completions.append(self._store_windows)
                paths = {self.levels[level].path: each for level, each in self.targets.items()}
                written = {path for path, each in paths.items() if rewrite.has_written(path, each)}
                if len(written) < len(paths):
                    self.run(rewrite, on, progress)
                for path, target in paths.items():
                    if path not in written:
                        rewrite.add(path, target)
                versions = versions or self._versions()
                rewrite.write_documents()
                replace(self.record, versions=versions).write(self.node)
                if self.record.convention == "ome":
                    list_label(self.node, self.group.zarr_format)
        return open_group(*self.node, mode="r+", consolidated=False)

    def _store_windows(self) -> None:
        if self.record.convention == "ome":
            details = self.record.details or {}
            store_windows(self.node, self.levels[-1].path, details, self.group.zarr_format)

    def _versions(self) -> UnitVersions | None:
        """Return the versions of the chunks or shards of level 0, if it is in the group."""
        array = self.source.array
        if self.is_inside and array is not None:
            return UnitVersions.of(chunks_of(array))
        return UnitVersions.of(self.targets[0].chunks) if 0 in self.targets else None

    def _begun(
        self, versions: UnitVersions | None, *, restart: bool
    ) -> AbstractContextManager[Rewrite]:
        arrays = {self.levels[level].path: each.metadata for level, each in self.targets.items()}
        if self.is_inside:
            attributes = self.group.attributes
            options = {"overwrite": self.overwrite, "restart": restart}
            # Levels that were computed from other values of level 0 are not resumed.
            plan = {**self.fingerprint, "level 0": digest(versions and versions.to_json())}
            return adding_levels(self.node, arrays, attributes, plan, **options)
        nodes: dict[str, Metadata] = {"": self.group, **arrays}
        return rewriting(
            self.node, nodes, self.fingerprint, overwrite=self.overwrite, restart=restart
        )

    def run(self, rewrite: Rewrite, on: Workers, show: Show) -> None:
        """Run the passes, without the tasks that an earlier run has done."""
        done = [rewrite.journal.done(stage) for stage in range(len(self.scheme.stages))]
        for tasks, (_, span) in zip(done, self._stages(), strict=True):
            written = [
                self.targets[n] for n in range(span.first, span.last + 1) if n in self.targets
            ]
            if tasks and written and all(map(rewrite.has_lost, written)):
                for each in done:
                    each.clear()
        if not any(done):
            clear_prefix(self.temp)
        targets = {
            n: rewrite.chunks(self.levels[n].path, each, on) for n, each in self.targets.items()
        }
        passes = self._passes(targets)
        total = sum(stage.bytes_read for stage in self.scheme.stages)
        with progress_bar(2 * total, "pyramid", show, unit="byte") as shown:
            name = next(iter(self.targets.values())).chunks.task_name("pyramid")
            if self.source.blocks is not None:
                self._run_blocks(passes[0], self.source.blocks, rewrite, on)
                shown.advance(2 * self.scheme.stages[0].bytes_read)
            first = 0 if self.source.blocks is None else 1
            run_passes(passes[first:], rewrite, first, name, on, shown)  # type: ignore[arg-type]
        if len(passes) > 1:
            rewrite.journal.store()  # nothing is read again from the temporary objects
            clear_prefix(self.temp)

    def _run_blocks(
        self, work: PyramidPass, blocks: da.Array, rewrite: Rewrite, on: Workers
    ) -> None:
        """Run the first pass over the blocks of a Dask array, as tasks of its graph."""
        count = work.regions.size
        if not rewrite.remaining(0, count):
            return
        chunks = tuple(tuple(np.diff(edges).tolist()) for edges in work.regions.edges)
        parts = blocks.rechunk(chunks).to_delayed().ravel()
        task = dask.delayed(ComputedBlock(SharedPass(work)), pure=False, traverse=False)
        dask.compute(*(task(n, part) for n, part in enumerate(parts)), scheduler=on.get)
        rewrite.journal.done(0).update(range(count))
        rewrite.journal.store()

    def _passes(self, targets: Mapping[int, StoredChunks]) -> list[PyramidPass]:
        grids, array = self.blocks.grids, self.source.array
        dtype = self.source.metadata.dtype
        source: RegionReader | None = None
        casting = Casting.chosen()
        if array is not None:
            source = ArrayTiles(ArrayRegion(chunks_of(array)))
            if self.source.is_cast:
                source = CastTiles(source, next(iter(self.targets.values())).chunks, casting)
        passes = list[PyramidPass]()
        for stage, span in self._stages():
            numbers, following = range(span.first, span.last + 1), span.last + 1
            packed = None
            if following < len(grids):
                owners = grids[span.last].cutting(following)
                readers = grids[following].cutting(following)
                prefix = f"{self.temp[1]}{following}/"
                packed = PackedRegions(self.temp[0], prefix, owners, readers)
            passes.append(
                PyramidPass(
                    stage,
                    source,
                    {n: grids[n] for n in numbers},
                    {n: self.reductions[n] for n in numbers if n < len(self.reductions)},
                    {n: targets[n] for n in numbers if n in targets},
                    packed,
                    dtype,
                    empty=bool(config.get("write-empty-chunks")),
                    changed=self.changed,
                    moved=chunks_of(array) if array and self._moves and not span.first else None,
                    casting=casting,
                )
            )
            if packed is not None:
                source = packed
        return passes

    @property
    def _moves(self) -> bool:
        """Whether the encoded bytes of the source become level 0."""
        target, array = self.targets.get(0), self.source.array
        if target is None or array is None:
            return False
        source = array.metadata
        if source.transformers or target.metadata.transformers:
            return False
        return encoded_transfer(source, target.metadata) == "units"


@dataclass(frozen=True)
class ComputedBlock:
    """Computes the levels of a block of a Dask array: a task of its graph."""

    shared: SharedPass

    def __call__(self, number: int, values: np.ndarray) -> Any:
        return self.shared.work.of_block(number, values)
