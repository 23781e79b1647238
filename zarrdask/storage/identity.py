"""`Identity`: the URI, token, server and directory by which a store is identified."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from zarrdask.storage.file_calls import path_of_url

#: What to do where other processes can't access a store. The error is raised when a Dask array is
#: made, so the argument `scheduler` of `compute` would come too late.
UNSHARED_ADVICE = (
    "use a local directory or a URL that the workers can access, or compute in threads by "
    'dask.config.set(scheduler="threads")'
)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of a store.

    Attributes
    ----------
    uri : str
        The location of the store as a URI in its canonical form (conformance C-73).
    token : str
        A text that is different for different stores: part of the names of tasks and locks.
    access : mapping
        The options and credentials with which the store is accessed.
    endpoint : str
        The URL of the server, or of the account, where the URI names a bucket only; else "".
    directory : str, optional
        The local directory that the keys are paths below.
    opened_by : str
        The name of the package that opened the URL of the store, or "".
    unshared_advice : str
        For messages: what to do where other processes can't access a store that is not `shared`.
    """

    uri: str
    token: str
    access: Mapping[str, Any] = field(default_factory=dict)
    endpoint: str = ""
    directory: str | None = None
    opened_by: str = ""
    unshared_advice: str = UNSHARED_ADVICE

    @staticmethod
    @lru_cache(maxsize=256)
    def at(uri: str, token: str) -> "Identity":
        """Return the identity of a store that no server or package is between."""
        return Identity(uri=uri, token=token, directory=directory_at(uri))


def directory_at(uri: str) -> str | None:
    """Return the local directory at a URI, or None for other URIs."""
    if not uri.startswith("file://"):
        return None
    return path_of_url(unquote(uri.removeprefix("file://")))
