"""Objects of obstore: of which class they are, what they can do, and where they are."""

import os
from functools import cache
from typing import Any

from zarrdask.errors import StoreError

#: Stores that erase many keys with one request. The others erase one key a request.
ERASE_MANY = {"S3Store", "AzureStore"}
#: Stores that replace a value on the condition that it is still the same.
COMPARE_AND_SWAP = {"S3Store", "GCSStore", "AzureStore", "MemoryStore"}
#: Stores whose requests obstore repeats if their answers are lost.
REPEATED = {"S3Store", "GCSStore", "AzureStore"}


def kind_of(store: Any) -> str:
    """Return which of obstore's classes an object is of; users may have derived one from it."""
    kinds = [kind.__name__ for kind in type(store).__mro__ if kind.__module__ == "obstore.store"]
    return kinds[0] if kinds else type(store).__name__


def settings_of(store: Any) -> dict[str, Any]:
    """Return the settings of an object, such as its bucket."""
    return getattr(store, "config", None) or {}


def root_url(store: Any) -> str:
    """Return the URL of the bucket, the server or the root that an object is of."""
    match kind_of(store):
        case "S3Store":
            return f"s3://{settings_of(store).get('bucket')}"
        case "GCSStore":
            return f"gs://{settings_of(store).get('bucket')}"
        case "AzureStore":
            return f"abfs://{settings_of(store).get('container_name')}"
        case "HTTPStore":
            return str(store.url).rstrip("/")
        case "LocalStore":
            return "file://"
    return f"obstore-memory://{os.getpid():x}-{id(store):x}"


def is_usable() -> bool:
    """Whether obstore can be used: in a process that was forked later, requests wait forever."""
    return _first_process() == os.getpid()


def not_usable(url: str) -> StoreError:
    """Return the error for a process that was forked from one that used obstore."""
    return StoreError(
        "obstore can't be used in a process that was forked after it was used; start "
        'processes by "spawn" or "forkserver", or set zarrdask.remote to "fsspec"',
        key=url,
    )


@cache
def _first_process() -> int:
    """Return the process in which obstore was used first: its threads are not in forked ones."""
    return os.getpid()
