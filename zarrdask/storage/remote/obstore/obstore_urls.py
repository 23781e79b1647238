"""URLs and options of fsspec -> objects of obstore, so that either package can open a URL."""

import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import obstore
import obstore.store
from obstore.exceptions import BaseError

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.remote import aws
from zarrdask.storage.remote.default_credentials import (
    DefaultCredentials,
    azure_provider,
    google_provider,
)
from zarrdask.storage.remote.obstore.obstore_errors import no_counterpart
from zarrdask.storage.remote.obstore.obstore_objects import kind_of
from zarrdask.storage.remote.obstore.obstore_options import (
    AZURE,
    GOOGLE,
    HTTP,
    S3,
    Options,
    Settings,
)
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore

#: Parts of paths that obstore refuses or changes.
_UNUSUAL_PARTS = ("", ".", "..")
#: Names of buckets, and of a host after them, that can be part of a request. Others make obstore
#: panic, which is no `Exception`; so do these settings with white space or beyond ASCII.
_BUCKET = re.compile(r"[\w.$:@-]+", re.ASCII)
_PARTS_OF_REQUESTS = ("access_key_id", "session_token", "region", "endpoint", "base_url")
_AZURE_HOST = re.compile(r"\w+\.(blob|dfs)\.core\.windows\.net")
#: Where obstore itself looks for credentials of Azure, beside the machine that it is on.
_AZURE_VARIABLES = (
    *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CLIENT_SECRET"),
    *("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
)
_AZURE_SETTINGS = {"skip_signature", "account_key", "sas_key", "client_secret"}


def open_url(url: str, storage_options: Mapping[str, Any] | None = None) -> ObstoreStore:
    """Return the store at a URL ``s3://``, ``gs://``, ``az://`` or ``http(s)://``.

    Parameters
    ----------
    url : str
        As for fsspec.
    storage_options : dict, optional
        Those options of fsspec that obstore has a counterpart for.

    Raises
    ------
    NoCounterpartError
        If obstore has no counterpart for an option, for the URL, or for a setting of the
        environment.
    StoreError
        If obstore refuses one, or there are no credentials.
    """
    kind = _KINDS[url.partition("://")[0]]
    settings = kind.options.settings(url, storage_options or {})
    try:
        store: ObstoreStore = kind.open(url, settings)
    except (BaseError, ValueError, TypeError) as error:
        text = str(error).partition("\n\n")[0]
        raise StoreError(f"obstore can't open this URL: {text}", key=url) from error
    return store


def _open_s3(url: str, settings: Settings) -> ObstoreStore:
    bucket, prefix = _bucket_and_prefix(url)
    if ":" in bucket:
        raise no_counterpart("names of resources (ARN)", url)
    given = dict(settings.config)
    config = aws.complete(bucket, given, given.pop("profile", None))
    return _made(obstore.store.S3Store, bucket, prefix, settings._replace(config=config))


def _open_google(url: str, settings: Settings) -> ObstoreStore:
    if os.environ.get("STORAGE_EMULATOR_HOST") and "base_url" not in settings.config:
        raise no_counterpart("the environment variable STORAGE_EMULATOR_HOST", url)
    has_token = settings.config.keys() & {
        *("skip_signature", "service_account_key", "application_credentials"),
    }
    if not has_token:
        with suppress(ModuleNotFoundError):  # obstore itself looks for credentials then
            # As gcsfs does, which needs no option for buckets that are public.
            is_anonymous = google_provider() is None
            name = "skip_signature" if is_anonymous else "credential_provider"
            settings.config[name] = is_anonymous or DefaultCredentials("google")
    return _made(obstore.store.GCSStore, *_bucket_and_prefix(url), settings)


def _open_azure(url: str, settings: Settings) -> ObstoreStore:
    container, prefix = _bucket_and_prefix(url)
    container, at, host = container.partition("@")
    if at:
        if not _AZURE_HOST.fullmatch(host):
            raise no_counterpart(f"the host {host}", url)
        settings.config.setdefault("account_name", host.partition(".")[0])
    if os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        raise no_counterpart("the environment variable AZURE_STORAGE_CONNECTION_STRING", url)
    if os.environ.get("AZURE_STORAGE_ANON", "false").lower() not in ("false", "0", "f", ""):
        settings.config.setdefault("skip_signature", True)
    has_credentials = any(map(os.environ.get, _AZURE_VARIABLES))
    if not has_credentials and _AZURE_SETTINGS.isdisjoint(settings.config):
        with suppress(ModuleNotFoundError):
            azure_provider()
            settings.config["credential_provider"] = DefaultCredentials("azure")
    return _made(obstore.store.AzureStore, container, prefix, settings)


def _open_http(url: str, settings: Settings) -> ObstoreStore:
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise no_counterpart("URLs with a query", url)
    _check_path(parts.path.strip("/"), url)
    settings.client["allow_http"] = parts.scheme == "http"
    if parts.username is not None:
        names = unquote(parts.username), unquote(parts.password or "")
        token = b64encode(":".join(names).encode()).decode()
        headers = {"Authorization": f"Basic {token}"}
        settings.client["default_headers"] = headers | settings.client.get("default_headers", {})
    return ObstoreStore(obstore.store.HTTPStore(url.rstrip("/"), **settings.arguments()))


def _bucket_and_prefix(url: str) -> tuple[str, str]:
    bucket, _, prefix = url.partition("://")[2].partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise no_counterpart(f"the name {bucket!r} of a bucket", url)
    _check_path(prefix.strip("/"), url)
    return bucket, prefix


def _check_path(path: str, url: str) -> None:
    if path and any(part in _UNUSUAL_PARTS for part in path.split("/")):
        raise no_counterpart("empty or relative names in a URL", url)


def _made(kind: Any, bucket: str, prefix: str, settings: Settings) -> ObstoreStore:
    for name in _PARTS_OF_REQUESTS:
        if re.search(r"[^!-~]", str(settings.config.get(name, ""))):
            raise StoreError(
                f"the setting {name!r} of the bucket {bucket!r} contains white space or a "
                "character that is not ASCII; remove it"
            )
    endpoint = settings.config.get("endpoint", settings.config.get("base_url"))
    if str(endpoint).startswith("http://"):
        settings.client["allow_http"] = True
    return ObstoreStore(kind(bucket, **settings.arguments()), prefix)


class _Kind(NamedTuple):
    """How the URLs of one kind of object stores are opened, and which options they take."""

    open: Callable[[str, Settings], ObstoreStore]
    options: Options


_KINDS = {
    **dict.fromkeys(("s3", "s3a"), _Kind(_open_s3, S3)),
    **dict.fromkeys(("gs", "gcs"), _Kind(_open_google, GOOGLE)),
    **dict.fromkeys(("az", "abfs", "abfss"), _Kind(_open_azure, AZURE)),
    **dict.fromkeys(("http", "https"), _Kind(_open_http, HTTP)),
}


def adapt_object(store: Any) -> Store | None:
    """Return the store for an object of obstore; a local directory is read without obstore."""
    if not any(kind.__module__ == "obstore.store" for kind in type(store).__mro__):
        return None
    if kind_of(store) == "LocalStore":
        return LocalStore(str(store.prefix or "/"))
    return ObstoreStore(store)
