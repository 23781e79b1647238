"""Read the steps of an epoch: each column of chunks is decoded once, and kept as planned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.arrays.samples.epoch_plan import Columns, EpochPlan
from zarrdask.arrays.samples.windows import ArrayWindows, Piece
from zarrdask.formats.codecs.decode import Blocks
from zarrdask.formats.indexing.projection import Regions
from zarrdask.formats.indexing.regions import view
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.runtime import buffers


@dataclass(frozen=True)
class SampledArray:
    """An array and its windows, with the number of each column among the columns of all arrays."""

    stored: StoredChunks
    windows: ArrayWindows
    numbers: Mapping[int, int]


def sampled_arrays(
    stored: Sequence[StoredChunks], windows: Sequence[ArrayWindows], columns: Columns
) -> list[SampledArray]:
    """Return arrays with their windows."""
    return [
        SampledArray(chunks, each, columns.numbers(n))
        for n, (chunks, each) in enumerate(zip(stored, windows, strict=True))
    ]


@dataclass
class _Loads:
    """The reads of an array in a step: parts of samples, and columns that are kept."""

    regions: list[Region] = field(default_factory=list)
    blocks: list[np.ndarray] = field(default_factory=list)

    def add(self, region: Region, block: np.ndarray) -> None:
        """Add a region, and the memory for it."""
        self.regions.append(region)
        self.blocks.append(block)


class BatchReader:
    """Reads the steps of an epoch in order, and keeps columns between them.

    Parameters
    ----------
    arrays : list of SampledArray
        The arrays.
    plan : EpochPlan
        The plan of the epoch.
    """

    def __init__(self, arrays: Sequence[SampledArray], plan: EpochPlan) -> None:
        self.arrays, self.plan = arrays, plan
        self._kept = dict[int, np.ndarray]()

    def read(self, step: int) -> list[list[np.ndarray]]:
        """Return the batches of a step: for each, the samples of all arrays."""
        together = self.plan.layout.together
        numbers = range(step * together, min((step + 1) * together, self.plan.batches))
        batches = [self.plan.samples(number) for number in numbers]
        results = [
            [
                buffers.empty((len(samples), *a.windows.window_shape), a.stored.metadata.dtype)
                for a in self.arrays
            ]
            for samples in batches
        ]
        kept = self.plan.kept_after(step)
        waiting = list[tuple[int, np.ndarray, Piece]]()
        used, loads = set[int](), [_Loads() for _ in self.arrays]
        for samples, blocks in zip(batches, results, strict=True):
            for array, own, block in zip(self.arrays, loads, blocks, strict=True):
                for at, sample in enumerate(samples.tolist()):
                    for piece in array.windows.pieces(sample):
                        number = array.numbers[piece.column]
                        target = view(block[at, ...], piece.outside)
                        if number in self._kept:
                            target[...] = view(self._kept[number], piece.inside)
                            used.add(number)
                        elif number in kept:
                            waiting.append((number, target, piece))
                        else:
                            own.add(piece.region, target)
        # First what is not needed any more: the plan counts what is kept between steps.
        for number in used - kept:
            del self._kept[number]
        for array, own in zip(self.arrays, loads, strict=True):
            self._load(array, own, waiting)
        _read(self.arrays, loads)
        for number, target, piece in waiting:
            target[...] = view(self._kept[number], piece.inside)
        return results

    def _load(
        self, array: SampledArray, loads: _Loads, waiting: Sequence[tuple[int, np.ndarray, Piece]]
    ) -> None:
        """Let the columns of an array be read that pieces wait for."""
        for number, _, piece in waiting:
            if number not in self._kept and array.numbers.get(piece.column) == number:
                region = array.windows.column_region(piece.column)
                column = buffers.empty(region_shape(region), array.stored.metadata.dtype)
                self._kept[number] = column
                loads.add(region, column)


def _read(arrays: Sequence[SampledArray], loads: Sequence[_Loads]) -> None:
    reads = (
        ArrayRead(
            array.stored,
            Regions(tuple(own.regions)),
            Blocks(own.blocks, array.stored.metadata.dtype),
        )
        for array, own in zip(arrays, loads, strict=True)
        if own.regions
    )
    for _ in read_together(reads):
        pass
