"""Texts for numbers and lists. Pure."""

import reprlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import chain
from math import inf
from textwrap import wrap
from typing import Any

import numpy as np

#: The largest number of lines that are shown of a list.
_MAX_LINES = 20


def byte_size(count: int) -> str:
    """Return a text for a number of bytes.

    >>> byte_size(10), byte_size(1536), byte_size(3 * 2**40)
    ('10 B', '1.5 KiB', '3 TiB')
    """
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1000 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.3g} {units[0]}"


def counted(number: int, name: str) -> str:
    """Return a number with a noun in the singular or plural.

    >>> counted(1, "array"), counted(2, "box"), counted(2, "chunk or shard")
    ('1 array', '2 boxes', '2 chunks or shards')
    """
    nouns = name.split(" or ")
    if number != 1:
        nouns = [f"{noun}es" if noun.endswith(("s", "x")) else f"{noun}s" for noun in nouns]
    return f"{number} {' or '.join(nouns)}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest name; empty if none is near.

    >>> did_you_mean("titel", ["title", "n"]), did_you_mean("x", ["title"])
    ("; did you mean 'title'?", '')
    """
    match = nearest(name, names)
    return "" if match is None else f"; did you mean {match!r}?"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like another one; None if none is.

    >>> nearest("dota.zarr", ["data.zarr", "x.zarr"]), nearest("other.zarr", ["x.zarr"])
    ('data.zarr', None)
    >>> nearest("a.zar", ["a.zarr"])
    'a.zarr'
    >>> nearest("T", ["time", "t"])
    't'
    """
    # That all names end with .zarr makes none of them alike.
    _, dot, ending = name.rpartition(".")
    end = dot + ending if dot else ""
    names = list(names)
    for other in names:
        if other.casefold() == name.casefold() and other != name:
            return other
    stems = {other.removesuffix(end): other for other in names}
    matches = get_close_matches(name.removesuffix(end), list(stems), 1)
    if not matches:  # the ending itself may be mistyped
        others = [stem for stem, other in stems.items() if stem == other]
        matches = get_close_matches(name, others, 1)
    return stems[matches[0]] if matches else None


def brief_lengths(lengths: tuple[Any, ...]) -> str:
    """Return the lengths of chunks as text; only the first few if they are listed one by one.

    >>> brief_lengths((10, 20)), brief_lengths(((1, 2, 3, 4, 5, 6, 7), 20))
    ('(10, 20)', '((1, 2, 3, 4, 5, 6, ...), 20)')
    """
    are_listed = any(isinstance(axis, tuple) for axis in lengths)
    return reprlib.repr(lengths) if are_listed else repr(lengths)


def first_of(lines: list[str], what: str = "") -> list[str]:
    """Return the first of many lines, and a line with the number of the others.

    Parameters
    ----------
    lines : list of str
        The lines.
    what : str, optional
        What the lines describe, for the added line.
    """
    omitted = len(lines) - _MAX_LINES
    more = f"  ... and {omitted} more{f': {what}' if what else ''}"
    return lines if omitted <= 0 else [*lines[:_MAX_LINES], more]


def aligned(rows: Iterable[tuple[str, str]], line_width: float = inf) -> str:
    """Return names and descriptions as two columns, in lines of at most a number of characters.

    >>> print(aligned([("array", "(4, 4)"), ("tasks", "2")]))
    array  (4, 4)
    tasks  2
    """
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0) + 2
    indent = " " * width
    lines = (
        [name.ljust(width) + text]
        if width + len(text) <= line_width
        else wrap(name.ljust(width) + text, int(line_width), subsequent_indent=indent)
        for name, text in rows
    )
    return "\n".join(chain.from_iterable(lines))


def value_text(value: Any, text: Callable[[Any], str] = str) -> str:
    """Return the text of a value. Times for which NumPy has no date are counts of their unit.

    >>> value_text(np.array(2**63 - 1).view("M8[25s]")[()])
    '9223372036854775807 (datetime64[25s])'
    """
    try:
        if isinstance(value, np.generic | np.ndarray):
            _check_dates(np.asarray(value))
        return text(value)
    except (OverflowError, ValueError):
        if isinstance(value, np.datetime64):
            return f"{int(value.view('i8'))} ({value.dtype})"
        if isinstance(value, np.void) and value.dtype.names:
            return f"({', '.join(value_text(value[name], text) for name in value.dtype.names)})"
        if isinstance(value, np.ndarray) and not value.ndim:
            return value_text(value[()], text)
        if isinstance(value, np.ndarray):
            return f"[{', '.join(value_text(item, text) for item in value)}]"
        raise


def _check_dates(values: np.ndarray) -> None:
    """Raise an OverflowError if NumPy has no date for some of the values."""
    for name in values.dtype.names or ():
        _check_dates(values[name])
    if values.dtype.kind == "M":
        # Older releases multiply the count of units without noticing that it overflows.
        _, step = np.datetime_data(values.dtype)
        largest = np.iinfo("i8").max // step
        counts = values[~np.isnat(values)].astype("i8")
        if step > 1 and ((counts > largest) | (counts < -largest)).any():
            raise OverflowError
