"""Chunk lengths along an axis as rectilinear grids declare them: with runs of equal lengths."""

from itertools import groupby
from typing import Any, TypeGuard

from zarrdask.errors import MetadataError, UnsupportedError

#: The chunks along an axis: one length for all, or the length of each.
Lengths = int | tuple[int, ...]
#: Chunks of equal length that follow one another: (length, number of chunks).
Run = tuple[int, int]

#: The maximum number of chunk lengths in a grid, over all axes. An axis whose chunks have one
#: length is not counted. It bounds the memory that a small document can ask for.
MAX_LENGTHS = 2**22


def is_length(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is a chunk length, or a count of chunks."""
    return type(value) is int and 1 <= value < 2**63


def parse_runs(value: Any) -> int | list[Run]:
    """Return the chunks along an axis from their declaration in a document (conformance C-39).

    Parameters
    ----------
    value : int or list
        The length of all chunks, or a list of lengths and of pairs ``[length, count]``.

    Examples
    --------
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
        "these are not chunk lengths",
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
