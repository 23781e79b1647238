"""Parts of pages for notebooks: tables and sections that fold. Pure.

They inherit the colours and the font of the page, use no scripts and no style sheet, and are small.
"""

from collections.abc import Iterable
from html import escape

from zarrdask.errors import printable_lines

_CELL = "text-align: left; vertical-align: top; padding: 2px 12px 2px 0"
#: The style of text that is less important than the text around it.
_MUTED = "opacity: .65"


def as_html(text: str) -> str:
    """Return a text as HTML, in which names are printable."""
    return escape(printable_lines(text))


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return the names and the values of properties as a table.

    >>> table([("shape", "(2, 3)")]).count("<td")
    1
    """
    cells = (
        f'<tr><th style="{_CELL}">{as_html(name)}</th>'
        f'<td style="{_CELL}; max-width: 26em; overflow-wrap: anywhere">{as_html(text)}</td></tr>'
        for name, text in rows
    )
    return f'<table style="border: 0">{"".join(cells)}</table>'


def preformatted(text: str) -> str:
    """Return a text whose line breaks and columns are kept, as far as the page is wide enough."""
    return f'<pre style="white-space: pre-wrap; overflow-wrap: anywhere">{as_html(text)}</pre>'


def heading(kind: str, name: str) -> str:
    """Return a line with the kind and the name of an object."""
    return f"<div><strong>{as_html(kind)}</strong> {muted(name)}</div>"


def muted(text: str) -> str:
    """Return a text of less weight."""
    return f'<span style="{_MUTED}; overflow-wrap: anywhere">{as_html(text)}</span>'


def fold(summary: str, body: str, *, is_open: bool = False) -> str:
    """Return a section that shows its body when the reader opens it; both arguments are HTML."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{summary}</summary>{body}</details>"


def beside(*parts: str) -> str:
    """Return parts side by side, or one below the other where the page is narrow."""
    items = "".join(f"<div>{part}</div>" for part in parts)
    style = "display: flex; flex-wrap: wrap; gap: 8px 32px"
    return f'<div style="{style}">{items}</div>'


def progress_bar(done: int, total: int, text: str) -> str:
    """Return the progress of work as a bar with a text beside it."""
    bar = f'<progress value="{done}" max="{max(total, 1)}" style="width: 18em"></progress>'
    return f'<div>{bar} <span style="font-family: monospace">{as_html(text)}</span></div>'
