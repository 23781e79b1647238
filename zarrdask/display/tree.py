"""The text of a hierarchy, as returned by `Group.tree` and printed by ``zarrdask tree``."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zarrdask.display.html import as_html, fold, muted
from zarrdask.display.words import counted
from zarrdask.errors import printable

#: The largest number of branches of a node that a page shows.
_MAX_BRANCHES = 200
#: The largest number of levels that a page shows.
_MAX_LEVELS = 100


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

    @classmethod
    def of_outline(cls, rows: Iterable[tuple[int, str]]) -> "Tree":
        """Return the tree of nodes, each before those below it, by their levels and labels.

        >>> Tree.of_outline([(0, "/"), (1, "a"), (2, "b")])
        /
        └── a
            └── b
        """
        path: list[tuple[str, list[Tree]]] = []
        for level, label in [*rows, (0, "")]:
            while len(path) > max(level, 1):
                own, branches = path.pop()
                path[-1][1].append(cls(own, tuple(branches)))
            path.append((label, []))
        return cls(path[0][0], tuple(path[0][1]))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the displayed tree."""
        pending = [("", "", self)]
        while pending:
            first, others, tree = pending.pop()
            yield first + tree.line
            signs = [("├── ", "│   ")] * len(tree.branches)
            signs[-1:] = [("└── ", "    ")] if signs else []
            below = zip(signs, tree.branches, strict=True)
            pending += [(others + a, others + b, branch) for (a, b), branch in below][::-1]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<div style="line-height: 1.6">{self._html(0)}</div>'

    def _html(self, level: int) -> str:
        """Return the tree as part of a page: a node with branches folds."""
        name, space, details = self.line.partition(" ")
        line = as_html(name) + (space and " " + muted(details))
        if not self.branches:
            return f'<div style="padding-left: 1.1em">{line}</div>'
        branches = self.branches[:_MAX_BRANCHES] if level < _MAX_LEVELS else ()
        shown = "".join(tree._html(level + 1) for tree in branches)
        omitted = len(self.branches) - len(branches)
        more = f"<div>{muted(f'... and {omitted} more')}</div>" if omitted > 0 else ""
        body = f'<div style="padding-left: 1.1em">{shown}{more}</div>'
        count = muted(counted(len(self.branches), "member"))
        return fold(f"{line} {count}", body, is_open=level == 0)
