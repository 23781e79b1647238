"""Methods of stores that count as one request each while requests are measured."""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from types import FunctionType
from typing import Any, TypeVar

# Modules, not their values: a class of a script is pickled with the globals of its methods.
from zarrdask.runtime import measuring, thread_counts

Method = TypeVar("Method", bound=Callable[..., Any])

#: The kinds of the requests that the methods of a store send.
_KINDS = {
    **dict.fromkeys(("get", "get_range", "get_part", "get_if_changed", "get_tagged"), "GET"),
    "get_version": "GET",
    **dict.fromkeys(("set", "create", "swap"), "PUT"),
    **dict.fromkeys(("erase", "erase_prefix"), "DELETE"),
    **dict.fromkeys(("list_dir", "list_prefix", "list"), "LIST"),
    "stat": "HEAD",
}
#: The methods that send one request for each value that they yield.
_MANY = ("get_many", "get_ranges")


def count_requests(cls: type) -> None:
    """Have the methods that a class defines itself count as requests."""
    for name, method in [*vars(cls).items()]:
        if isinstance(method, FunctionType) and name in (*_KINDS, *_MANY):
            decorate = _counted_values if name in _MANY else counted(_KINDS[name])
            setattr(cls, name, decorate(method))


def counted(kind: str) -> Callable[[Method], Method]:
    """Return a decorator of methods of a store that send one request of a kind."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def operation(self: Any, *arguments: Any, **options: Any) -> Any:
            if not measuring.IS_ACTIVE:
                return method(self, *arguments, **options)
            send = partial(method, self, *arguments, **options)
            stored = len(arguments[1]) if kind == "PUT" else 0
            return thread_counts.THIS_THREAD.counts.request(kind, self, send, stored)

        return operation  # type: ignore[return-value]

    return decorate


def _counted_values(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(method)
    def operation(self: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
        values = method(self, *arguments, **options)
        if not measuring.IS_ACTIVE:
            return values
        return thread_counts.THIS_THREAD.counts.requests(self, values)

    return operation
