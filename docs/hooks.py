"""Prepare pages for the site: insert the changelog, and make links to files of the repository text.

On a page, a link to a test or an example is useful to somebody who reads it in the repository. The
site holds the pages only, so there the text of the link stays and the link goes.
"""

import re
from pathlib import Path
from typing import Any

#: Where a page shows the changelog.
_CHANGELOG = "<!-- CHANGELOG.md -->"
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the changelog, and replace each link that leads out of the pages by its text."""
    if _CHANGELOG in markdown:
        text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
        markdown = markdown.replace(_CHANGELOG, text.replace("](docs/", "]("))
    return _OUTSIDE.sub(r"\1", markdown)
