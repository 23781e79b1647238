"""A registry of modules that display more of a group than its members, by its attributes."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

#: The modules that show more of a group, by the name of an attribute. Each has the functions
#: ``rows`` and ``html``, which take the group, and is imported when such a group is shown.
SECTIONS = dict.fromkeys(("multiscales", "ome"), "zarrdask.tools.conventions.display")


def rows_of(group: Any) -> list[tuple[str, str]]:
    """Return more rows for the table of properties of a group."""
    return [row for module in _modules(group.metadata.attributes) for row in module.rows(group)]


def html_of(group: Any) -> str:
    """Return more parts of a page for a group."""
    return "".join(module.html(group) for module in _modules(group.metadata.attributes))


def _modules(attributes: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the modules that show more of a group with these attributes, each once."""
    names = {module: None for name, module in SECTIONS.items() if name in attributes}
    yield from map(import_module, names)
