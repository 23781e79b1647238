"""Work that consists of requests to one store, done concurrently where requests are slow."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from zarrdask import config
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Store

T = TypeVar("T")


def request_on_each(store: Store, work: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """Do work that consists of requests to a store on each item, concurrently if they are slow."""
    items = list(items)
    is_single = not store.capabilities.has_latency or len(items) == 1
    return on_each(work, items, 1 if is_single else config.get("requests"))
