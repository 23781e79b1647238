"""The sources of a concatenation as passed by a user: patterns, URLs, arrays, nested lists."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from glob import glob, has_magic
from typing import Any, NamedTuple

from zarrdask.errors import MetadataError, NodeNotFoundError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.storage.resolve import takes_options

_DIGITS = re.compile(r"(\d+)")


class Source(NamedTuple):
    """Where an array is, and the region of it; by default all of it."""

    array: Any
    region: Any = None


class SourceTable(NamedTuple):
    """Sources in C order, and their number along each level of lists."""

    sources: list[Source | None]
    counts: Shape


def parse_sources(sources: Any, storage_options: dict[str, Any] | None) -> SourceTable:
    """Return sources as a table; patterns are replaced by what they match.

    Raises
    ------
    MetadataError
        If there are no sources, or the lists are not nested evenly.
    NodeNotFoundError
        If nothing matches a pattern.
    """
    if isinstance(sources, str | os.PathLike):
        sources = matching(os.fspath(sources), storage_options)
    levels = _levels(sources)
    counts: list[int] = []
    rows: list[Any] = [sources]
    for _ in range(levels):
        lengths = {len(row) if isinstance(row, list) else -1 for row in rows}
        if len(lengths) != 1 or lengths <= {-1, 0}:
            raise MetadataError(
                "the lists of sources differ in length or depth, or are empty",
                key="sources",
                found=sorted(lengths),
                expected="lists of the same length at each level",
            )
        counts.append(lengths.pop())
        rows = [each for row in rows for each in row]
    return SourceTable([_source(row) for row in rows], tuple(counts))


def _levels(sources: Any) -> int:
    if not isinstance(sources, list):
        if (
            isinstance(sources, Iterable)
            and not isinstance(sources, Mapping)
            and not hasattr(sources, "shape")
        ):
            raise MetadataError(
                "sources are given as a list; a tuple is a source and a region of it",
                key="sources",
                found=type(sources).__name__,
                expected="a pattern, a list, or nested lists",
            )
        raise MetadataError(
            "sources must be a list",
            key="sources",
            found=sources,
            expected="a pattern, a list, or nested lists",
        )
    return 1 + (_levels(sources[0]) if sources and isinstance(sources[0], list) else 0)


def _source(value: Any) -> Source | None:
    if value is None:
        return None
    if isinstance(value, list):
        raise MetadataError(
            "the lists of sources differ in depth",
            key="sources",
            found=f"a list of {len(value)}",
            expected="a source",
        )
    if isinstance(value, tuple) and len(value) == 2:
        return Source(*value)
    return Source(value)


def matching(pattern: str, storage_options: dict[str, Any] | None) -> list[str]:
    """Return the paths or URLs that match a pattern, in natural order: ``x-9`` before ``x-10``.

    Raises
    ------
    NodeNotFoundError
        If nothing matches.
    """
    if not has_magic(pattern):
        return [pattern]
    if "://" not in pattern and "::" not in pattern:
        paths: Iterable[str] = glob(os.path.expanduser(pattern), recursive=True)
    else:
        paths = _remote(pattern, storage_options)
    matches = sorted(paths, key=natural_order)
    if not matches:
        raise NodeNotFoundError(
            "no such file or directory: nothing matches the pattern", key=pattern
        )
    return matches


def _remote(pattern: str, storage_options: dict[str, Any] | None) -> Iterator[str]:
    import fsspec

    options = storage_options if takes_options(pattern) else None
    files, path = fsspec.core.url_to_fs(pattern, **(options or {}))
    return (files.unstrip_protocol(each) for each in files.glob(path))


def natural_order(text: str) -> list[tuple[int, int, str]]:
    """Return the key that sorts texts so that numbers in them are in the order of their values.

    >>> sorted(["x-10", "x-9", "x"], key=natural_order)
    ['x', 'x-9', 'x-10']
    """
    parts = _DIGITS.split(text)
    return [(1, int(part), part) if part.isdigit() else (0, 0, part) for part in parts]
