"""Work that consists of requests to stores, done concurrently where requests are slow."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from zarrdask import config
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.threads import on_each

if TYPE_CHECKING:
    from zarrdask.storage.base import Store

T = TypeVar("T")
Item = TypeVar("Item")


def request_each(
    store: "Store", request: Callable[[Item], T], items: Iterable[Item]
) -> Iterator[T]:
    """Yield the result of a request for each item, with later ones in flight if possible."""
    return window(request, items) if store.capabilities.concurrent else map(request, items)


def request_on_each(store: "Store", work: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """Do work that consists of requests to a store on each item, concurrently if that is faster."""
    return request_on_stores([store], work, items)


def request_on_stores(
    stores: "Iterable[Store]", work: Callable[[Any], T], items: Iterable[Any]
) -> list[T]:
    """Do work that consists of requests to stores, concurrently if that is faster for any."""
    items = list(items)
    are_together = len(items) > 1 and any(store.capabilities.costs.overlaps for store in stores)
    return on_each(work, items, config.get("requests") if are_together else 1)
