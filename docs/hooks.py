"""Prepare pages for the site: the changelog, links, and drawings for narrow screens.

On a page, a link to a test or an example is useful to somebody who reads it in the repository. The
site holds the pages only, so there the text of the link stays and the link goes.
"""

import re
from pathlib import Path
from typing import Any

#: Where a page shows the changelog.
_CHANGELOG = "<!-- CHANGELOG.md -->"
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")
#: A drawing that has a second form, beside it, for narrow screens.
_DRAWING = re.compile(r'<img [^>]*src="(?P<stem>[^"]*overview)\.svg"[^>]*>')
_NARROW = "(max-width: 44.9em)"
#: Pages that have most words, and are rarely meant by one: a search lists them last.
_LISTED_LAST = (
    "conformance.md",
    "changes.md",
    "published-benchmarks.md",
    "contributing.md",
    "api/",
)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Insert the changelog, and replace each link that leads out of the pages by its text."""
    if page.file.src_uri.startswith(_LISTED_LAST):
        page.meta.setdefault("search", {"boost": 0.3})
    if _CHANGELOG in markdown:
        text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
        markdown = markdown.replace(_CHANGELOG, text.replace("](docs/", "]("))
    return _OUTSIDE.sub(_text, markdown)


def _text(link: re.Match[str]) -> str:
    """Return the text of a link, in which names of tests may be broken on a narrow screen."""
    text = link[1]
    return text if "`" in text else text.replace("_", "_<wbr>")


def on_page_content(html: str, **_: Any) -> str:
    """Show the form of a drawing that fits the screen."""
    return _DRAWING.sub(
        rf'<picture><source media="{_NARROW}" srcset="\g<stem>-narrow.svg">\g<0></picture>', html
    )
