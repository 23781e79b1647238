"""The elements of drawings are valid XML, whatever texts they show."""

from xml.etree import ElementTree

import pytest

from tests.covering import for_each
from zarrdask.display import elements

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("text", ["a < b & c", '"quoted"', "た", "bell\x07", "\ud800"])
def test_any_text_can_be_shown(text):
    body = elements.draw_rectangle((0, 0, 2, 1), "") + elements.titled(text)
    body += elements.draw_text(1, 2, text)
    root = ElementTree.fromstring(elements.document(10, 20, text, body))
    title, shown = root.find(f"{SVG}rect/{SVG}title"), root.find(f"{SVG}text")
    assert title.text == shown.text == root.attrib["aria-label"]
    assert all(character.isprintable() for character in shown.text)


def test_a_rectangle_has_the_size_of_its_box():
    text = elements.draw_rectangle((1, 2, 4.25, 6), 'rx="1"/>')
    assert ElementTree.fromstring(text).attrib == {
        "x": "1",
        "y": "2",
        "width": "3.2",
        "height": "4",
        "rx": "1",
    }


@for_each("value, text", [(1.0, "1"), (1.25, "1.2"), (0.0, "0"), (-2.0, "-2"), (3, "3.0")])
def test_numbers_have_no_more_digits_than_are_visible(value, text):
    assert elements.decimal(value) == text.removesuffix(".0")


def test_a_drawing_of_its_own_has_a_colour():
    own = elements.document(1, 1, "t", "", elements.GREY)
    assert f'color="{elements.GREY}"' in own
    assert "color=" not in elements.document(1, 1, "t", "")
