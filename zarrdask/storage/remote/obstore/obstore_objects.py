"""Objects of obstore: their class, capabilities and location."""

import os
import pickle
from typing import Any

import cloudpickle

from zarrdask.errors import StoreError

#: Stores that erase many keys with one request. The others erase one key a request.
ERASE_MANY = {"S3Store", "AzureStore"}
#: Stores that replace a value on the condition that it is still the same.
COMPARE_AND_SWAP = {"S3Store", "GCSStore", "AzureStore", "MemoryStore"}


def kind_of(store: Any) -> str:
    """Return which of obstore's classes an object is of; users may have derived one from it."""
    kinds = [kind.__name__ for kind in type(store).__mro__ if kind.__module__ == "obstore.store"]
    return kinds[0] if kinds else type(store).__name__


def settings_of(store: Any) -> dict[str, Any]:
    """Return the settings of an object, such as its bucket."""
    return getattr(store, "config", None) or {}


def unsupported(store: Any) -> frozenset[str]:
    """Return the capabilities of `ObstoreStore` that stores in an object lack."""
    kind = kind_of(store)
    has_etags = kind not in ("MemoryStore", "LocalStore")
    is_conditional = settings_of(store).get("conditional_put") != "disabled"
    supported = {
        "writable": kind != "HTTPStore",
        "shared": kind != "MemoryStore",
        "create_exclusive": is_conditional,
        "compare_and_swap": is_conditional and kind in COMPARE_AND_SWAP,
        "etags": has_etags,
        "versions": has_etags,
        "md5_etags": has_etags,
    }
    return frozenset(name for name, is_supported in supported.items() if not is_supported)


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


#: Variables by which obstore itself finds a server for S3.
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def endpoint_of(store: Any) -> str:
    """Return the URL of the server, or of the account of Azure, that an object uses.

    It is "" for the cloud's own server.
    """
    settings = settings_of(store)
    endpoint = settings.get("endpoint") or settings.get("base_url")
    if not endpoint and kind_of(store) == "S3Store":
        endpoint = next(filter(None, map(os.environ.get, _ENDPOINT_VARIABLES)), None)
    if not endpoint and kind_of(store) == "AzureStore":
        account = settings.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
        endpoint = f"https://{account}.blob.core.windows.net"
    return endpoint or ""


#: The process in which obstore was used first: its threads are not in forked ones.
_USED_IN = set[int]()


def is_usable() -> bool:
    """Whether obstore can be used: in a process that was forked later, requests wait forever."""
    process = os.getpid()
    if not _USED_IN:
        _USED_IN.add(process)
    return process in _USED_IN


def not_usable(url: str) -> StoreError:
    """Return the error for a process that was forked from one that used obstore."""
    return StoreError(
        "obstore can't be used in a process that was forked after it was used; start "
        'processes by "spawn" or "forkserver", or open URLs with zarrdask.remote = "auto" or '
        '"fsspec"',
        key=url,
    )


def is_forked() -> bool:
    """Whether this process was forked from one that had used obstore."""
    return bool(_USED_IN) and os.getpid() not in _USED_IN


def pickled(kind: type, inner: Any, prefix: str) -> tuple[Any, ...]:
    """Return the pickled form of a store of obstore, which may be missing elsewhere."""
    # Parts of the object, such as a credential provider, may be defined in a notebook.
    return _unpickled, (cloudpickle.dumps((kind, inner, prefix)),)


def _unpickled(content: bytes) -> Any:
    try:
        kind, inner, prefix = pickle.loads(content)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "obstore":
            raise
        raise StoreError(
            "this store was opened by obstore, which is not installed in this process; install "
            'zarrdask[obstore] wherever workers run, or set zarrdask.remote to "fsspec" where the '
            "URL is opened"
        ) from error
    return kind(inner, prefix)
