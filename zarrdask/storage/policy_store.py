"""`PolicyStore`: a store that intercepts each request to a remote store, such as to retry it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from zarrdask.formats.byte_ranges import Entry
from zarrdask.formats.store_keys import Names
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.request import Answer, Request, Send, Verb, ask
from zarrdask.storage.request_store import RequestStore, sender
from zarrdask.storage.wrapper import WrappedStore

T = TypeVar("T")
_LOST = frozenset({"keeps_open"})


class PolicyStore(RequestStore, WrappedStore):
    """A store that does something to each request of the inner store.

    A subclass overrides `policy`. All operations that read or change values or keys go through it.
    An operation on many values is one request for each value, or one request with a `call` if the
    inner store has one operation for them.
    """

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities of the inner store; each part is a request of its own."""
        inner = self.inner.capabilities
        return without(inner, _LOST) if inner.keeps_open else inner

    def policy(self, request: Request, send: Send) -> Answer:
        """Return the answer to a request; `send` sends this one, or others, to the inner store."""
        return send(request)

    def send(self, request: Request) -> Answer:
        return self.policy(request, sender(self.inner))

    def _call(self, verb: Verb, key: str, call: Callable[[Store], T]) -> T:
        """Return the result of a call of the inner store, which is one request."""
        result: T = self.policy(Request(verb, key, call=call), partial(ask, self.inner)).value
        return result

    # ---- each value by a request of its own

    get_many = Store.get_many
    get_ranges = Store.get_ranges
    get_partial_values = Store.get_partial_values
    set_many = Store.set_many

    # ---- one request for several values or keys

    def erase_values(self, keys: Iterable[str]) -> None:
        if erased := [*keys]:
            self._call("DELETE", "", lambda store: store.erase_values(erased))

    def erase_prefix(self, prefix: str) -> None:
        self._call("DELETE", prefix, lambda store: store.erase_prefix(prefix))

    def list_dir(self, prefix: str) -> Names:
        return self._call("LIST", prefix, lambda store: store.list_dir(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return iter(self._call("LIST", prefix, lambda store: [*store.list_prefix(prefix)]))

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        def listed(store: Store) -> list[Entry]:
            return [*store.entries(prefix, after, until, objects=objects)]

        return iter(self._call("LIST", prefix, listed))
