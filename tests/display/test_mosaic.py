"""Maps of stored chunks: what is stored is drawn, also where there are many."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from zarrdask.display.mosaic import mosaic_svg

SVG = "{http://www.w3.org/2000/svg}"


def cells(stored, names=("a", "b", "c", "d")):
    """Return the number of cells of each shade."""
    root = ElementTree.fromstring(mosaic_svg(stored, names[: stored.ndim]))
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]
    return {path.get("fill-opacity"): path.get("d").count("M") for path in paths}


def test_each_stored_chunk_is_a_cell():
    assert cells(np.eye(3, dtype=bool)) == {"0.9": 3}
    assert cells(np.array([True, False, True])) == {"0.9": 2}
    assert cells(np.array(True)) == {"0.9": 1}
    assert cells(np.zeros((2, 2), bool)) == {}


def test_cells_of_more_axes_are_shaded_by_the_share():
    stored = np.zeros((2, 2, 2), bool)
    stored[:, 0, 0] = stored[0, 1, 1] = True
    assert cells(stored) == {"0.9": 1, "0.5": 1}


@pytest.mark.parametrize(
    ("shape", "count"), [((1000,), 40), ((97, 1000), 40 * 40), ((3, 300, 2), 3 * 40)]
)
def test_many_chunks_share_cells(shape, count):
    assert sum(cells(np.ones(shape, bool)).values()) == count


def test_nothing_is_drawn_of_no_chunks():
    assert cells(np.zeros((0, 3), bool)) == {}


def test_the_axes_with_the_most_chunks_are_drawn():
    stored = np.zeros((5, 1, 1), bool)
    stored[:2] = True
    assert cells(stored) == {"0.9": 2}


def test_the_frame_is_around_all_cells():
    root = ElementTree.fromstring(mosaic_svg(np.ones((2, 3), bool), ("a", "b")))
    frame, cells = (path.get("d") for path in root.iter(f"{SVG}path"))
    left, top, right, bottom = map(float, re.findall(r"[\d.]+", frame)[:4])
    corners = [tuple(map(float, xy)) for xy in re.findall(r"M([\d.]+) ([\d.]+)", cells)]
    size = (right - left) / 3
    assert bottom - top == pytest.approx(2 * size)
    expected = [(left + column * size, top + row * size) for row in range(2) for column in range(3)]
    assert corners == [pytest.approx(corner) for corner in expected]
