"""The rectilinear chunk grid: chunks whose lengths along each axis differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypeGuard

from zarrdask.errors import MetadataError, UnsupportedError, instance_of
from zarrdask.formats.extension import members_of
from zarrdask.formats.grids.axis import Axis, axis_of
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index, Shape, check_axes
from zarrdask.formats.grids.regular import RegularGrid

#: The chunks along an axis: one length for all, or the length of each.
Lengths = int | tuple[int, ...]
#: Chunks of equal length that follow one another: (length, number of chunks).
Run = tuple[int, int]

#: The maximum number of chunk lengths in a grid, over all axes. An axis whose chunks have one
#: length is not counted. It bounds the memory that a small document can ask for.
MAX_LENGTHS = 2**22


@dataclass(frozen=True)
class RectilinearGrid(ChunkGrid):
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

    chunk_lengths: tuple[Lengths, ...]

    def __post_init__(self) -> None:
        check_axes(self.chunk_lengths, self.shape, "chunk_shapes")
        lengths = tuple(map(_plain, self.chunk_lengths, self.shape))
        object.__setattr__(self, "chunk_lengths", lengths)

    @classmethod
    def from_configuration(
        cls, configuration: Mapping[str, Any], shape: Shape
    ) -> "RectilinearGrid":
        key, required = "chunk_grid rectilinear", {"kind": ..., "chunk_shapes": ...}
        members = members_of(configuration, key, required)
        chunk_shapes = instance_of(members["chunk_shapes"], "chunk_shapes", list)
        if members["kind"] != "inline":
            message = "unknown kind of rectilinear grid"
            raise UnsupportedError(message, key=key, found=members["kind"], expected="'inline'")
        check_axes(chunk_shapes, shape, "chunk_shapes")
        axes = [
            trim_last_run(parse_runs(item), size)
            for item, size in zip(chunk_shapes, shape, strict=True)
        ]
        return cls(shape, expand(axes))

    def to_json(self) -> dict[str, Any]:
        """Return the grid's v3 metadata; three or more equal lengths become a pair."""
        shapes = [n if isinstance(n, int) else render_runs(n) for n in self.chunk_lengths]
        return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(map(axis_of, self.shape, self.chunk_lengths))

    def shape_of(self, index: Index) -> Shape:
        # Faster than by boundaries, as it is called for each chunk.
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


def make_grid(
    shape: Shape, chunk_lengths: tuple[Lengths, ...], inner: Shape | None = None
) -> RegularGrid | RectilinearGrid:
    """Return the regular grid with these chunk lengths if there is one, else the rectilinear one.

    In a regular grid the last length of an axis may be shorter than the others, as in Dask's
    chunks: that chunk is stored in the full chunk shape. In a rectilinear grid every chunk is
    stored in exactly the given length. If the chunks are shards, `inner` is the shape of the chunks
    in them, and the last shards along each axis are rounded up to whole chunks.

    >>> make_grid((10, 4), ((4, 4, 2), 2))
    RegularGrid(shape=(10, 4), chunk_shape=(4, 2))
    >>> make_grid((10, 4), ((4, 4, 2), (1, 3)))
    RectilinearGrid(shape=(10, 4), chunk_lengths=((4, 4, 2), (1, 3)))
    """
    if inner is not None:
        chunk_lengths = tuple(map(_whole_chunks, chunk_lengths, inner, shape))
    grid = RectilinearGrid(shape, chunk_lengths)
    even = [n for n in map(_even, grid.chunk_lengths) if n is not None]
    return RegularGrid(shape, tuple(even)) if len(even) == len(shape) else grid


def _whole_chunks(lengths: Lengths, chunk: int, size: int) -> Lengths:
    """Return the lengths of shards, with the last one rounded up to whole chunks."""
    if isinstance(lengths, int):
        return lengths
    if not lengths:
        return lengths if size else chunk
    return (*lengths[:-1], -(-lengths[-1] // chunk) * chunk)


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
                "invalid chunk length",
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


# --------------------------------------------------------------------------------------------
# Runs of equal lengths, as documents declare them


def is_length(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is a chunk length, or a count of chunks."""
    return type(value) is int and 1 <= value < 2**63


def parse_runs(value: Any) -> int | list[Run]:
    """Return the chunks along an axis from their declaration in a document (conformance C-39).

    That is the length of all chunks, or a list of lengths and of pairs ``[length, count]``.

    >>> parse_runs(4), parse_runs([[1, 3], 3])
    (4, [(1, 3), (3, 1)])
    """
    if is_length(value):
        return value
    if not isinstance(value, list):
        raise _not_lengths(value)
    runs = []
    for item in value:
        pair = item if isinstance(item, list) else [item, 1]
        if len(pair) != 2 or not all(map(is_length, pair)):
            raise _not_lengths(item)
        runs.append((pair[0], pair[1]))
    return runs


def _not_lengths(value: Any) -> MetadataError:
    return MetadataError(
        "invalid chunk lengths",
        key="chunk_shapes",
        found=value,
        expected="a positive integer, or a list of them and of pairs [length, count]",
    )


def trim_last_run(runs: int | list[Run], size: int) -> int | list[Run]:
    """Return runs whose last has no more chunks than an axis of `size` needs.

    If all lengths are equal, the result is that length. Some writers declare a count of 10**12
    to say "and so on"; it costs nothing then.
    """
    if isinstance(runs, int) or not runs:
        return runs
    *before, (length, count) = runs
    covered = sum(n * times for n, times in before)
    if covered + length * count >= size and all(n == length for n, _ in before):
        return length
    return [*before, (length, min(count, max(-(-(size - covered) // length), 1)))]


def expand(axes: list[int | list[Run]]) -> tuple[Lengths, ...]:
    """Return the chunk lengths along each axis, with the runs written out."""
    count = sum(times for runs in axes if not isinstance(runs, int) for _, times in runs)
    if count > MAX_LENGTHS:
        raise UnsupportedError(
            "the grid has too many chunks of different lengths",
            key="chunk_shapes",
            found=count,
            expected=f"at most {MAX_LENGTHS}",
        )
    return tuple(
        runs if isinstance(runs, int) else tuple(n for n, times in runs for _ in range(times))
        for runs in axes
    )


def render_runs(lengths: tuple[int, ...]) -> list[int | list[int]]:
    """Return lengths as JSON, where three or more equal ones become a pair ``[length, count]``.

    >>> render_runs((1, 1, 1, 3))
    [[1, 3], 3]
    """
    shapes: list[int | list[int]] = []
    for length, group in groupby(lengths):
        count = sum(1 for _ in group)
        shapes += [[length, count]] if count > 2 else [length] * count
    return shapes
