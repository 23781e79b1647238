"""Prepare pages for the site: links to files of the repository become plain text.

On a page, a link to a test or an example is useful to somebody who reads it in the repository. The
site holds the pages only, so there the text of the link stays and the link goes.
"""

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each link that leads out of the documentation by its text."""
    return _OUTSIDE.sub(r"\1", markdown)
