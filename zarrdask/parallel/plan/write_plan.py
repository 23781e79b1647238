"""The plan of a write: which task writes which stored unit, and what that costs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import index as as_integer
from typing import Any, ClassVar, Protocol

import numpy as np

from zarrdask.display.picture import Picture
from zarrdask.display.report import Report, json_value
from zarrdask.display.svg import html, svg
from zarrdask.display.words import byte_size, counted
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index, Shape
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.plan.align import Chunks, shorten, snap
from zarrdask.parallel.plan.axis import (
    AxisPlan,
    KindCounts,
    Unit,
    count_kinds,
    describe_change,
    describe_lengths,
    unit_at,
)
from zarrdask.parallel.plan.drawing import axis_names, draw
from zarrdask.parallel.plan.request_costs import UNCOMPRESSED, RequestCosts

#: The name of a source block in texts.
_SOURCE = "Dask block"


class Target(Protocol):
    """The properties of a stored array that a plan depends on; `ArrayMetadata` has them."""

    @property
    def shape(self) -> Shape:
        """The shape in elements."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""

    @property
    def grid(self) -> ChunkGrid:
        """The grid of the units that must have one writer each."""

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The name of each axis, if there are names."""


@dataclass(frozen=True, eq=False, repr=False)
class WritePlan(Report):
    """A plan to write a Dask array: which task writes which stored unit, and why.

    A stored unit is the content of one stored object: a chunk, or a shard. (With the sharding
    transformer of the v3 draft: all chunks that share an object.) Each has exactly one owner.

    Attributes
    ----------
    axes : tuple of AxisPlan
        The plan along each axis; the axes are independent of each other.
    dtype : numpy.dtype
        The type of the Dask array.
    stored_dtype : numpy.dtype
        The type of the stored array.
    names : tuple of str
        The names of the axes.
    encoded_size : int, optional
        The encoded size of each stored unit in bytes, if no codec compresses.

    See Also
    --------
    zarrdask.plan_write : Create a plan.
    """

    _instead = "zarrdask.to_zarr(x, url) writes an array"

    axes: tuple[AxisPlan, ...]
    dtype: np.dtype[Any]
    stored_dtype: np.dtype[Any]
    names: tuple[str, ...]
    encoded_size: int | None = None
    derived: ClassVar[tuple[str, ...]] = (
        *("shape", "source", "blocks", "objects", "whole", "merged", "read_modify_write"),
        *("tasks", "extra_tasks", "nbytes", "moved", "block_bytes", "unit_bytes", "peak"),
    )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that JSON can represent: sizes are numbers of bytes."""
        numbers = {name: json_value(getattr(self, name)) for name in self.derived}
        return numbers | self.costs.to_dict()

    @property
    def shape(self) -> Shape:
        """The shape of the Dask array."""
        return tuple(axis.stop - axis.start for axis in self.axes)

    @property
    def region(self) -> Region:
        """The region of the stored array that is written."""
        return tuple(slice(axis.start, axis.stop, 1) for axis in self.axes)

    @property
    def source(self) -> Chunks:
        """The lengths of the blocks of the Dask array."""
        return tuple(axis.source for axis in self.axes)

    @property
    def blocks(self) -> Chunks:
        """The lengths of the blocks that are written, by one task each."""
        return tuple(axis.blocks for axis in self.axes)

    @property
    def nbytes(self) -> int:
        """The size of the Dask array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    # ----------------------------------------------------------------------------------------
    # Units

    @cached_property
    def _kinds(self) -> KindCounts:
        return count_kinds(self.axes)

    @property
    def objects(self) -> int:
        """The number of stored units that are written."""
        return sum(self._kinds)

    @property
    def whole(self) -> int:
        """The number of units that are covered by one source block."""
        return self._kinds.whole

    @property
    def merged(self) -> int:
        """The number of units that are merged from several source blocks."""
        return self._kinds.merged

    @property
    def read_modify_write(self) -> int:
        """The number of units covered in part: their owners read, change and write them."""
        return self._kinds.read_modify_write

    def owner(self, index: Sequence[int] | int) -> Index:
        """Return the index of the planned block that writes a stored unit.

        Parameters
        ----------
        index : sequence of int
            The index of the unit in the grid of the stored array (not within the region).

        Raises
        ------
        SelectionError
            If nothing is written to this unit.
        """
        return self.unit(index).owner

    def unit(self, index: Sequence[int] | int) -> Unit:
        """Return how a stored unit is written, and why.

        Parameters
        ----------
        index : sequence of int
            The index of the unit in the grid of the stored array (not within the region).

        Raises
        ------
        SelectionError
            If nothing is written to this unit.
        """
        numbers = index if isinstance(index, Sequence) else [index]
        return unit_at(self.axes, self.names, _SOURCE, tuple(map(as_integer, numbers)))

    # ----------------------------------------------------------------------------------------
    # Costs

    @property
    def tasks(self) -> int:
        """The number of tasks that write, one for each block."""
        return prod(map(len, self.blocks))

    @property
    def extra_tasks(self) -> int:
        """The number of tasks that split and join blocks before the write.

        One for each piece of a block, and one for each block that is joined from several pieces;
        none if the block boundaries already lie on unit boundaries. There are fewer where Dask
        joins many pieces in several steps, or fuses these tasks with others.
        """
        pieces = [axis.pieces for axis in self.axes]
        split = prod(p.count for p in pieces) - prod(p.entire for p in pieces)
        return split + prod(p.blocks for p in pieces) - prod(p.single for p in pieces)

    @property
    def moved(self) -> int:
        """The number of bytes that move from one block to another.

        In each written block, all bytes move except its largest piece. No other
        choice of boundaries between units moves fewer bytes.
        """
        kept = prod(axis.pieces.kept for axis in self.axes)
        return (prod(self.shape) - kept) * self.dtype.itemsize

    @property
    def block_bytes(self) -> int:
        """The size of the largest written block in bytes."""
        return prod(map(max, self.blocks)) * self.dtype.itemsize

    @property
    def unit_bytes(self) -> int:
        """The decoded size of the largest written unit in bytes."""
        return prod(axis.unit_length for axis in self.axes) * self.stored_dtype.itemsize

    @property
    def peak(self) -> int:
        """The largest number of bytes that a task holds at a time.

        A task holds its block; the pieces that the block is joined from, which are as large
        together; and the converted block, if the types differ. A write adds three times the size
        of a unit: the assembled values, and the input and output of a codec. Units that are read
        back add it a fourth time. The working memory of codecs is not counted, nor are values that
        lie outside of the array's buffer (text, objects).
        """
        longest = list(map(max, self.blocks))
        # A block that is joined along one axis may have the full length along all others.
        joined = max(
            (
                prod(longest[:number]) * axis.pieces.joined * prod(longest[number + 1 :])
                for number, axis in enumerate(self.axes)
            ),
            default=0,
        )
        values = max(prod(longest), 2 * joined) * self.dtype.itemsize
        if self.dtype != self.stored_dtype:
            values += prod(longest) * self.stored_dtype.itemsize
        copies = 4 if self.read_modify_write else 3
        return values + copies * self.unit_bytes

    @property
    def costs(self) -> RequestCosts:
        """The requests by class, and the price by the setting ``zarrdask.prices``.

        One PUT for each chunk or shard, and one GET for each that is changed in part. The encoded
        bytes are counted before compression, if codecs compress.
        """
        size = self.unit_bytes if self.encoded_size is None else self.encoded_size
        fetched, stored = self.read_modify_write * size, self.objects * size
        estimates = {} if self.encoded_size is not None else {"stored": UNCOMPRESSED}
        if fetched:
            estimates["fetched"] = (
                "if all are stored" + ", " * bool(estimates) + "".join(estimates.values())
            )
        requests = {"GET": self.read_modify_write, "PUT": self.objects}
        return RequestCosts(requests, fetched, stored, estimates)

    @property
    def requests_by_class(self) -> dict[str, int]:
        """The number of requests by class, such as "PUT"."""
        return self.costs.requests

    @property
    def price(self) -> float | None:
        """The price by the setting ``zarrdask.prices``; None without the setting."""
        return self.costs.price

    # ----------------------------------------------------------------------------------------
    # Text and drawings

    def svg(self, axes: Sequence[int] | None = None) -> str:
        """Return a drawing of the units, in the colours of their owners, and of the source blocks.

        Parameters
        ----------
        axes : sequence of int, optional
            One axis, or two: the vertical one and the horizontal one. By default, the two axes
            along which the most blocks and units differ.

        Returns
        -------
        str
            An SVG document.

        Raises
        ------
        SelectionError
            If these are not one or two of the axes.
        """
        return svg(self._picture(axes))

    def _repr_html_(self) -> str:
        return html(self._picture())

    def summary(self) -> str:
        """Return one line: the shape, and the numbers of tasks and units."""
        kinds = f"{self.whole} whole, {self.merged} merged, {self.read_modify_write} partial"
        counts = f"{counted(self.tasks, 'task')}, {counted(self.objects, 'chunk or shard')}"
        return f"{self.shape}, {counts}: {kinds}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the lines of the text: a name and a description each."""
        kinds = ", ".join(text for _, text in self._kinds.labels(_SOURCE))
        tasks, moved, memory = self._costs()
        changes = map(describe_change, self.axes)
        return [
            ("array", self._title()),
            ("stored", f"{counted(self.objects, 'chunk or shard')}: {kinds}"),
            ("costs", str(self.costs)),
            ("tasks", tasks),
            ("moved", moved),
            ("memory", memory),
            *zip(self.names, changes, strict=True),
        ]

    def _picture(self, axes: Sequence[int] | None = None) -> Picture:
        picture = draw(self.axes, self.names, _SOURCE, axes)
        legend = ("block", "written blocks, one task each"), ("source", "Dask blocks")
        return replace(
            picture,
            title=self._title(),
            legend=(*picture.legend, *legend),
            notes=(*self._costs(), *picture.notes),
        )

    def _title(self) -> str:
        types = " as ".join(dict.fromkeys(map(str, (self.dtype, self.stored_dtype))))
        stored = tuple(axis.units.size for axis in self.axes)
        into = "" if stored == self.shape else f" into {stored}"
        units = " x ".join(describe_lengths(axis.units.lengths) for axis in self.axes)
        return f"{self.shape} {types}{into}, chunks or shards of {units or 1}"

    def _costs(self) -> tuple[str, str, str]:
        """Return a line each about tasks, moved bytes and memory."""
        extra = self.extra_tasks
        before = "blocks are unchanged"
        if extra:
            before = f"{counted(extra, 'task')} before to split and join blocks"
        sizes = f"block {byte_size(self.block_bytes)}, chunk or shard {byte_size(self.unit_bytes)}"
        return (
            f"{counted(self.tasks, 'write task')}; {before}",
            f"{byte_size(self.moved)} of {byte_size(self.nbytes)} move to another block",
            f"up to {byte_size(self.peak)} per task ({sizes})",
        )


def plan_writes(
    chunks: Chunks,
    dtype: np.dtype[Any],
    target: Target,
    region: Region,
    *,
    block_size: int,
    keeps: bool = False,
) -> WritePlan:
    """Return the plan to write blocks, of some lengths and a type, to a region of a stored array.

    Parameters
    ----------
    block_size : int
        A size in bytes. Blocks that are joined along one axis, because units are longer there,
        are cut between units along the other axes: down to this size, or to twice the size of the
        largest source block. A block of one unit may be larger.
    keeps : bool, default False
        Whether elements that units hold beyond the end of the array are kept, as in an existing
        array, so that these units are read, changed and written. Otherwise, as in a new array,
        they become the fill value.

    Notes
    -----
    Along each axis, block boundaries are moved to unit boundaries (see
    `zarrdask.parallel.plan.align.snap`). Blocks that already lie on unit boundaries are unchanged.
    """
    units, start = target.grid.axes, tuple(pick.start for pick in region)
    blocks = tuple(map(snap, chunks, start, units))
    if blocks != chunks:
        largest = prod(map(max, chunks))
        max_elements = max(block_size // max(dtype.itemsize, 1), 2 * largest)
        blocks = shorten(blocks, start, units, max_elements)
    return WritePlan(
        tuple(map(AxisPlan, chunks, blocks, units, start, (keeps,) * len(units))),
        dtype,
        target.dtype,
        axis_names(target.dimension_names, len(units)),
    )
