"""Drawings: well-formed, complete, within their bounds, and those of the documentation."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import dask.array as da

import zarrdask
from tests.covering import for_each
from tests.pictures import IMAGES, PICTURES
from zarrdask.display.picture import Cell, Picture, Slot, Strip, text_width
from zarrdask.display.svg import html, svg

SVG = "{http://www.w3.org/2000/svg}"


def strip(lengths, *, name="axis", sources=None, edges=None, skipped=()):
    """Return an axis of units side by side."""
    slots, at = [], 0
    for number, length in enumerate(lengths):
        slots.append(Slot(at, at + length, None if number in skipped else number))
        at += length
    return Strip(name, tuple(slots), sources or ((0, at),), edges or (0, at))


def picture(down, across, kinds="whole", **options):
    """Return a picture of all units, each its own owner."""
    rows = down.slots if down else (Slot(0, 1, 0),)
    cells = {
        (row.unit, column.unit): Cell((row.unit, column.unit), kinds, "label", "title")
        for row in rows
        for column in across.slots
        if row.unit is not None and column.unit is not None
    }
    return Picture(
        **{"title": "a title", "legend": (("whole", "1 whole"),), "notes": ("a note",)} | options,
        across=across,
        down=down,
        cells=cells,
    )


def drawn(found):
    """Return the parsed drawing."""
    return ElementTree.fromstring(svg(found))


def titled(root):
    """Return the rectangles that say something when they are pointed at: the units."""
    return [box for box in root.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]


def texts(root):
    """Return all words."""
    return [text.text for text in root.iter(f"{SVG}text")]


@for_each("name", PICTURES)
def test_pictures_in_the_documentation_are_up_to_date(name):
    assert (IMAGES / f"{name}.svg").read_text() == PICTURES[name]().svg(), (
        "draw them again: python -m tests.pictures"
    )


def test_all_pictures_in_the_documentation_are_drawn_by_the_library():
    # The overviews and the sequence are drawn by hand; the gallery's pictures are drawn by
    # examples/draw.py, and the rates by benchmarks/chunk_sizes.py.
    drawn = {path.stem for path in IMAGES.glob("*.svg")} - {
        "append_sequence",
        "overview",
        "overview-narrow",
        "chunk_sizes",
    }
    assert drawn == set(PICTURES)


@for_each("name", PICTURES)
def test_everything_lies_within_the_drawing(name):
    root = ElementTree.fromstring(PICTURES[name]().svg())
    width, height = float(root.get("width")), float(root.get("height"))
    for box in root.iter(f"{SVG}rect"):
        left, top = float(box.get("x")), float(box.get("y"))
        assert left >= 0 <= top
        assert left + float(box.get("width")) <= width
        assert top + float(box.get("height")) <= height
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("y")) <= height
        if not text.get("transform"):
            half = text_width(text.text) / (2 if text.get("text-anchor") else 1)
            assert float(text.get("x")) + half <= width


def test_each_unit_is_drawn_once_and_says_what_it_is():
    root = drawn(picture(strip([4, 4, 2]), strip([5, 5])))
    assert len(titled(root)) == 6
    assert {box.find(f"{SVG}title").text for box in titled(root)} == {"title"}


def test_units_are_drawn_to_scale_without_overlap():
    root = drawn(picture(None, strip([10, 20, 40])))
    boxes = [(float(b.get("x")), float(b.get("width"))) for b in titled(root)]
    assert [width for _, width in boxes] == [16, 28, 56]
    assert all(a + n == b for (a, n), (b, _) in pairwise(boxes))


def test_units_that_are_read_and_written_back_are_hatched():
    root = drawn(picture(None, strip([4]), "read-modify-write"))
    [box] = titled(root)
    [name] = re.findall(r"url\(#(.*)\)", box.get("fill"))
    assert name in [pattern.get("id") for pattern in root.iter(f"{SVG}pattern")]


@for_each("kind, marked", [("merged", 3), ("whole", 0)])
def test_merged_units_have_a_mark_in_the_corner(kind, marked):
    root = drawn(picture(None, strip([4, 4, 4]), kind))
    assert all("url" not in box.get("fill", "") for box in titled(root))
    marks = [path for path in root.iter(f"{SVG}path") if path.get("d", "").endswith("h7v7z")]
    assert len(marks) == marked


def test_the_vertical_axis_is_no_longer_than_a_screen():
    plan = zarrdask.plan_write(da.zeros((1000, 1000), chunks=100), {}, chunks=100)
    root = ElementTree.fromstring(plan.svg())
    assert float(root.get("height")) < 340 < float(root.get("width"))


def test_pictures_on_one_page_share_the_same_patterns():
    pages = (html(picture(None, strip([n]), kind)) for n, kind in ((4, "merged"), (5, "whole")))
    one, two = (re.findall(r"<defs>.*</defs>", page) for page in pages)
    assert one == two
    assert len(one) == 1


def test_neighbours_have_different_colours():
    root = drawn(picture(strip([4] * 4), strip([4] * 4)))
    fills = [box.get("fill") for box in root.iter(f"{SVG}rect") if box.get("fill-opacity") == ".6"]
    grid = [fills[4 * row : 4 * row + 4] for row in range(4)]
    for row in range(3):
        for column in range(3):
            square = [grid[row + i][column + j] for i in (0, 1) for j in (0, 1)]
            assert len(set(square)) == 4


def test_what_is_kept_of_a_unit_is_weaker_than_what_is_written():
    root = drawn(picture(None, strip([8, 8], edges=(4, 16)), "read-modify-write"))
    weak = [box for box in root.iter(f"{SVG}rect") if box.get("fill-opacity") == ".15"]
    strong = [box for box in root.iter(f"{SVG}rect") if box.get("fill-opacity") == ".6"]
    assert [float(box.get("width")) for box in weak] == [56]
    assert [float(box.get("width")) for box in strong[:2]] == [28, 56]


def test_units_that_nothing_is_written_to_are_empty():
    across = strip([4, 4], edges=(0, 4))
    found = picture(None, across)
    root = drawn(Picture(found.title, across, None, {(0, 0): found.cells[0, 0]}, (), ()))
    empty = [box for box in root.iter(f"{SVG}rect") if box.get("stroke-dasharray")]
    assert [box.get("fill") for box in empty] == ["none"]


def test_units_that_are_left_out_are_told_by_dots():
    root = drawn(picture(strip([4, 400, 4], skipped=[1]), strip([4, 400, 4], skipped=[1])))
    assert len(titled(root)) == 4
    assert texts(root).count("...") == 2


def test_words_are_there_and_safe():
    root = drawn(picture(None, strip([4], name="<axis> & co"), title='a "title" <b>'))
    assert {"<axis> & co", 'a "title" <b>', "1 whole", "a note"} <= set(texts(root))


def test_a_name_may_be_of_any_characters():
    across = strip([4], name="a\0b\ud800\x1b")
    assert "a\ufffdb\ufffd\ufffd" in texts(drawn(picture(None, across)))
    svg(picture(None, across)).encode()


def lines(root, attribute):
    """Return the path of the lines that have an attribute, those in the legend excepted."""
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    [path] = [path for path in paths if path.get(attribute)]
    return path.get("d")


def test_boundaries_of_source_blocks_are_drawn():
    across = strip([8, 8, 8], sources=((0, 10), (10, 24)))
    root = drawn(picture(None, across))
    assert lines(root, "stroke-dasharray").count("V") == 1
    assert lines(root, "stroke-width").count("V") == 2


def test_blocks_too_many_to_draw_are_not_drawn():
    sources = tuple((n, n + 1) for n in range(10_000))
    root = drawn(picture(None, strip([5000, 5000], sources=sources)))
    assert lines(root, "stroke-dasharray") == ""


def test_boundaries_of_blocks_are_drawn_where_there_are_units_only():
    across = strip([4, 400, 4], skipped=[1], edges=(0, 200, 408))
    root = drawn(picture(None, across))
    line = lines(root, "stroke-width")
    assert line.count("V") == 2
    assert line.count("H") == 4


def test_a_page_gives_the_text_its_colour():
    found = picture(None, strip([4]))
    assert " color=" in svg(found)
    assert " color=" not in html(found)
    assert "currentColor" in html(found)


def test_labels_stand_in_one_unit_that_has_room():
    root = drawn(picture(None, strip([1, 40, 40])))
    assert texts(root).count("label") == 1
    assert "label" not in texts(drawn(picture(None, strip([1, 1] * 20))))
