"""The elements of all drawings, and their colours. Pure.

Colours are half transparent, and text has a grey that is legible on white and on black.
"""

from html import escape

#: Left, top, right and bottom, in pixels.
Box = tuple[float, float, float, float]

#: The colours of owners in rows and columns: neighbours differ, also for the colour-blind.
COLOURS = (("#56b4e9", "#e69f00", "#009e73"), ("#cc79a7", "#f0e442", "#0072b2"))
#: The colour of text and lines in a drawing that is a document of its own.
GREY = "#7d8590"


def document(width: int, height: int, title: str, body: str, colour: str | None = None) -> str:
    """Return a drawing; by default it has the text colour of the page that it is part of."""
    own_colour = f' color="{colour}"' if colour else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" fill="currentColor"{own_colour} '
        'font-family="system-ui, sans-serif" font-size="11" role="img" '
        f'aria-label="{_xml_text(title)}">\n{body}\n</svg>\n'
    )


def draw_rectangle(box: Box, attributes: str) -> str:
    """Return the beginning of a rectangle; `attributes` end it."""
    left, top, right, bottom = box
    width, height = decimal(right - left), decimal(bottom - top)
    position = f'x="{decimal(left)}" y="{decimal(top)}"'
    return f'<rect {position} width="{width}" height="{height}" {attributes}'


def titled(title: str) -> str:
    """Return the end of a rectangle with a text that is shown when the mouse points at it."""
    return f"><title>{_xml_text(title)}</title></rect>"


def draw_text(left: float, top: float, text: str, attributes: str = "") -> str:
    """Return a line of text."""
    position = f'x="{decimal(left)}" y="{decimal(top)}"'
    return f"<text {position}{attributes}>{_xml_text(text)}</text>"


def decimal(value: float) -> str:
    """Return a number with no more digits than are visible."""
    return f"{value:.1f}".removesuffix(".0")


def _xml_text(text: str) -> str:
    """Return a text for XML, which some characters that a name may have are not allowed in."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))
