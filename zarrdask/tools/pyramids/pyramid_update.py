"""The plan of an update of a pyramid, and how it is executed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import lt
from typing import Any

from zarrdask import config
from zarrdask.arrays.chunks.stored_keys import trim
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import existing_array, resized
from zarrdask.arrays.hierarchy.stored_manifest import digested
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.display.report import Report
from zarrdask.display.words import aligned
from zarrdask.errors import StoreError
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.parallel.execution.executor import Workers, check_reached, workers
from zarrdask.parallel.rewrite.node_plan import check_unchanged
from zarrdask.runtime.progress import Show
from zarrdask.tools.pyramids.levels import Level
from zarrdask.tools.pyramids.plan import PyramidPlan
from zarrdask.tools.pyramids.pyramid_changes import adding_levels
from zarrdask.tools.pyramids.record import PyramidRecord


@dataclass(frozen=True, eq=False, repr=False)
class PyramidUpdate(Report):
    """How the levels of a pyramid are computed again. `zarrdask.update_pyramid` returns it.

    Attributes
    ----------
    node : NodePath
        The group of the pyramid.
    before, after : PyramidRecord
        What is stored about the pyramid, before and after the update; `after` is None if nothing
        has changed.
    arrays : tuple of Array
        The levels, with level 0.
    region : tuple of slice
        The region of level 0 that has changed.
    plan : PyramidPlan, optional
        The passes over this region; None if no level is computed.
    attributes : mapping
        The attributes of the group that change.
    """

    _instead = "plan.execute() runs the plan"

    node: NodePath
    before: PyramidRecord
    after: PyramidRecord | None
    arrays: tuple[Array, ...]
    region: Region
    plan: PyramidPlan | None
    attributes: Mapping[str, Any]

    @property
    def is_needed(self) -> bool:
        """Whether level 0 has changed."""
        return self.after is not None

    def summary(self) -> str:
        """Return one line: the location, and the region that has changed."""
        return f"{self.node.location}: {self._change()}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the text: a name and a description each."""
        yield "pyramid", self.node.location
        yield "changed", self._change()
        if self.plan is not None:
            yield from self.plan.facts()

    def _change(self) -> str:
        if not self.is_needed:
            return "nothing, the levels are up to date"
        if not all(region_shape(self.region)):
            return "no values of level 0, but its shape, or an earlier update was interrupted"
        names = self.arrays[0].dimension_names or (None,) * len(self.region)
        pairs = enumerate(zip(names, self.region, strict=True))
        parts = (f"{name or axis}={pick.start}:{pick.stop}" for axis, (name, pick) in pairs)
        return f"{', '.join(parts)} of level 0"

    def _text(self) -> str:
        return aligned(self.facts(), line_width=100)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can represent: sizes are numbers of bytes."""
        return {
            "pyramid": self.node.location,
            "is_needed": self.is_needed,
            "region": [[pick.start, pick.stop] for pick in self.region],
            "plan": None if self.plan is None else self.plan.to_dict(),
        }

    def execute(self, scheduler: Any = None, *, progress: Show = True) -> Group:
        """Compute and store what has changed. If nothing has, nothing is written.

        Parameters
        ----------
        scheduler, progress
            As in `RechunkPlan.execute`.

        Returns
        -------
        Group
            The group of the pyramid.

        Raises
        ------
        StoreError
            If the pyramid has changed since the plan was made.
        """
        node, record = self.node, self.after
        if record is None:
            node.discard_dead_claim()  # of an update that was killed at its end
        else:
            check_unchanged(self.arrays[0])
            self._check_record()
            with workers(scheduler) as on:
                self._run(record, on, progress)
        return open_group(*node, mode="r+", consolidated=False)

    def _check_record(self) -> None:
        """Check that no other update was made since the plan: its levels would be resized back."""
        stored = PyramidRecord.read(self.node)
        if stored.levels != self.before.levels:
            raise StoreError(
                "the pyramid has been updated since the plan was made; plan it again",
                key=self.node.location,
            )

    def _run(self, record: PyramidRecord, on: Workers, show: Show) -> None:
        node, plan = self.node, self.plan
        check_reached(on, self.arrays[0].store, changed=node.store)
        fingerprint = {} if plan is None else plan.fingerprint
        options = {"overwrite": True, "restart": True}
        with adding_levels(node, {}, self.attributes, fingerprint, **options) as rewrite:
            is_early = node.store.capabilities.bounded  # its chunks lie within the shape
            if plan is not None and not is_early:
                plan.run(rewrite, on, show)
            for array, level in zip(self.arrays, record.levels, strict=True):
                _resize(array, level)
            if plan is not None and is_early:
                plan.run(rewrite, on, show)
            if plan is not None:
                written = {record.levels[n].path: each for n, each in plan.targets.items()}
                rewrite.keep_manifests(written, are_new=False)
            record.write(node)


def _resize(array: Array, level: Level) -> None:
    """Resize the array of a level, after its chunks are stored."""
    node, shape, chunks = array.node_path, array.shape, chunks_of(array)
    if shape == level.shape:
        return
    if config.get("manifests"):
        chunks = digested(chunks)
    if any(map(lt, level.shape, shape)):
        trim(resized(chunks, tuple(map(max, shape, level.shape))), level.shape)

    def update(stored: Metadata | None) -> ArrayMetadata:
        return existing_array(stored, node.location).resized(level.shape)

    node.update(array.zarr_format, update)
    node.current.keep_manifest(chunks)
