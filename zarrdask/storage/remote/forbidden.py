"""Values that a server refuses to send, read as missing ones.

Buckets whose keys one may not list answer 403 instead of 404 for a key that does not exist.
"""

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.refusals import CREDENTIALS
from zarrdask.storage.remote.failures import error_code, is_forbidden
from zarrdask.storage.request import MISSING, Answer, Request, Send


class ForbiddenIsMissing(PolicyStore):
    """A store whose values are missing where the server answers 403 to a read."""

    def policy(self, request: Request, send: Send) -> Answer:
        """Return an answer, which is that the value is missing where it may not be read."""
        try:
            return send(request)
        except StoreError as error:
            is_read = request.verb in ("GET", "HEAD") and is_forbidden(error)
            # Credentials that the server does not accept say nothing of the key.
            if not is_read or error_code(error) in CREDENTIALS:
                raise
            return MISSING

    def above(self) -> Store | None:
        above = self.inner.above()
        return None if above is None else ForbiddenIsMissing(above)


def forbidden_as_set(store: Store) -> Store:
    """Return a store that reads refused values as ``zarrdask.forbidden`` says."""
    is_remote = store.capabilities.costs.overlaps and not isinstance(store, ForbiddenIsMissing)
    return (
        ForbiddenIsMissing(store) if is_remote and config.get("forbidden") == "missing" else store
    )
