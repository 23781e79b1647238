"""The text of a hierarchy, as returned by `Group.tree` and printed by ``zarrdask tree``."""

from collections.abc import Iterator
from dataclasses import dataclass

from zarrdask.display.html import as_html, fold, muted
from zarrdask.display.words import counted
from zarrdask.errors import printable

#: The largest number of branches of a node that a page shows.
_MAX_BRANCHES = 200


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

    @property
    def line(self) -> str:
        """The label as one printable line."""
        return printable(self.label)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the displayed tree."""
        yield self.line
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
        return f'<div style="line-height: 1.6">{self._html(is_open=True)}</div>'

    def _html(self, *, is_open: bool) -> str:
        """Return the tree as part of a page: a node with branches folds."""
        name, space, details = self.line.partition(" ")
        line = as_html(name) + (space and " " + muted(details))
        if not self.branches:
            return f'<div style="padding-left: 1.1em">{line}</div>'
        shown = "".join(tree._html(is_open=False) for tree in self.branches[:_MAX_BRANCHES])
        omitted = len(self.branches) - _MAX_BRANCHES
        more = f"<div>{muted(f'... and {omitted} more')}</div>" if omitted > 0 else ""
        body = f'<div style="padding-left: 1.1em">{shown}{more}</div>'
        count = muted(counted(len(self.branches), "member"))
        return fold(f"{line} {count}", body, is_open=is_open)
