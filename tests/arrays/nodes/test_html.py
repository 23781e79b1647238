"""What notebooks show of arrays and groups."""

import re
from html import unescape

import numpy as np
import pytest

import zarrdask
from zarrdask.storage.memory import MappingStore
from zarrdask.storage.wrapper import WrappedStore


def rows(node):
    """Return the shown properties."""
    pattern = r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>"
    return {name: unescape(text) for name, text in re.findall(pattern, node._repr_html_())}


@pytest.mark.parametrize(
    ("options", "chunks", "stored"),
    [
        ({}, "(2, 3), 6 of them", "2 of 6 chunks (33%)"),
        ({"shards": (6, 3)}, "(2, 3), 6 of them", "1 of 2 shards (50%)"),
        ({"zarr_format": 2}, "(2, 3), 6 of them", "2 of 6 chunks (33%)"),
        ({"chunks": ((1, 5), 6)}, "((1, 5), (6,)), 2 of them", "2 of 2 chunks (100%)"),
    ],
)
def test_an_array_shows_its_properties(tmp_path, options, chunks, stored):
    options = {"chunks": (2, 3)} | options
    z = zarrdask.create_array(tmp_path / "a", shape=(6, 6), dtype="f4", **options)
    z[:4, :3] = 1
    shown = rows(z)
    assert shown["shape"] == "(6, 6)"
    assert shown["chunks"] == chunks
    assert shown["stored"] == stored
    assert str(tmp_path) in z._repr_html_()


def test_chunks_that_take_long_to_count_are_not_counted(tmp_path):
    assert "stored" not in rows(zarrdask.create_array({}, shape=10**6, dtype="i1", chunks=1))
    far = zarrdask.create_array(_Far(MappingStore({})), shape=4, dtype="i1")
    assert "stored" not in rows(far)


class _Far(WrappedStore):
    """A store that is not near."""


def test_an_array_is_shown_whatever_is_wrong_with_its_chunks(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=(4, 4), dtype="i1", chunks=2)
    (tmp_path / "a" / "c").write_text("in the way")
    assert "stored" not in rows(z)


def test_the_boundaries_of_chunks_are_drawn():
    some, twice = (
        zarrdask.create_array({}, shape=length, dtype="i1", chunks=10)._repr_html_()
        for length in (100, 200)
    )
    assert twice.count("M") == some.count("M") + 10


def test_thousands_of_chunk_lengths_are_cut():
    lengths = tuple(np.arange(10_000) % 7 + 1)
    z = zarrdask.create_array({}, shape=sum(lengths), dtype="i1", chunks=(lengths,))
    assert len(z._repr_html_()) < 5000


def test_a_group_shows_a_tree_that_folds():
    root = zarrdask.create_group({})
    root.create_array("a/b/c/d/x", shape=4, dtype="i1")
    root.create_array("<b>", shape=4, dtype="i1")
    html = root._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<details") == 3  # the root, a and b: the groups below are not opened
    assert html.count("<details open") == 1


def test_a_group_of_many_members_is_small():
    root = zarrdask.create_group({})
    for number in range(220):
        root.create_array(f"n{number:03}", shape=4, dtype="i1")
    assert "... and 20 more" in root._repr_html_()
    assert "n219" not in root._repr_html_()


def test_which_chunks_are_stored_is_drawn_where_some_are(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=(9, 6, 6), dtype="f4", chunks=(3, 2, 2))
    assert z._repr_html_().count("<svg") == 1
    z[0, :2] = 1
    html = z._repr_html_()
    assert html.count("<svg") == 2
    assert "stored: 3 of 27" in html
    assert "shade: the share along axis 0" in html
    z[...] = 1
    assert z._repr_html_().count("<svg") == 1
