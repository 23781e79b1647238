"""The connected components of a graph."""

from collections.abc import Callable, Iterable
from typing import Any


def components(links: Iterable[tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Return a function that returns the same for two items if links connect them.

    >>> component = components([("a", "b"), ("c", "d"), ("b", "e")])
    >>> component("a") == component("e"), component("a") == component("c")
    (True, False)
    """
    above = dict[Any, Any]()

    def component(item: Any) -> Any:
        while item in above:
            above[item] = above.get(above[item], above[item])
            item = above[item]
        return item

    for one, other in links:
        first, second = component(one), component(other)
        if first != second:
            above[first] = second
    return component
