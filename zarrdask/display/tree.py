"""The text of a hierarchy, as returned by `Group.tree` and printed by ``zarrdask tree``."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, repr=False)
class Tree:
    """A node and the nodes below it; displayed as a tree, also in notebooks.

    Attributes
    ----------
    label : str
        The text for the node.
    branches : tuple of Tree
        The nodes directly below it.

    Examples
    --------
    >>> Tree("/", (Tree("a", (Tree("b"),)), Tree("c")))
    /
    ├── a
    │   └── b
    └── c
    """

    label: str
    branches: tuple["Tree", ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the displayed tree."""
        yield self.label
        for number, branch in enumerate(self.branches, 1):
            last = number == len(self.branches)
            first, *others = branch.lines()
            yield f"{'└── ' if last else '├── '}{first}"
            yield from (f"{'    ' if last else '│   '}{line}" for line in others)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}
