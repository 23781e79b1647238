"""Lengths of chunks along an axis, as rectilinear grids declare them: with runs of equal ones."""

from itertools import groupby
from typing import Any, TypeGuard

from zarrdask.errors import MetadataError, UnsupportedError

#: The chunks along an axis: one length for all, or the length of each.
Lengths = int | tuple[int, ...]
#: Equal lengths in turn: (length, how many).
Run = tuple[int, int]

#: The most lengths that the axes of a grid may have together; where all chunks of an axis are of
#: one length, that counts as one.
MAX_LENGTHS = 2**22


def is_length(value: Any) -> TypeGuard[int]:
    """Whether this is a chunk length, or a count, that metadata may have."""
    return type(value) is int and 1 <= value < 2**63


def parse_runs(value: Any) -> int | list[Run]:
    """Return the chunks along an axis as they are declared (conformance C-39).

    Raises
    ------
    MetadataError
        If it is neither a length nor a list of lengths and of pairs of length and count.

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
        "not chunk lengths",
        key="chunk_shapes",
        found=value,
        expected="a positive integer, or a list of them and of pairs [length, count]",
    )


def trim_last_run(runs: int | list[Run], size: int) -> int | list[Run]:
    """Return runs of which the last is no longer than it has to be; one length if all are equal.

    So a count of 10**12 costs nothing where it stands for "and so on".
    """
    if isinstance(runs, int) or not runs:
        return runs
    *before, (length, count) = runs
    covered = sum(n * times for n, times in before)
    if covered + length * count >= size and all(n == length for n, _ in before):
        return length
    return [*before, (length, min(count, max(-(-(size - covered) // length), 1)))]


def expand(axes: list[int | list[Run]]) -> tuple[Lengths, ...]:
    """Return each length by itself.

    Raises
    ------
    UnsupportedError
        If they are too many: a document may have any count.
    """
    count = sum(times for runs in axes if not isinstance(runs, int) for _, times in runs)
    if count > MAX_LENGTHS:
        raise UnsupportedError(
            "too many chunks of different lengths",
            key="chunk_shapes",
            found=count,
            expected=f"at most {MAX_LENGTHS}",
        )
    return tuple(
        runs if isinstance(runs, int) else tuple(n for n, times in runs for _ in range(times))
        for runs in axes
    )


def render_runs(lengths: tuple[int, ...]) -> list[int | list[int]]:
    """Return lengths as JSON: three equal ones or more become a pair.

    >>> render_runs((1, 1, 1, 3))
    [[1, 3], 3]
    """
    shapes: list[int | list[int]] = []
    for length, group in groupby(lengths):
        count = sum(1 for _ in group)
        shapes += [[length, count]] if count > 2 else [length] * count
    return shapes
