"""Texts for numbers, names and lists."""

import pytest

from tests.covering import for_each
from zarrdask.display.words import (
    aligned,
    brief_lengths,
    byte_size,
    counted,
    did_you_mean,
    first_of,
    nearest,
)


@for_each(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (1536, "1.5 KiB"), (2**70, "1.02e+03 EiB")],
)
def test_bytes_have_the_unit_that_makes_them_short(count, text):
    assert byte_size(count) == text


@for_each(
    ("number", "name", "text"),
    [
        (1, "chunk", "1 chunk"),
        (0, "chunk", "0 chunks"),
        (2, "box", "2 boxes"),
        (3, "chunk or shard", "3 chunks or shards"),
    ],
)
def test_nouns_are_in_the_plural_unless_there_is_one(number, name, text):
    assert counted(number, name) == text


@for_each(
    ("name", "names", "expected"),
    [
        ("titel", ["n", "title"], "title"),
        ("T", ["t", "T"], "t"),
        ("x.zarr", ["data.zarr"], None),
        ("data.zar", ["data.zarr"], "data.zarr"),
        ("a", [], None),
    ],
)
def test_the_nearest_name_is_found(name, names, expected):
    assert nearest(name, names) == expected
    assert did_you_mean(name, names) == (f"; did you mean {expected!r}?" if expected else "")


def test_lengths_that_are_listed_are_cut():
    assert brief_lengths((1, 2, 3, 4, 5, 6, 7, 8)) == "(1, 2, 3, 4, 5, 6, 7, 8)"
    assert brief_lengths(((1,) * 9,)) == "((1, 1, 1, 1, 1, 1, ...),)"


@pytest.mark.parametrize(
    ("what", "end"), [("", "... and 2 more"), ("arrays", "... and 2 more: arrays")]
)
def test_of_many_lines_the_first_are_shown(what, end):
    lines = [str(number) for number in range(22)]
    assert first_of(lines[:20], what) == lines[:20]
    assert first_of(lines, what) == [*lines[:20], f"  {end}"]


def test_rows_are_aligned_and_wrapped():
    assert aligned([]) == ""
    assert aligned([("a", "b c"), ("long", "d")]) == "a     b c\nlong  d"
    assert aligned([("a", "b c d e")], line_width=6) == "a  b c\n   d e"
