"""The rectilinear chunk grid: chunks whose lengths along each axis differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.grids.base import Axis, Index, Shape, check_axes
from zarrdask.grids.regular import RegularGrid
from zarrdask.grids.runs import (
    Lengths,
    Run,
    expand,
    is_length,
    parse_runs,
    render_runs,
    trim_last_run,
)


@dataclass(frozen=True)
class RectilinearGrid:
    """A grid of chunks whose lengths along an axis may differ (conformance C-39).

    Each chunk is stored in its own shape; the last ones may extend beyond the array, or lie
    outside it (conformance C-41).

    Parameters
    ----------
    shape : tuple of int
        The array's shape, in elements.
    chunk_lengths : tuple of (int or tuple of int)
        For each axis the length of all its chunks, or of each of them. It is normalised, so that
        equal grids compare equal: equal lengths become an integer, and chunks outside the array
        that repeat the length before them are dropped.

    Raises
    ------
    MetadataError
        If a length is not positive, or the chunks of an axis don't reach its end.

    Examples
    --------
    >>> grid = RectilinearGrid((6, 6), ((1, 2, 3), (2, 2, 2)))
    >>> grid.chunk_lengths, grid.counts, grid.start((2, 1)), grid.shape_of((2, 1))
    (((1, 2, 3), 2), (3, 3), (3, 2), (3, 2))
    """

    shape: Shape
    chunk_lengths: tuple[Lengths, ...]

    def __post_init__(self) -> None:
        check_axes(self.chunk_lengths, self.shape, "chunk_shapes")
        lengths = tuple(map(_plain, self.chunk_lengths, self.shape))
        object.__setattr__(self, "chunk_lengths", lengths)

    @classmethod
    def from_configuration(
        cls, configuration: Mapping[str, Any], shape: Shape
    ) -> "RectilinearGrid":
        chunk_shapes = configuration.get("chunk_shapes")
        if set(configuration) != {"kind", "chunk_shapes"} or not isinstance(chunk_shapes, list):
            raise MetadataError(
                "this is not the configuration of a rectilinear grid",
                key="chunk_grid",
                found=dict(configuration),
                expected='{"kind": "inline", "chunk_shapes": [...]}',
            )
        if configuration["kind"] != "inline":
            raise UnsupportedError(
                "unknown kind of rectilinear grid",
                key="chunk_grid",
                found=configuration["kind"],
                expected="'inline'",
            )
        check_axes(chunk_shapes, shape, "chunk_shapes")
        axes = [
            trim_last_run(parse_runs(item), size)
            for item, size in zip(chunk_shapes, shape, strict=True)
        ]
        return cls(shape, expand(axes))

    def to_json(self) -> dict[str, Any]:
        """Return the grid's v3 metadata; three or more equal lengths become a pair."""
        shapes = [n if isinstance(n, int) else render_runs(n) for n in self.chunk_lengths]
        return {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": shapes},
        }

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The chunk length along each axis, or the boundaries of the chunks."""
        return tuple(n if isinstance(n, int) else _edges(n) for n in self.chunk_lengths)

    @cached_property
    def is_regular(self) -> bool:
        """Whether all chunks have the same shape."""
        return all(isinstance(n, int) for n in self.chunk_lengths)

    @cached_property
    def counts(self) -> Shape:
        """The number of chunks along each axis, without those outside the array."""
        return tuple(
            -(-size // axis) if isinstance(axis, int) else int(np.searchsorted(axis, size))
            for axis, size in zip(self.axes, self.shape, strict=True)
        )

    @cached_property
    def chunk_shape(self) -> Shape:
        """The largest length along each axis."""
        return tuple(
            n if isinstance(n, int) else max(n[: max(count, 1)], default=1)
            for n, count in zip(self.chunk_lengths, self.counts, strict=True)
        )

    @property
    def size(self) -> int:
        """The number of chunks."""
        return prod(self.counts)

    def indices(self) -> Iterator[Index]:
        """Yield every chunk index, last axis fastest."""
        return product(*map(range, self.counts))

    def start(self, index: Index) -> Index:
        """Return the first element of a chunk."""
        return tuple(
            i * axis if isinstance(axis, int) else int(axis[i])
            for i, axis in zip(index, self.axes, strict=True)
        )

    def shape_of(self, index: Index) -> Shape:
        """Return the shape of a chunk."""
        return tuple(
            n if isinstance(n, int) else n[i]
            for i, n in zip(index, self.chunk_lengths, strict=True)
        )

    def resize(self, shape: Shape) -> "RectilinearGrid":
        """Return the grid of the array in another shape.

        Along an axis that becomes longer, chunks of the last length are added. Along one that
        becomes shorter, chunks outside the new shape stay declared, so that the shape of the
        chunk at a key never changes.

        >>> grid = RectilinearGrid((6,), ((1, 2, 3),))
        >>> grid.resize((2,)).chunk_lengths, grid.resize((10,)).chunk_lengths
        (((1, 2, 3),), ((1, 2, 3, 3, 3),))
        """
        check_axes(shape, self.shape, "shape")
        axes = list(map(_longer, self.chunk_lengths, shape))
        return RectilinearGrid(shape, expand(axes))


def make_grid(shape: Shape, chunk_lengths: tuple[Lengths, ...]) -> RegularGrid | RectilinearGrid:
    """Return the regular grid with these chunk lengths if there is one, else the rectilinear one.

    In a regular grid the last length of an axis may be shorter than the others, as in Dask's
    chunks: that chunk is stored in the full chunk shape. In a rectilinear grid every chunk is
    stored in exactly the given length.

    >>> make_grid((10, 4), ((4, 4, 2), 2))
    RegularGrid(shape=(10, 4), chunk_shape=(4, 2))
    >>> make_grid((10, 4), ((4, 4, 2), (1, 3)))
    RectilinearGrid(shape=(10, 4), chunk_lengths=((4, 4, 2), (1, 3)))
    """
    grid = RectilinearGrid(shape, chunk_lengths)
    even = [n for n in map(_even, grid.chunk_lengths) if n is not None]
    return RegularGrid(shape, tuple(even)) if len(even) == len(shape) else grid


def _even(lengths: Lengths) -> int | None:
    """Return the length that all chunks have, but for a shorter last one, or None."""
    if isinstance(lengths, int):
        return lengths
    if not lengths:
        return 1
    *others, last = lengths
    return others[0] if len(set(others)) == 1 and last < others[0] else None


def _plain(lengths: Lengths, size: int) -> Lengths:
    """Return the normalised chunk lengths of an axis; see `RectilinearGrid`."""
    values = (lengths,) if isinstance(lengths, int) else tuple(lengths)
    for n in values:
        if not is_length(n):
            raise MetadataError(
                "this is not a chunk length",
                key="chunk_shapes",
                found=n,
                expected="a positive integer",
            )
    if isinstance(lengths, int):
        return lengths
    total = sum(values)
    if not size <= total < 2**63:
        raise MetadataError(
            "the chunks don't reach the end of the axis",
            key="chunk_shapes",
            found=total,
            expected=f"a sum of at least {size}, and below 2**63",
        )
    count = len(values)
    while count > 1 and values[count - 1] == values[count - 2] and total - values[-1] >= size:
        total -= values[-1]
        count -= 1
    values = values[:count]
    return values[0] if len(set(values)) == 1 else values


def _longer(lengths: Lengths, size: int) -> int | list[Run]:
    """Return the chunks along an axis, with more of the last length added to reach its end."""
    if isinstance(lengths, int):
        return lengths
    if not lengths:
        return size or []
    missing = max(size - sum(lengths), 0)
    last = lengths[-1]
    return [*((length, 1) for length in lengths), (last, -(-missing // last))]


def _edges(lengths: tuple[int, ...]) -> np.ndarray:
    edges = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=edges[1:])
    edges.flags.writeable = False
    return edges
