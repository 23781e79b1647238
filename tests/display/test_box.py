"""Boxes: the axes and boundaries of an array, within the drawing, for any number of axes."""

from xml.etree import ElementTree

from tests.covering import for_each
from zarrdask.display.box import BoxAxis, box_svg
from zarrdask.display.picture import text_width

SVG = "{http://www.w3.org/2000/svg}"


def draw(*axes):
    return ElementTree.fromstring(box_svg(axes))


def labels(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def lines(root):
    """Return the number of lines within the sides of the box: of units, and of chunks."""
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    chunks = [path for path in paths if path.get("stroke-width")]
    units = [path for path in paths if not path.get("stroke-width")]
    return [sum(path.get("d").count("M") for path in kind) for kind in (units, chunks)]


@for_each(("ndim", "sides"), [(0, 1), (1, 1), (2, 1), (3, 3), (5, 3)])
def test_a_box_has_the_sides_of_its_axes_and_lies_within_the_drawing(ndim, sides):
    root = draw(*(BoxAxis(f"n{axis}", 10, (5,)) for axis in range(ndim)))
    paths = list(root.iter(f"{SVG}path"))
    assert sum(path.get("fill") != "none" for path in paths) == sides
    width, height = float(root.get("width")), float(root.get("height"))
    for text in root.iter(f"{SVG}text"):
        assert float(text.get("x")) + text_width(text.text) <= width
        assert 0 < float(text.get("y")) <= height
    shown = [f"n{axis} 10" for axis in range(ndim)]
    assert {*shown[-3:]} <= {*labels(root)}
    if ndim > 3:
        assert "one of 100: n0 10 x n1 10" in labels(root)


def test_boundaries_of_shards_and_of_chunks_are_lines():
    assert lines(draw(BoxAxis("", 9, (3, 6)))) == [2, 0]
    assert lines(draw(BoxAxis("", 8, (4,), (2, 4, 6)), BoxAxis("", 4))) == [1, 3]
    # Each boundary of a cube crosses two of its three sides.
    assert lines(draw(*[BoxAxis("", 10, (5,))] * 3)) == [6, 0]


def test_lines_that_would_be_too_close_are_left_out():
    units, _ = lines(draw(BoxAxis("", 10_000, tuple(range(1, 10_000)))))
    assert 10 < units < 60


def test_a_short_axis_can_be_seen_beside_a_long_one():
    root = draw(BoxAxis("", 1), BoxAxis("", 10**9))
    assert float(root.get("height")) > 18


def test_names_of_any_characters_are_safe():
    assert "<\ufffd> 3" in labels(draw(BoxAxis("<\0>", 3)))
